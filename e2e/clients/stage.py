"""The clients' environment: two authorities, the stand-in for the upstreams, and the built gateway between."""

import json
import os
import shutil
import subprocess
from contextlib import ExitStack
from pathlib import Path

from authority import Authority
from commands import end, output, run
from gateway_process import GatewayProcess

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


class Stage:
    """Starts everything in a directory, the gateway last; leaving it ends what was started.

    `way` is how clients reach the gateway: where each process runs, which listeners there are, what clients are told.
    """

    def __init__(self, tools, way, directory):
        self.tools, self.directory, self.way = tools, directory, way
        self.log = directory / "upstream.jsonl"
        # The built one may stand in a home that is root's alone.
        self.gateway = GatewayProcess(shutil.copy(tools.postern, directory / "postern"), directory, way.gateway, KEYS)

    def __enter__(self):
        with ExitStack() as started:
            self.started = started
            started.enter_context(self.way)
            self._make_authorities()
            self._make_repositories()
            self._start_upstream()
            self._configure()
            self.way.prepare(self)
            started.callback(self.gateway.stop)
            self.gateway.start()
            self.started = started.pop_all()
        return self

    def __exit__(self, *_):
        self.started.close()

    def roots(self, authority, kind="crt"):
        """The file with the certificate of an authority, `postern` or `upstream`, alone."""
        return self.directory / f"{authority}.{kind}"

    def environment(self, trusts="postern", **more):
        """All that a client is told. It trusts one authority: an answer proves whose leaf it saw."""
        trust = ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "GIT_SSL_CAINFO"]
        return self.bare() | dict.fromkeys(trust, str(self.roots(trusts))) | self.way.variables(self) | more

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

    def start(self, command, **options):
        """A process that is ended with the stage."""
        process = subprocess.Popen(list(map(str, command)), **options)
        self.started.callback(end, process)
        return process

    def run(self, *command):
        """A step of the preparation, which must succeed."""
        run(*command, env=self.bare())

    def _make_authorities(self):
        names = [f"DNS:{name}" for name in TLS_HOSTS]
        self.leaf = Authority(self.directory, "upstream", UPSTREAM_CA).issue("leaf", "/CN=stand-in", names, "serverAuth")
        shutil.copy(self.directory / "ca/ca-cert.pem", self.roots("postern"))
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
        command = [self.tools.node, HERE / "upstream.mjs", *self.leaf, self.log, self.directory / "repositories", *self.way.UPSTREAM]
        with (self.directory / "upstream.log").open("w") as errors:
            process = self.start(self.way.upstream(command), env=self.bare(), stdout=subprocess.PIPE, stderr=errors, text=True)
        self.ports = process.stdout.readline().split()

    def _configure(self):
        brought = self.directory / "own-roots/agent"
        brought.mkdir(parents=True)
        shutil.copy(self.roots("upstream"), brought / "SSL_CERT_FILE.pem")
        trust = {"directory": "state/trust", "roots": "postern.crt", "ownRoots": "own-roots"}
        self.gateway.configure(POLICY.read_text(), self.way.listeners(self), self.way.reach(*self.ports), self.way.ADMIN, trust=trust)
