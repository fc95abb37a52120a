"""What every client meets: two authorities, the stand-in for the upstreams, and the built gateway between."""

import json
import os
import shutil
import signal
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path

from report import output

HERE = Path(__file__).resolve().parent
POLICY = HERE / "policy.yaml"
NAMES = ["packages", "api", "git", "tunnel", "forbidden", "unnamed"]
MODEL_HOSTS = ["api.anthropic.com", "api.openai.com", "generativelanguage.googleapis.com", "api.githubcopilot.com"]
# Hosts without which an agent does not start.
START_HOSTS = ["platform.claude.com", "api.github.com"]
TLS_HOSTS = [f"{name}.example.com" for name in NAMES] + MODEL_HOSTS + START_HOSTS
PLAIN_HOST, MAIL_HOST = "plain.example.com", "mail.example.com"
KEYS = {
    "API_KEY": "real-api-key-5d1c7b",
    "ANTHROPIC_API_KEY": "sk-ant-real-3f9e2a",
    "OPENAI_API_KEY": "sk-real-openai-8c4d11",
    "GEMINI_API_KEY": "real-gemini-key-d2a96c",
    "COPILOT_GITHUB_TOKEN": "github_pat_real_b81e40",
    "GIT_TOKEN": "real-git-token-77aa01",
}
UPSTREAM_CA = "Stand-in Upstream CA"
PATIENCE = 120


class Stage:
    """Starts everything in a directory, the gateway last; leaving it ends what was started.

    `way` is how clients reach the gateway: where each process runs, which listeners there are, what clients are told.
    """

    def __init__(self, tools, directory, way):
        self.tools, self.directory, self.way = tools, directory, way
        self.log, self.events = directory / "upstream.jsonl", directory / "events.jsonl"
        self.settings, self.gateway_log = directory / "settings.yaml", directory / "gateway.log"
        self.policy, self.state = directory / "policy.yaml", directory / "state"

    def __enter__(self):
        with ExitStack() as started:
            self.started = started
            started.enter_context(self.way)
            self._make_authorities()
            self._make_repositories()
            self._start_upstream()
            self._write_settings()
            self.way.prepare(self)
            self._start_gateway()
            self.started = started.pop_all()
        return self

    def __exit__(self, *_):
        self.started.close()

    def roots(self, authority, kind="pem"):
        """The file with the certificate of an authority, `postern` or `upstream`, alone."""
        return self.directory / f"{authority}.{kind}"

    def environment(self, trusts="postern", **more):
        """All that a client is told. It trusts one authority: an answer proves whose leaf it saw."""
        trust = ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "GIT_SSL_CAINFO"]
        return self.bare() | dict.fromkeys(trust, str(self.roots(trusts))) | self.way.variables() | more

    def bare(self):
        """The environment of a process that knows nothing of the gateway."""
        home = self.directory / "home"
        home.mkdir(exist_ok=True)
        return {"PATH": f"{self.tools.node.parent}:{os.environ['PATH']}", "HOME": str(home), "LC_ALL": "C.UTF-8"}

    def output(self, command, environment, **options):
        """Status, standard output and standard error of a client's command, run where clients are."""
        return output(self.way.client(command), env=environment, **options)

    def mark(self):
        """A place in the stand-in's log, for `seen_since`."""
        return self.log.stat().st_size

    def seen_since(self, mark):
        """The requests that reached the stand-in: what got past the gateway is the evidence."""
        with self.log.open() as log:
            log.seek(mark)
            return [json.loads(line) for line in log]

    def apply(self, policy):
        """Puts another policy in force."""
        before = self.status()["policy"]["revision"]
        self.policy.write_text(policy)
        self.gateway.send_signal(signal.SIGHUP)
        self._demand(lambda status: status["policy"]["revision"] != before)

    def status(self):
        """What the gateway says of itself, or None before it says anything."""
        ask = [self.tools.postern, "status", "--socket", self.state / "status.sock", "--output", "json"]
        told = subprocess.run(ask, capture_output=True, check=False)
        return json.loads(told.stdout) if told.stdout else None

    def stop_gateway(self):
        """Its exit status."""
        self.gateway.terminate()
        return self.gateway.wait(PATIENCE)

    def start(self, command, **options):
        """A process that is ended with the stage."""
        process = subprocess.Popen(list(map(str, command)), **options)
        self.started.callback(end, process)
        return process

    def run(self, *command):
        """A step of the preparation: what it said is raised where it fails."""
        done = subprocess.run(command, env=self.bare(), capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{' '.join(map(str, command))}:\n{done.stdout}{done.stderr}")

    def _make_authorities(self):
        upstream, key = self.roots("upstream"), self.directory / "upstream-key.pem"
        self._openssl("req", "-x509", "-out", upstream, "-keyout", key, "-subj", f"/CN={UPSTREAM_CA}", *EC, *CA)
        names = ",".join(f"DNS:{name}" for name in TLS_HOSTS)
        leaf = ["-CA", upstream, "-CAkey", key, "-addext", f"subjectAltName={names}", "-addext", "extendedKeyUsage=serverAuth"]
        certificate, key = self.directory / "leaf.pem", self.directory / "leaf-key.pem"
        self._openssl("req", "-x509", "-out", certificate, "-keyout", key, "-subj", "/CN=stand-in", *EC, *leaf, *LEAF)
        self.run(self.tools.postern, "ca", "init", "--directory", self.directory / "ca")
        self.roots("postern").write_bytes((self.directory / "ca/ca-cert.pem").read_bytes())
        for authority in ("postern", "upstream"):
            store = ["-keystore", self.roots(authority, "p12"), "-storepass", "changeit"]
            self.run("keytool", "-importcert", "-noprompt", "-alias", "ca", "-file", self.roots(authority), *store)

    def _make_repositories(self):
        work = self.directory / "work"
        self.run("git", "init", "-q", "-b", "main", work)
        (work / "README").write_text("as the upstream wrote it\n")
        (work / "large").write_bytes(os.urandom(1 << 20))
        author = ["-c", "user.name=e2e", "-c", "user.email=e2e@example.com"]
        self.run("git", "-C", work, "add", ".")
        self.run("git", "-C", work, *author, "commit", "-q", "-m", "first")
        for place in ("team", "other"):
            self.run("git", "clone", "-q", "--bare", work, self.directory / "repositories" / place / "tools.git")

    def _start_upstream(self):
        self.log.touch()
        identity = [self.directory / "leaf.pem", self.directory / "leaf-key.pem"]
        command = [self.tools.node, HERE / "upstream.mjs", *identity, self.log, self.directory / "repositories", *self.way.UPSTREAM]
        with (self.directory / "upstream.log").open("w") as errors:
            process = self.start(self.way.upstream(command), env=self.bare(), stdout=subprocess.PIPE, stderr=errors, text=True)
        self.ports = process.stdout.readline().split()

    def _write_settings(self):
        self.state.mkdir()
        brought = self.directory / "own-roots/agent"
        brought.mkdir(parents=True)
        shutil.copy(self.roots("upstream"), brought / "SSL_CERT_FILE.pem")
        shutil.copy(POLICY, self.policy)
        self.settings.write_text(json.dumps({  # JSON is YAML.
            "listeners": self.way.listeners(self),
            "admin": {"address": self.way.ADMIN, "socket": "state/status.sock"},
            "interception": {"mode": "Required", "caCertificate": "ca/ca-cert.pem", "caKey": "ca/ca-key.pem"},
            "policy": {"path": self.policy.name},
            "upstream": {"roots": ["upstream.pem"]} | self.way.reach(*self.ports),
            "trust": {"directory": "state/trust", "roots": "postern.pem", "ownRoots": "own-roots"},
        }))

    def _start_gateway(self):
        command = self.way.gateway([self.tools.postern, "gateway", "--config", self.settings])
        environment = {"PATH": os.environ["PATH"], "POSTERN_INTERCEPT": "1"} | KEYS
        with self.events.open("w") as events, self.gateway_log.open("w") as log:
            self.gateway = self.start(command, env=environment, stdout=events, stderr=log)
        self.way.learn(self._demand(lambda status: status["ready"]))

    def _demand(self, holds):
        """The gateway's status, as soon as `holds` is true of it."""
        deadline = time.monotonic() + PATIENCE
        while self.gateway.poll() is None and time.monotonic() < deadline:
            status = self.status()
            if status and holds(status):
                return status
            time.sleep(0.05)
        raise RuntimeError(f"the gateway did not come to where it should:\n{self.gateway_log.read_text()}")

    def _openssl(self, *arguments):
        self.run("openssl", *arguments)


def end(process):
    process.terminate()
    try:
        process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


EC = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
CA = ["-addext", "keyUsage=critical,keyCertSign,cRLSign"]
LEAF = ["-addext", "basicConstraints=critical,CA:FALSE", "-addext", "keyUsage=critical,digitalSignature"]
