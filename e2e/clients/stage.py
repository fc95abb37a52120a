"""What every client meets: two authorities, the stand-in for the upstreams, and the built gateway between."""

import json
import os
import subprocess
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
NAMES = ["packages", "api", "git", "tunnel", "forbidden", "unnamed"]
TLS_HOSTS = [f"{name}.example.com" for name in NAMES] + ["api.anthropic.com", "api.openai.com"]
PLAIN_HOST = "plain.example.com"
KEYS = {
    "API_KEY": "real-api-key-5d1c7b",
    "ANTHROPIC_API_KEY": "sk-ant-real-3f9e2a",
    "OPENAI_API_KEY": "sk-real-openai-8c4d11",
    "GIT_TOKEN": "real-git-token-77aa01",
}
UPSTREAM_CA = "Stand-in Upstream CA"
LOGIN = "agent:door-password-19"
PATIENCE = 30


class Stage:
    """Starts everything in a directory, the gateway last; leaving it ends what was started."""

    def __init__(self, tools, directory):
        self.tools, self.directory = tools, directory
        self.log, self.events = directory / "upstream.jsonl", directory / "events.jsonl"
        self.gateway_log = directory / "gateway.log"
        self.processes = []

    def __enter__(self):
        self._make_authorities()
        self._make_repositories()
        self._start_upstream()
        self._start_gateway()
        return self

    def __exit__(self, *_):
        for process in reversed(self.processes):
            process.terminate()
            process.wait(PATIENCE)

    def roots(self, authority, kind="pem"):
        """The file with the certificate of an authority, `postern` or `upstream`, alone."""
        return self.directory / f"{authority}.{kind}"

    def environment(self, trusts="postern", **more):
        """All that a client of the gateway is told. It trusts one authority: an answer proves whose leaf it saw."""
        roots, proxy = str(self.roots(trusts)), f"http://{LOGIN}@{self.gateway}"
        trust = ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "GIT_SSL_CAINFO"]
        ways = ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"]
        return self.bare() | dict.fromkeys(trust, roots) | dict.fromkeys(ways, proxy) | {"NODE_USE_ENV_PROXY": "1"} | more

    def bare(self):
        """The environment of a process that knows nothing of the gateway."""
        home = self.directory / "home"
        home.mkdir(exist_ok=True)
        return {"PATH": f"{self.tools.node.parent}:{os.environ['PATH']}", "HOME": str(home), "LC_ALL": "C.UTF-8"}

    def mark(self):
        """A place in the stand-in's log, for `seen_since`."""
        return self.log.stat().st_size

    def seen_since(self, mark):
        """The requests that reached the stand-in: what got past the gateway is the evidence."""
        with self.log.open() as log:
            log.seek(mark)
            return [json.loads(line) for line in log]

    def stop_gateway(self):
        """Its exit status."""
        gateway = self.processes.pop()
        gateway.terminate()
        return gateway.wait(PATIENCE)

    def _make_authorities(self):
        upstream, key = self.roots("upstream"), self.directory / "upstream-key.pem"
        self._openssl("req", "-x509", "-out", upstream, "-keyout", key, "-subj", f"/CN={UPSTREAM_CA}", *EC, *CA)
        names = ",".join(f"DNS:{name}" for name in TLS_HOSTS)
        leaf = ["-CA", upstream, "-CAkey", key, "-addext", f"subjectAltName={names}", "-addext", "extendedKeyUsage=serverAuth"]
        certificate, key = self.directory / "leaf.pem", self.directory / "leaf-key.pem"
        self._openssl("req", "-x509", "-out", certificate, "-keyout", key, "-subj", "/CN=stand-in", *EC, *leaf, *LEAF)
        self._run(self.tools.postern, "ca", "init", "--directory", self.directory / "ca")
        self.roots("postern").write_bytes((self.directory / "ca/ca-cert.pem").read_bytes())
        for authority in ("postern", "upstream"):
            store = ["-keystore", self.roots(authority, "p12"), "-storepass", "changeit"]
            self._run("keytool", "-importcert", "-noprompt", "-alias", "ca", "-file", self.roots(authority), *store)

    def _make_repositories(self):
        work = self.directory / "work"
        self._run("git", "init", "-q", "-b", "main", work)
        (work / "README").write_text("as the upstream wrote it\n")
        (work / "large").write_bytes(os.urandom(1 << 20))
        author = ["-c", "user.name=e2e", "-c", "user.email=e2e@example.com"]
        self._run("git", "-C", work, "add", ".")
        self._run("git", "-C", work, *author, "commit", "-q", "-m", "first")
        for place in ("team", "other"):
            self._run("git", "clone", "-q", "--bare", work, self.directory / "repositories" / place / "tools.git")

    def _start_upstream(self):
        self.log.touch()
        identity = [self.directory / "leaf.pem", self.directory / "leaf-key.pem"]
        command = [self.tools.node, HERE / "upstream.mjs", *identity, self.log, self.directory / "repositories"]
        errors = (self.directory / "upstream.log").open("w")
        process = subprocess.Popen(command, env=self.bare(), stdout=subprocess.PIPE, stderr=errors, text=True)
        self.processes.append(process)
        tls, plain = process.stdout.readline().split()
        self.upstream_proxy = f"http://127.0.0.1:{plain}"
        self.hosts = dict.fromkeys(TLS_HOSTS, f"127.0.0.1:{tls}") | {PLAIN_HOST: f"127.0.0.1:{plain}"}

    def _start_gateway(self):
        (self.directory / "password").write_text(LOGIN.split(":")[1])
        settings, socket = self.directory / "settings.yaml", self.directory / "status.sock"
        settings.write_text(json.dumps({  # JSON is YAML.
            "listeners": {"explicit": {"address": "127.0.0.1:0", "passwordFile": "password"}},
            "admin": {"address": "127.0.0.1:0", "socket": "status.sock"},
            "interception": {"mode": "Required", "caCertificate": "ca/ca-cert.pem", "caKey": "ca/ca-key.pem"},
            "policy": {"path": str(HERE / "policy.yaml")},
            "upstream": {"hosts": self.hosts, "allowAddresses": ["127.0.0.0/8"], "roots": ["upstream.pem"]},
        }))
        environment = {"POSTERN_INTERCEPT": "1"} | KEYS
        with self.events.open("w") as events, self.gateway_log.open("w") as log:
            command = [self.tools.postern, "gateway", "--config", settings]
            process = subprocess.Popen(command, env=environment, stdout=events, stderr=log)
        self.processes.append(process)
        self.gateway = self._listener(process, socket)

    def _listener(self, process, socket):
        deadline = time.monotonic() + PATIENCE
        ask = [self.tools.postern, "status", "--socket", socket, "--output", "json"]
        while process.poll() is None and time.monotonic() < deadline:
            told = subprocess.run(ask, capture_output=True, check=False)
            listeners = json.loads(told.stdout)["listeners"] if told.returncode == 0 else []
            for listener in listeners:
                if listener["mode"] == "explicit":
                    return listener["address"]
            time.sleep(0.05)
        raise RuntimeError(f"the gateway did not start:\n{self.gateway_log.read_text()}")

    def _openssl(self, *arguments):
        self._run("openssl", *arguments)

    def _run(self, *command):
        done = subprocess.run(command, env=self.bare(), capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{' '.join(map(str, command))}:\n{done.stdout}{done.stderr}")


EC = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
CA = ["-addext", "keyUsage=critical,keyCertSign,cRLSign"]
LEAF = ["-addext", "basicConstraints=critical,CA:FALSE", "-addext", "keyUsage=critical,digitalSignature"]
