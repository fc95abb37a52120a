"""Has the official schema and Microsoft's SARIF Multitool, with its rules for GitHub, judge what `postern ledger sarif` prints.

python3 e2e/run.py sarif [--postern PATH] [--only WORD]… [--verbose] [--keep]

Each judge must also find what is wrong with a report that was spoilt.
"""

import copy
import json
import os
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from commands import output, tried
from packages import TARGET, Packages
from runner import POSTERN, Suite, executable, run
from steps import Step

HERE = Path(__file__).resolve().parent
HOSTILE = "[click](https://evil.example) <img src=x onerror=alert(1)> `x` {0} @you\u001b[2J\u202e\n# x \U000e0041"
POLICY = """\
apiVersion: postern.dev/v1alpha1
kind: EgressPolicy
metadata: {name: coders, namespace: agents}
spec:
  tools:
    - {name: no-rm, tools: [Bash], action: Deny}
"""
TESTS = """\
apiVersion: postern.dev/v1alpha1
kind: PolicyTest
policy: [policies]
cases:
  - {name: holds, toolCall: {name: Bash, input: {command: ls}}, expect: {verdict: Deny}}
  - {name: "[does not](https://evil.example) <b>{0}", toolCall: {name: Read, input: {path: a}}, expect: {verdict: Deny}}
"""
FORMS = {
    "each denial": [],
    "equal ones in one": ["--group"],
    "at the lines of a policy": ["--policy", "policies"],
    "grouped, at the lines of a policy": ["--group", "--policy", "policies"],
}


class Judges:
    """The reports of one directory, and who judges them."""

    def __init__(self, postern, directory):
        self.postern, self.directory = postern, directory
        self.packages = Packages(HERE, TARGET / "e2e-sarif")
        self.multitool = self.packages.modules / "@microsoft/sarif-multitool-linux/Sarif.Multitool"
        # What npm's own install script does.
        self.multitool.chmod(0o755)
        (directory / "policies").mkdir()
        (directory / "policies/my coders.yaml").write_text(POLICY)
        (directory / "tests.yaml").write_text(TESTS)
        (directory / "events.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events()))

    def report(self, options):
        status, printed, said = output([self.postern, "ledger", "sarif", "--ledger", "events.jsonl", *options], cwd=self.directory)
        if status != 0:
            raise RuntimeError(f"exit {status}: {said}")
        return json.loads(printed)

    def tested(self):
        """The report of cases of a policy test."""
        status, _, said = output([self.postern, "policy", "test", "tests.yaml", "--sarif", "tests.sarif"], cwd=self.directory)
        if status != 1:
            raise RuntimeError(f"exit {status}: {said}")
        return json.loads((self.directory / "tests.sarif").read_text())

    def by_schema(self, report):
        """What the official schema says against it, by Python's `jsonschema`; nothing where it is valid."""
        schema = self.multitool.parent / "sarif-2.1.0.json"
        status, said = tried(self.packages.python, "-m", "jsonschema", "--instance", self._write(report), schema)
        return "" if status == 0 else said or f"exit {status}"

    def by_multitool(self, report):
        """Its errors and warnings by the rules of SARIF and of GitHub's code scanning."""
        options = ["--rule-kind", "Sarif;Ghas", "--level", "Error;Warning"]
        # It is a program of .NET, which wants ICU otherwise.
        environment = os.environ | {"DOTNET_SYSTEM_GLOBALIZATION_INVARIANT": "1"}
        _, said = tried(self.multitool, "validate", *options, self._write(report), env=environment)
        if "files scanned" not in said:
            raise RuntimeError(said)
        return "\n".join(line for line in said.splitlines() if ": error " in line or ": warning " in line)

    def _write(self, report):
        written = self.directory / "report.sarif"
        written.write_text(json.dumps(report))
        return written


def events():
    """Every kind of event with every verdict by several rules, plain and hostile."""
    number = 0
    for kind in ("Connection", "Request", "Response", "ToolCall", "Policy", "Lifecycle"):
        for verdict in ("Allow", "Audit", "Deny", "WouldDeny"):
            for rule, name in (("agents/coders/no-rm", "Bash"), ("postern/builtin/placeholder", "Read"), (f"../../{HOSTILE}", HOSTILE), (None, "")):
                number += 1
                yield event(number, kind, verdict, rule, name)
    yield event(1_000, "ToolCall", "Deny", "agents/coders/no-rm", "x" * 10_000) | {"count": 40, "last": "2026-11-22T00:01:00.000Z"}


def event(number, kind, verdict, rule, name):
    call = {"toolCall": {"name": name, "inputBytes": 2}} if kind == "ToolCall" else {}
    http = {"http": {"method": "POST", "path": f"/{name}", "status": 403, "version": "HTTP/2"}} if kind != "Connection" else {}
    return {
        **{"apiVersion": "postern.dev/event/v1", "id": f"01a2008d-747b-7101-8101-{number:012}", "time": "2026-11-22T00:00:00.000Z"},
        **{"sequence": number, "count": 1, "kind": kind, "direction": "Outbound", "session": name or None},
        "destination": {"host": name or "api.anthropic.com", "port": 443, "action": "Inspect", "intercepted": True},
        "decision": {"verdict": verdict, "reason": name} | ({"rule": rule} if rule else {}),
        **http,
        **call,
    }


def valid(options, judges, step):
    report = judges.report(options)
    results = report["runs"][0]["results"]
    step.check("it has results", len(results) >= 8, len(results))
    for judge in (judges.by_schema, judges.by_multitool):
        said = judge(report)
        step.check(f"nothing is wrong with it {judge.__name__.replace('_', ' ')}", not said, said)
    fingerprints = [result["partialFingerprints"]["postern/v1"] for result in results]
    if "--group" in options:
        step.check("no fingerprint is there twice", len(set(fingerprints)) == len(fingerprints), len(fingerprints))
    else:
        step.check("the same denial twice has one fingerprint", len(set(fingerprints)) < len(fingerprints), len(fingerprints))


def cases(judges, step):
    report = judges.tested()
    step.check("it has the case that does not hold", len(report["runs"][0]["results"]) == 1, report)
    for judge in (judges.by_schema, judges.by_multitool):
        said = judge(report)
        step.check(f"nothing is wrong with it {judge.__name__.replace('_', ' ')}", not said, said)


def spoilt(judges, step):
    """A judge that finds nothing must be one that could."""
    report = judges.report([])
    for judge, spoil in (
        (judges.by_schema, lambda result: result.update(level="fatal")),
        (judges.by_multitool, lambda result: result.update(ruleIndex=10_000)),
        (judges.by_multitool, lambda result: result.pop("locations")),
    ):
        broken = copy.deepcopy(report)
        spoil(broken["runs"][0]["results"][0])
        said = judge(broken)
        step.check(f"what is wrong is found {judge.__name__.replace('_', ' ')}", bool(said), said)


def steps(_stage):
    for name, options in FORMS.items():
        yield Step(name, partial(valid, options))
    yield Step("cases of a policy test", cases)
    yield Step("the judges find what is wrong", spoilt)


@contextmanager
def judging(postern, directory):
    yield Judges(postern, directory)


def stages(options):
    yield "reports and their judges", partial(judging, options.postern), steps


if __name__ == "__main__":
    run(Suite("sarif", __doc__.splitlines()[0], stages, {}, {"--postern": executable(POSTERN)}))
