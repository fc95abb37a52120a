"""The stage: the stand-in, two gateways before it, one of which has `toolOutputs`, and a project for each task."""

import json
import os
import shutil
import socket
from contextlib import ExitStack

from authority import Authority
from commands import output
from gateway_process import GatewayProcess
from script import Script
from standin import DIALECTS, INTERRUPT, StandIn

# Without `toolOutputs`; with it, and evidence by its path; with it, and evidence at the gateway's own name.
PLAIN, CUT, URL = "without", "with", "by URL"
# With it, in a gateway that gets another policy and is killed in the middle of a task.
INTERRUPTED = "interrupted"
# Settings of compression, as the policy of the second gateway has them.
COMPRESS = {
    "above": {"lines": 400, "tokens": 6000},
    "head": {"lines": 60, "tokens": 1200},
    "tail": {"lines": 120, "tokens": 2400},
    "diagnostics": 40,
}
# Other settings, by which the same text becomes another one.
OTHER = COMPRESS | {"head": {"lines": 20, "tokens": 600}, "diagnostics": 0}


class Stage:
    """Starts everything in a directory; leaving it ends what was started."""

    def __init__(self, tools, postern, directory, compares=True):
        self.tools, self.directory, self.compares = tools, directory, compares
        self.postern = shutil.copy(postern, directory / "postern")

    def __enter__(self):
        with ExitStack() as started:
            authority = Authority(self.directory, "upstream", "Stand-in Upstream CA")
            names = [f"DNS:{host}" for host in DIALECTS]
            self.standin = started.enter_context(StandIn(*authority.issue("leaf", "/CN=stand-in", names, "serverAuth")))
            self.gateways = {}
            for way in (PLAIN, CUT, URL, INTERRUPTED):
                self.gateways[way] = self._gateway(way, authority)
                started.callback(self.gateways[way].stop)
                self.gateways[way].start()
            self.started = started.pop_all()
        return self

    def __exit__(self, *_):
        self.started.close()

    def project(self, task):
        """The directory of a task's project."""
        place = self.directory / "projects" / "".join(letter if letter.isalnum() else "-" for letter in task.name)
        if not place.exists():
            place.mkdir(parents=True)
            task.write(place)
            # Codex waits ten seconds for a command: what is compiled once is compiled here.
            output(["bash", "-c", task.command], env=self._tools_environment(self.directory), cwd=place)
        return place

    def evidence(self, way):
        """The texts that a gateway kept, the oldest first."""
        files = sorted((self.gateways[way].directory / "evidence").glob("*.txt"), key=lambda file: file.stat().st_mtime_ns)
        return [file.read_text() for file in files]

    def run_over_websocket(self, agent, task, way):
        """As `run`, with a provider that speaks WebSocket, and how many messages came over one."""
        self.standin.speaks_websocket, self.standin.messages = True, 0
        try:
            return *self.run(agent, task, way), self.standin.messages
        finally:
            self.standin.speaks_websocket = False

    def run_interrupted(self, agent, task):
        """As `run`, by a gateway that gets another policy behind the second turn, and is killed and started behind the fourth."""
        gateway, self.interrupts = self.gateways[INTERRUPTED], []

        def interrupt(word):
            if word == "policy":
                gateway.apply(policy(True, OTHER))
            else:
                gateway.process.kill()
                gateway.process.wait()
                # What conversations began with is what the gateway starts with.
                gateway.policy.write_text(policy(True))
                gateway.start()
            self.interrupts.append(word)

        self.standin.interrupt = interrupt
        asks = f"; curl -sk --noproxy '*' https://{self.standin.address}{INTERRUPT}"
        return self.run(agent, task, INTERRUPTED, {2: f"{asks}policy", 4: f"{asks}end"})

    def run(self, agent, task, way, between=None):
        """What an agent said in a task, and the turns that the stand-in received meanwhile."""
        home = self.directory / "home"
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir()
        agent.prepare(home)
        # Codex runs commands in a login shell, which makes a search path of its own.
        (home / ".bash_profile").write_text(f"export PATH='{self._path()}'\n")
        self.standin.play(Script(task, between))
        program = self.tools.agents.modules / ".bin" / agent.command[0]
        place = self.project(task)
        code, printed, errors = output([program, *agent.command[1:]], env=self._environment(agent, home, way), cwd=place)
        return code, printed.decode(errors="replace") + errors, self.standin.turns

    def _environment(self, agent, home, way):
        gateway = self.gateways[way]
        proxy, roots = f"http://{gateway.address}", str(gateway.directory / "ca/ca-cert.pem")
        return {
            **self._tools_environment(home), **agent.variables,
            **dict.fromkeys(("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"), proxy), "NODE_USE_ENV_PROXY": "1",
            **dict.fromkeys(("SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "CODEX_CA_CERTIFICATE"), roots),
        }

    def _tools_environment(self, home):
        return {
            "PATH": self._path(), "HOME": str(home), "LC_ALL": "C.UTF-8", "TERM": "dumb", "GOTOOLCHAIN": "local", "GOFLAGS": "-count=1",
            "GOCACHE": str(self.directory / "go-cache"),
        }

    def _path(self):
        return f"{self.tools.programs}:{self.tools.node.parent}:{os.environ['PATH']}"

    def _gateway(self, way, authority):
        directory = self.directory / way.replace(" ", "-")
        directory.mkdir()
        gateway = GatewayProcess(self.postern, directory)
        shutil.copy(authority.certificate, directory / "upstream.crt")
        reach = {"hosts": dict.fromkeys(DIALECTS, self.standin.address), "allowAddresses": ["127.0.0.0/8"]}
        cuts = way != PLAIN and self.compares
        (directory / "evidence").mkdir()
        evidence = {"directory": str(directory / "evidence")}
        if way in (CUT, INTERRUPTED):
            evidence["agentPath"] = evidence["directory"]
        more = {"evidence": evidence} if cuts else {}
        # One that starts again is found where it was.
        address = free_address() if way == INTERRUPTED else "127.0.0.1:0"
        gateway.configure(policy(cuts), {"explicit": {"address": address}}, reach, **more)
        return gateway


def free_address():
    """An address of this machine at which nobody listens."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{listener.getsockname()[1]}"


def policy(cuts, compress=None):
    """What agents may do, with `toolOutputs` or without."""
    spec = {
        "podSelector": {},
        "destinations": [{"name": host.split(".")[1], "hosts": [host], "action": "Inspect"} for host in DIALECTS],
        # Over a WebSocket the provider has what came before.
        "providerState": "Allow",
    }
    if cuts:
        spec["toolOutputs"] = {"of": [{"kind": "Shell"}], "compress": compress or COMPRESS}
    metadata = {"name": "agents", "namespace": "e2e"}
    return json.dumps({"apiVersion": "postern.dev/v1alpha1", "kind": "EgressPolicy", "metadata": metadata, "spec": spec})  # JSON is YAML.
