"""Has the protocol's own conformance suite and the official TypeScript clients judge the gateway's tools for agents.

python3 e2e/run.py mcp [--postern PATH] [--only WORD]… [--verbose] [--keep]

Both reach them as an agent does, through the explicit proxy; in front of it stands a relay that asks again where the gateway
says 429, as a client in no hurry would.
"""

import hashlib
import http.client
import http.server
import json
import shutil
import threading
import time
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from authority import Authority
from commands import output
from gateway_process import GatewayProcess
from packages import TARGET, Packages
from runner import POSTERN, Suite, executable, run
from steps import Step

HERE = Path(__file__).resolve().parent
POLICY = """\
apiVersion: postern.dev/v1alpha1
kind: EgressPolicy
metadata: {name: coders, namespace: agents}
spec:
  explain: Policy
  destinations:
    - {name: api, hosts: [api.example.com], action: Inspect}
  tools:
    - name: no-rm
      kind: Shell
      action: Deny
      reason: Not here
      when: {param: command, operator: Contains, values: ["rm -rf"]}
"""
# What the suite asks of servers that have nothing but tools: the others are about prompts, resources and tools of its own.
SCENARIOS = {"2025-11-25": ["server-initialize", "ping", "tools-list"], "2026-07-28": ["server-stateless", "tools-list"]}
REVISIONS = {"2025-06-18": "2025-06-18", "2025-11-25": "2025-11-25", "2026-07-28": "2026-07-28", "auto": "2026-07-28"}


# A tool result that a gateway before this one has kept.
KEPT = "first line\nsecond line, \u00e9 <b>\n"
KEPT_ID = hashlib.sha256(KEPT.encode()).hexdigest()[:20]


class Patient(http.server.BaseHTTPRequestHandler):
    """A proxy that gives each request to the gateway until it is answered."""

    protocol_version = "HTTP/1.1"

    def answered(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        while (answer := self.asked(body)).status == 429:
            time.sleep(float(answer.headers["retry-after"]))
        read = answer.read()
        self.send_response(answer.status)
        for name in ("content-type", "x-postern-event", "allow"):
            if name in answer.headers:
                self.send_header(name, answer.headers[name])
        self.send_header("content-length", str(len(read)))
        self.end_headers()
        self.wfile.write(read)

    def do_CONNECT(self):  # noqa: N802
        """What comes inside is answered as if it came without."""
        self.send_response(200)
        self.end_headers()
        self.close_connection = False

    do_GET = do_POST = do_DELETE = answered  # noqa: N815

    def asked(self, body):
        connection = http.client.HTTPConnection(self.server.gateway)
        path = self.path if "://" in self.path else f"http://{self.headers['host']}{self.path}"
        connection.request(self.command, path, body, dict(self.headers) | {"connection": "close"})
        return connection.getresponse()

    def log_message(self, *_):
        pass


class Door:
    """A gateway, and the judges that ask it."""

    def __init__(self, postern, directory):
        self.directory = directory
        self.packages = Packages(HERE, TARGET / "e2e-mcp")
        self.gateway = GatewayProcess(postern, directory)
        Authority(directory, "upstream", "Upstreams of the mcp suite")
        (directory / "evidence").mkdir()
        (directory / "evidence" / f"{KEPT_ID}.txt").write_text(KEPT)
        evidence = {"directory": "evidence", "mcp": True}
        self.gateway.configure(POLICY, {"explicit": {"address": "127.0.0.1:0"}}, {}, evidence=evidence)
        self.gateway.start()
        self.relay = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Patient)
        self.relay.gateway = self.gateway.address
        threading.Thread(target=self.relay.serve_forever, daemon=True).start()
        proxy = f"http://127.0.0.1:{self.relay.server_port}"
        self.environment = self.packages.path() | {"HOME": str(directory), "NODE_USE_ENV_PROXY": "1", "http_proxy": proxy}
        # It finds its packages beside itself.
        self.client = shutil.copy(HERE / "client.mjs", self.packages.cache)

    def close(self):
        self.relay.shutdown()
        self.gateway.stop()

    def node(self, *command):
        return output([self.packages.node, *command], cwd=self.directory, env=self.environment)

    def denied(self):
        """The event of a refused request."""
        connection = http.client.HTTPConnection(self.gateway.address)
        connection.request("GET", "http://evil.example.com/")
        return connection.getresponse().headers["x-postern-event"]

    def judged(self, revision, scenario):
        """The checks of a scenario of the conformance suite."""
        program = self.packages.modules / "@modelcontextprotocol/conformance/dist/index.js"
        written = self.directory / "checks"
        shutil.rmtree(written, ignore_errors=True)
        options = ["--scenario", scenario, "--spec-version", revision, "--output-dir", written]
        _, printed, said = self.node(program, "server", "--url", "http://postern.internal/mcp", *options)
        found = list(written.glob("**/checks.json"))
        if len(found) != 1:
            raise RuntimeError(f"no checks of {scenario}:\n{printed[-2000:]}{said[-2000:]}")
        return json.loads(found[0].read_text())


def conforms(revision, scenario, door, step):
    checks = door.judged(revision, scenario)
    step.check("there are checks", checks)
    for check in checks:
        # A check that needs a tool of the suite's own says that it cannot be made here.
        if not check.get("details", {}).get("untestable"):
            holds = check["status"] in ("SUCCESS", "INFO", "SKIPPED")
            step.check(f"{check['id']}: {check['description']}", holds, check.get("errorMessage"))


def answers(revision, agreed, door, step):
    status, printed, said = door.node(door.client, revision, door.denied(), KEPT_ID)
    if status != 0:
        raise RuntimeError(said[-2000:])
    told = json.loads(printed)
    step.check("the revision is agreed on", told["agreed"] == agreed, told["agreed"])
    step.check("the server says its name", told["server"] == "postern", told["server"])
    step.check("the tools are listed", told["tools"] == ["explain_denial", "list_permissions", "check_action", "read_evidence"], told["tools"])
    step.check("a kept tool result is read", told["kept"] == KEPT, told["kept"])
    step.check("lines of it are found", told["found"] == "2: second line, \u00e9 <b>\n", told["found"])
    step.check("one that is not kept is an error of the tool", "wrong" in told["missing"], told["missing"])
    step.check("a denial is explained", told["denial"].get("rule") == "postern/builtin/default-deny", told["denial"])
    step.check("permissions are listed", told["permissions"]["destinations"][0]["hosts"] == ["api.example.com"], told["permissions"])
    step.check("what would pass is told without why", told["allowed"] == {"verdict": "Allow"}, told["allowed"])
    denied = {"verdict": "Deny", "rule": "agents/coders/no-rm", "reason": "Not here"}
    step.check("what would be denied is told with why", told["denied"] == denied, told["denied"])
    step.check("an unknown tool is an error of the protocol", told["unknown"] == {"error": -32602}, told["unknown"])
    step.check("a wrong input is an error of the tool", "wrong" in told["wrong"], told["wrong"])


def refuses(door, step):
    """A judge that finds nothing must be one that could."""
    settings = json.loads(door.gateway.settings.read_text())
    settings["evidence"]["mcp"] = False
    written = door.gateway.settings.with_suffix(".new")
    written.write_text(json.dumps(settings))
    written.replace(door.gateway.settings)
    door.gateway.apply(POLICY.replace("explain: Policy", "explain: None"))
    checks = door.judged("2025-11-25", "tools-list")
    step.check("where nothing may be asked the suite says so", any(check["status"] == "FAILURE" for check in checks), checks)


def steps(_stage):
    for revision, scenarios in SCENARIOS.items():
        for scenario in scenarios:
            yield Step(f"conformance at {revision}: {scenario}", partial(conforms, revision, scenario))
    for revision, agreed in REVISIONS.items():
        yield Step(f"the TypeScript client, asked for {revision}", partial(answers, revision, agreed))
    yield Step("the judges find what is wrong", refuses)


@contextmanager
def opened(postern, directory):
    door = Door(postern, directory)
    try:
        yield door
    finally:
        door.close()


def stages(options):
    yield "the gateway's tools and their judges", partial(opened, options.postern), steps


if __name__ == "__main__":
    run(Suite("mcp", __doc__.splitlines()[0], stages, {}, {"--postern": executable(POSTERN)}))
