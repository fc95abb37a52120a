"""Presents leaves below a namespace's CA to real clients that trust its root: good ones are accepted, all others refused.

python3 e2e/run.py cluster/constraints [--only WORD]… [--verbose]

It wants cargo, curl, openssl, gnutls-cli, node, npm, go and java; Bun comes from npm into the cache. The CA is issued by the operator's own code (`examples/issue.rs`), the
leaves by openssl with the key of that CA, as whoever stole it would do.
"""

import http.server
import json
import os
import ssl
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from commands import run, tried
from runner import Suite
from runner import run as run_suite
from servers import CACHE
from steps import Step

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parent.parent
VERIFIERS = HERE / "verifiers"
GOOD, EVIL = "api.example.com", "evil.test"
ACCEPTS, REFUSES = "accepts", "refuses"
# Statically linked to BoringSSL; this build runs on every amd64.
BUN = ("@oven/bun-linux-x64-baseline", "1.4.4")

# A policy's hosts; then leaves, each with its alternative names, what is asked for, and what is expected of clients.
CASES = {
    "some hosts": (
        [GOOD, "*.one.test", "**.two.test"],
        [
            ("good", [f"DNS:{GOOD}"], GOOD, ACCEPTS),
            ("good, below a wildcard", ["DNS:a.one.test"], "a.one.test", ACCEPTS),
            ("good, deep below a wildcard", ["DNS:a.b.two.test"], "a.b.two.test", ACCEPTS),
            ("evil", [f"DNS:{EVIL}"], EVIL, REFUSES),
            ("evil, the apex of a wildcard", ["DNS:one.test"], "one.test", REFUSES),
            ("evil, a longer word", ["DNS:badone.test"], "badone.test", REFUSES),
            ("mixed, the good name asked for", [f"DNS:{GOOD}", f"DNS:{EVIL}"], GOOD, REFUSES),
            ("mixed with an address", [f"DNS:{GOOD}", "IP:127.0.0.1"], GOOD, REFUSES),
            ("an address", ["IP:127.0.0.1"], "127.0.0.1", REFUSES),
        ],
    ),
    "an address": (
        [GOOD, "127.0.0.1"],
        [
            ("good", [f"DNS:{GOOD}"], GOOD, ACCEPTS),
            ("the address", ["IP:127.0.0.1"], "127.0.0.1", ACCEPTS),
            ("mixed with another address", ["IP:127.0.0.1", "IP:127.0.0.2"], "127.0.0.1", REFUSES),
            ("mixed with an address of the other family", ["IP:127.0.0.1", "IP:2001:db8::1"], "127.0.0.1", REFUSES),
            ("evil", [f"DNS:{EVIL}"], EVIL, REFUSES),
        ],
    ),
    "every host": (["**"], [("any name", ["DNS:anything.test"], "anything.test", ACCEPTS), ("an address", ["IP:127.0.0.1"], "127.0.0.1", REFUSES)]),
    "no host": (
        [],
        [
            ("nobody's name", ["DNS:postern.invalid"], "postern.invalid", ACCEPTS),
            ("evil", [f"DNS:{EVIL}"], EVIL, REFUSES),
            ("an address", ["IP:127.0.0.1"], "127.0.0.1", REFUSES),
        ],
    ),
    "as many hosts as fit": (
        [GOOD, *(f"host-{number:04}.a-company-{number:04}.example" for number in range(420))],
        [
            ("good", [f"DNS:{GOOD}"], GOOD, ACCEPTS),
            ("good, one of many", ["DNS:host-0007.a-company-0007.example"], "host-0007.a-company-0007.example", ACCEPTS),
            ("evil", [f"DNS:{EVIL}"], EVIL, REFUSES),
        ],
    ),
    "more hosts than fit": (
        [GOOD, *(f"host-{number:04}.region-{number % 3}.example.net" for number in range(2000))],
        [
            ("good", [f"DNS:{GOOD}"], GOOD, ACCEPTS),
            ("good, one of many", ["DNS:host-0007.region-1.example.net"], "host-0007.region-1.example.net", ACCEPTS),
            ("evil", [f"DNS:{EVIL}"], EVIL, REFUSES),
        ],
    ),
}

# What a client is known to refuse although it should accept: client, then the leaf. Java holds an IPv4 address against
# the exclusion of IPv6 octet by octet, runs past its end and gives up; without the exclusion GnuTLS would accept any IPv6.
# BoringSSL, which is in Bun, holds no address against constraints, and so refuses every one.
EXCEPTIONS = {(client, "the address"): REFUSES for client in ("java", "bun")}


def stages(_options):
    yield "leaves below a namespace's CA", Clients, lambda _: [Step(name, partial(judge, name)) for name in CASES]


class Clients:
    """A directory for certificates, and every client's command for roots, name and port."""

    def __init__(self, folder):
        self.folder = folder

    def __enter__(self):
        self.commands = build(self.folder)
        return self

    def __exit__(self, *_):
        pass


def build(folder):
    """Makes the clients that are compiled; for each client, its command for roots, name and port."""
    run("cargo", "build", "--quiet", "--locked", "--features", "operator", "--examples", cwd=REPOSITORY)
    run("go", "build", "-o", folder / "verify-go", VERIFIERS / "verify.go", env=os.environ | {"GO111MODULE": "off", "GOFLAGS": ""})
    run("javac", "-d", folder, VERIFIERS / "Verify.java")
    bun = installed_bun()
    return {
        "curl": lambda roots, name, port: [
            *("curl", "--silent", "--show-error", "--noproxy", "*", "--output", os.devnull, "--cacert", roots),
            *("--resolve", f"{name}:{port}:127.0.0.1", f"https://{name}:{port}/"),
        ],
        "openssl": lambda roots, name, port: [
            *("openssl", "s_client", "-connect", f"127.0.0.1:{port}", "-CAfile", roots, "-verify_return_error"),
            *(["-verify_ip", name, "-noservername"] if is_address(name) else ["-verify_hostname", name, "-servername", name]),
        ],
        "gnutls": lambda roots, name, port: [
            *("gnutls-cli", "--x509cafile", roots, "--port", port, "--verify-hostname", name),
            *([] if is_address(name) else ["--sni-hostname", name]),
            "127.0.0.1",
        ],
        "python": lambda *asked: [sys.executable, VERIFIERS / "verify.py", *asked],
        "python strict": lambda *asked: [sys.executable, VERIFIERS / "verify.py", *asked, "strict"],
        "node": lambda roots, *asked: ["env", f"NODE_EXTRA_CA_CERTS={roots}", "node", VERIFIERS / "verify.mjs", *asked],
        "bun": lambda roots, *asked: ["env", f"NODE_EXTRA_CA_CERTS={roots}", bun, VERIFIERS / "verify.mjs", *asked],
        "go": lambda *asked: [folder / "verify-go", *asked],
        "rustls": lambda *asked: [target() / "debug/examples/verify", *asked],
        "java": lambda *asked: ["java", "-XX:TieredStopAtLevel=1", "-cp", folder, "Verify", *asked],
    }


def installed_bun():
    """Its executable, which the package holds; it is kept in the cache."""
    package, version = BUN
    place = CACHE / f"bun-{version}"
    executable = place / "node_modules" / package / "bin/bun"
    if not executable.exists():
        place.mkdir(parents=True, exist_ok=True)
        quiet = ("--no-audit", "--no-fund", "--no-save", "--ignore-scripts", "--silent")
        run("npm", "install", *quiet, "--prefix", place, f"{package}@{version}")
        executable.chmod(0o755)
    return executable


# The exit statuses that say: the certificate was looked at, and refused. All others but 0 are broken clients.
REFUSALS = {"curl": {60}, "openssl": {1}}


def judge(name, stage, step):
    """Issues a CA for the hosts of a case and shows its leaves to every client."""
    hosts, leaves = CASES[name]
    folder, clients = stage.folder, stage.commands
    issued = issue(folder, hosts)
    step.notes.append(f"the CA is {len(issued['ca-cert.pem'].splitlines()) * 48} bytes with its root")
    for number, (leaf, names, asked, expected) in enumerate(leaves):
        with Server(mint(folder, number, asked, names)) as port, ThreadPoolExecutor(os.cpu_count()) as pool:
            asks = [command(folder / "roots.pem", asked, str(port)) for command in clients.values()]
            verdicts = dict(zip(clients, pool.map(verdict, clients, asks)))
        wanted = {client: EXCEPTIONS.get((client, leaf), expected) for client in clients}
        different = [client for client in clients if verdicts[client][0] != wanted[client]]
        known = [client for client in clients if wanted[client] != expected]
        words = f"{leaf}: every client {expected}{f' but {known} (known)' if known else ''}"
        step.check(words, not different, [f"{client} {verdicts[client]}" for client in different or clients])


def issue(folder, hosts):
    """Issues the certificates that the operator would write into the namespace's Secret."""
    policy = folder / "policy.yaml"
    destinations = [{"name": "all", "hosts": hosts, "action": "Inspect"}] if hosts else []
    document = {"apiVersion": "postern.dev/v1alpha1", "kind": "EgressPolicy", "metadata": {"name": "a"}}
    policy.write_text(json.dumps({**document, "spec": {"destinations": destinations}}))
    issued = json.loads(run(target() / "debug/examples/issue", policy))
    for key in ("ca-cert.pem", "ca-key.pem", "roots.pem"):
        (folder / key).write_text(issued[key])
    # As gateways send it: the intermediate without the root after it.
    (folder / "intermediate.pem").write_text(issued["ca-cert.pem"].partition("-----END CERTIFICATE-----\n")[0] + "-----END CERTIFICATE-----\n")
    return issued


def mint(folder, number, asked, names):
    """A leaf for these names, by the key of the namespace's CA; one file with key, leaf and intermediate."""
    key, request, leaf, extensions = (folder / f"leaf-{number}.{end}" for end in ("key", "csr", "pem", "ext"))
    extensions.write_text(
        f"subjectAltName={','.join(names)}\nextendedKeyUsage=serverAuth\nkeyUsage=critical,digitalSignature\n"
        "basicConstraints=critical,CA:FALSE\nsubjectKeyIdentifier=hash\nauthorityKeyIdentifier=keyid\n"
    )
    # An address in the common name would be held against the DNS constraints by OpenSSL.
    subject = "/O=Example" if is_address(asked) else f"/CN={asked}"
    curve = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    run("openssl", "req", "-new", *curve, "-keyout", key, "-out", request, "-subj", subject)
    signer = ("-CA", folder / "intermediate.pem", "-CAkey", folder / "ca-key.pem", "-CAcreateserial")
    run("openssl", "x509", "-req", "-in", request, *signer, "-days", "1", "-extfile", extensions, "-out", leaf)
    served = folder / f"served-{number}.pem"
    served.write_text(key.read_text() + leaf.read_text() + (folder / "intermediate.pem").read_text())
    return served


class Server:
    """Serves a leaf and its intermediate to whoever connects, on a free port of 127.0.0.1."""

    def __init__(self, served):
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(served)

    def __enter__(self):
        self.server = Quiet(("127.0.0.1", 0), Answer)
        self.server.context = self.context
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self.server.server_port

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


class Quiet(http.server.ThreadingHTTPServer):
    """Shakes hands in the connection's own thread, and does not mind clients that refuse."""

    def finish_request(self, request, client_address):
        with self.context.wrap_socket(request, server_side=True) as tls:
            super().finish_request(tls, client_address)

    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


class Answer(http.server.BaseHTTPRequestHandler):
    """Answers every request with 200 and nothing."""

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        """Says nothing."""


def verdict(client, command):
    """Whether a client accepts what it is shown, and what it says."""
    status, text = tried(*command)
    words = " ".join(text.split()) if client != "openssl" else verification(text)
    if status == 0:
        return ACCEPTS, words[:300]
    return REFUSES if status in REFUSALS.get(client, {1}) else f"breaks (status {status})", words[:300]


def verification(text):
    """The lines of s_client that speak of the certificate."""
    return " ".join(line.strip() for line in text.splitlines() if "erif" in line)


def is_address(name):
    return name.replace(".", "").isdigit()


def target():
    return Path(os.environ.get("CARGO_TARGET_DIR", REPOSITORY / "target"))


if __name__ == "__main__":
    run_suite(Suite("constraints", __doc__.splitlines()[0], stages))
