"""Every alert of the chart fires where it means to and is silent in a healthy fleet, as promtool says.

python3 e2e/run.py cluster/alerts
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
RULES = ROOT / "charts" / "postern" / "alerts" / "postern.yaml"
# What to do about each alert is said there, under its name.
PAGE = ROOT / "docs" / "operating.md"
PUBLISHED = "https://github.com/postern-dev/postern/blob/main/docs/operating.md"
POD = 'namespace="agents",pod="coder-0"'
DAY = 86400

# The series of a fleet in which nothing is wrong, by minute: counters grow where they do in daily work.
HEALTHY = {
    f"postern_interception_proven{{{POD}}}": "1x120",
    f'postern_interception_info{{{POD},mode="Required"}}': "1x120",
    f"postern_policy_age_seconds{{{POD}}}": "90x120",
    f'postern_policy_reloads_total{{{POD},result="success"}}': "0+1x120",
    f'postern_policy_reloads_total{{{POD},result="failure"}}': "0x120",
    f"postern_files_unread_seconds{{{POD}}}": "0x120",
    f"postern_policy_unknown{{{POD}}}": "0x120",
    f"postern_leaf_rejected_total{{{POD}}}": "0x120",
    f'postern_upstream_errors_total{{{POD},class="tls"}}': "0x120",
    f'postern_limit_refusals_total{{{POD},limit="connections"}}': "0x120",
    f'postern_tool_calls_total{{{POD},provider="anthropic",tool="Bash",verdict="Deny"}}': "0x120",
    f'postern_ledger_dropped_total{{{POD},sink="queue",reason="queue_full"}}': "0x120",
    f'postern_spans_exported_total{{{POD},result="failure"}}': "0x120",
    'postern_operator_leader{pod="postern-operator-0"}': "1x120",
    'postern_operator_leader{pod="postern-operator-1"}': "0x120",
    'postern_operator_policies{accepted="true"}': "3x120",
    'postern_operator_policies{accepted="false"}': "0x120",
    'postern_operator_pods{state="enforcing"}': "7x120",
    'postern_operator_pods{state="drifting"}': "0x120",
    'postern_operator_pods{state="unreachable"}': "0x120",
    "postern_operator_pods_deleted_total": "0x120",
    'postern_operator_unguarded_pods{namespace="agents"}': "0x120",
    "postern_operator_gateway_restarts_total": "0x120",
    "postern_operator_gateway_back_offs_total": "0x120",
    "postern_operator_gateways_backing_off": "0x120",
    "postern_operator_statuses_checked_timestamp_seconds": "0+60x120",
    'postern_operator_reconciles_total{result="failure"}': "0x120",
    'postern_operator_webhook_requests_total{path="/pods/mutate",verdict="failed"}': "0x120",
    'postern_operator_ca_not_after_timestamp_seconds{namespace="agents"}': f"{4 * DAY}x120",
    "postern_operator_root_not_after_timestamp_seconds": f"{3000 * DAY}x120",
    "postern_operator_webhook_certificate_not_after_timestamp_seconds": f"{60 * DAY}x120",
}

# What goes wrong, and which alerts it means to raise.
WRONG = [
    ({f"postern_interception_proven{{{POD}}}": "0x120"}, ["PosternInterceptionUnproven"]),
    (
        {f'postern_interception_info{{{POD},mode="Required"}}': "_x120", f'postern_interception_info{{{POD},mode="Off"}}': "1x120"},
        ["PosternInterceptionOff"],
    ),
    ({f"postern_policy_age_seconds{{{POD}}}": "900x120"}, ["PosternPolicyStale"]),
    ({f"postern_policy_age_seconds{{{POD}}}": "50000x120"}, ["PosternPolicyStale", "PosternPolicyExpiring"]),
    ({f'postern_policy_reloads_total{{{POD},result="failure"}}': "0+1x120"}, ["PosternReloadFailing"]),
    ({f"postern_files_unread_seconds{{{POD}}}": "0+60x120"}, ["PosternFilesUnreadable"]),
    ({f"postern_policy_unknown{{{POD}}}": "1x120"}, ["PosternPolicyUnknown"]),
    ({f"postern_leaf_rejected_total{{{POD}}}": "0+1x120"}, ["PosternLeafRejected"]),
    ({f'postern_upstream_errors_total{{{POD},class="tls"}}': "0+1x120"}, ["PosternUpstreamUnverified"]),
    ({f'postern_limit_refusals_total{{{POD},limit="connections"}}': "0+1x120"}, ["PosternLimitReached"]),
    ({f'postern_tool_calls_total{{{POD},provider="anthropic",tool="Bash",verdict="Deny"}}': "0+5x120"}, ["PosternDenials"]),
    ({f'postern_ledger_dropped_total{{{POD},sink="queue",reason="queue_full"}}': "0+1x120"}, ["PosternEventsDropped"]),
    ({f'postern_spans_exported_total{{{POD},result="failure"}}': "0+1x120"}, ["PosternSpansFailing"]),
    ({'postern_operator_leader{pod="postern-operator-0"}': "0x120"}, ["PosternOperatorDown"]),
    ({'postern_operator_policies{accepted="false"}': "1x120"}, ["PosternPolicyNotAccepted"]),
    ({'postern_operator_pods{state="drifting"}': "2x120"}, ["PosternPodsDrifting"]),
    ({'postern_operator_pods{state="unreachable"}': "2x120"}, ["PosternPodsUnreachable"]),
    ({"postern_operator_pods_deleted_total": "0+1x120"}, ["PosternPodsDeleted"]),
    ({'postern_operator_unguarded_pods{namespace="agents"}': "3x120"}, ["PosternPodsUnguarded"]),
    ({"postern_operator_gateway_restarts_total": "0x55 1x60"}, ["PosternGatewayRestarting"]),
    # Ten seconds of waiting lie between two scrapes.
    ({"postern_operator_gateway_back_offs_total": "0x55 1x60"}, ["PosternGatewayBackOff"]),
    ({"postern_operator_gateways_backing_off": "1x120"}, ["PosternGatewayBackOff"]),
    ({"postern_operator_statuses_checked_timestamp_seconds": "0x120"}, ["PosternStatusesStale"]),
    ({'postern_operator_reconciles_total{result="failure"}': "0+1x120"}, ["PosternReconcileFailing"]),
    ({'postern_operator_webhook_requests_total{path="/pods/mutate",verdict="failed"}': "0+1x120"}, ["PosternWebhookFailing"]),
    ({'postern_operator_ca_not_after_timestamp_seconds{namespace="agents"}': f"{DAY}x120"}, ["PosternCaExpiring"]),
    ({"postern_operator_root_not_after_timestamp_seconds": f"{30 * DAY}x120"}, ["PosternRootExpiring"]),
    ({"postern_operator_webhook_certificate_not_after_timestamp_seconds": f"{3 * DAY}x120"}, ["PosternWebhookCertificateExpiring"]),
]


def main():
    written = names()
    untested = set(written) - {name for _, names in WRONG for name in names}
    tests = [test({}, [], written)] + [test(series, names, written) for series, names in WRONG]
    with tempfile.TemporaryDirectory() as place:
        suite = Path(place) / "suite.json"
        # JSON is YAML.
        suite.write_text(json.dumps({"rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": tests}))
        ran = subprocess.run(["promtool", "test", "rules", suite], capture_output=True, text=True, check=False)
    print(ran.stdout + ran.stderr, end="")
    wrong = [f"{name} has no test" for name in sorted(untested)] + list(unexplained(written))
    for what in wrong:
        print(f"FAIL  {what}")
    failed = len(wrong) + (ran.returncode != 0)
    print(f"{len(written)} alerts in {len(tests)} fleets: {'all as they should be' if not failed else 'not as they should be'}")
    return 1 if failed else 0


def names():
    """The names of all alerts; promtool itself checks the file."""
    subprocess.run(["promtool", "check", "rules", RULES], check=True, capture_output=True)
    lines = [line.strip() for line in RULES.read_text().splitlines()]
    return [line.removeprefix("- alert: ") for line in lines if line.startswith("- alert: ")]


def unexplained(written):
    """The alerts that lead to no section of the page, and the sections that no alert leads to."""
    sections = [line.removeprefix("### ") for line in PAGE.read_text().splitlines() if line.startswith("### Postern")]
    led = dict(runbooks())
    for name in written:
        # GitHub's anchor of a heading of one word is that word in lower case.
        expected = f"{PUBLISHED}#{name.lower()}"
        if led.get(name) != expected:
            yield f"{name} has no annotation `runbook_url: {expected}`"
        if name not in sections:
            yield f"{name} has no section `### {name}` in {PAGE.relative_to(ROOT)}"
    for name in sections:
        if name not in written:
            yield f"{PAGE.relative_to(ROOT)} explains {name}, and there is no such alert"


def runbooks():
    """The name and runbook of each alert that has one."""
    name = None
    for line in map(str.strip, RULES.read_text().splitlines()):
        if line.startswith("- alert: "):
            name = line.removeprefix("- alert: ")
        if line.startswith("runbook_url: "):
            yield name, line.removeprefix("runbook_url: ")


def test(changes, firing, every):
    """One fleet, looked at after an hour: exactly these alerts fire."""
    series = HEALTHY | changes
    samples = [{"labels": f'{{alertname="{name}"}}', "value": 1} for name in firing]
    assert set(firing) <= set(every), firing
    return {
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "promql_expr_test": [{"expr": 'count by (alertname) (ALERTS{alertstate="firing"})', "eval_time": "60m", "exp_samples": samples}],
    }


if __name__ == "__main__":
    sys.exit(main())
