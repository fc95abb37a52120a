"""The alerts: loaded by a real Prometheus, about series that exist, silent but where this run gives them cause."""

import re
import subprocess
import sys

from prometheus import CHART
from steps import Step
from waiting import becomes

# What this run does on purpose: two policies that contradict each other, a bound that is reached, a collector that died.
CAUSED = {"PosternPolicyNotAccepted", "PosternLimitReached", "PosternSpansFailing"}
NAME = re.compile(r"\b(?:postern|process)_[a-z_]+")


def steps():
    yield Step("alerts ask for what is there", ask_for_what_exists)
    yield Step("no alert without a cause", silent)
    yield Step("each alert fires where it means to", fire)


def ask_for_what_exists(stage, step):
    scraped = set(stage.prometheus.ask("label/__name__/values"))
    for rule in rules(stage):
        step.check(f"{rule['name']} is evaluated", rule["health"] == "ok", rule.get("lastError") or rule["query"])
        missing = set(NAME.findall(rule["query"])) - scraped
        step.check(f"{rule['name']} asks for series that exist", not missing, missing or rule["query"])


def silent(stage, step):
    states = lambda: {rule["name"]: rule["state"] for rule in rules(stage) if rule["state"] != "inactive"}
    # Rules are evaluated each second, over what was scraped the second before.
    step.check("active are those that this run gave cause", becomes(lambda: set(states()) == CAUSED), states())
    firing = [rule["alerts"] for rule in rules(stage) if rule["name"] == "PosternLimitReached"]
    labels = [alert["labels"] for alerts in firing for alert in alerts]
    step.check("a limit that was reached is told with its pod", {"coder-0"} == {each["pod"] for each in labels}, labels)
    ends = stage.prometheus.ask("query", query="count by (namespace) (postern_operator_ca_not_after_timestamp_seconds)")
    shown = {each["metric"].get("namespace") for each in ends["result"]}
    step.check("the end of a CA is told of the namespace that it belongs to", shown == {"agents", "others"}, shown)


def fire(stage, step):
    done = subprocess.run([sys.executable, CHART.parents[1] / "e2e/run.py", "cluster/alerts"], capture_output=True, text=True, check=False)
    step.check("promtool agrees", done.returncode == 0, done.stdout + done.stderr)


def rules(stage):
    return [rule for group in stage.prometheus.ask("rules")["groups"] for rule in group["rules"]]
