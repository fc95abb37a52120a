"""Writes the chart's Grafana dashboards from the tables below.

python3 scripts/dashboards.py [--check]    # with --check: exit status 1 where a file is not what it would write
"""

import json
import sys
from pathlib import Path

DIRECTORY = Path(__file__).parents[1] / "charts" / "postern" / "dashboards"
SOURCE = {"type": "prometheus", "uid": "${source}"}
WIDTH, HEIGHT = 8, 8
# In the place of a unit: rows of labels with one number each.
TABLE = "table"

POD = '{namespace=~"$namespace",pod=~"$pod"}'
NAMESPACE = '{namespace=~"$namespace"}'


def rate(metric, by, selector="", verdicts=""):
    """The rate of a counter, summed by labels."""
    inside = ",".join(part for part in (selector.strip("{}"), verdicts) if part)
    return f"sum by ({by}) (rate({metric}{{{inside}}}[$__rate_interval]))"


def quantile(share, metric, selector=""):
    """A quantile of a histogram."""
    inside = selector.strip("{}")
    return f"histogram_quantile({share}, sum by (le) (rate({metric}_bucket{{{inside}}}[$__rate_interval])))"


def latency(title, metric, selector=""):
    """Median and 99th percentile of a histogram in seconds."""
    queries = [(quantile(0.5, metric, selector), "p50"), (quantile(0.99, metric, selector), "p99")]
    return (title, "s", queries)


def denials(by, selector=""):
    """Which rules deny, and where: the most of the chosen time as a table, and beside it when."""
    inside = ",".join(part for part in (selector.strip("{}"), 'verdict="Deny"') if part)
    series = f"postern_denials_total{{{inside}}}"
    # A series begins with its first denial, which `increase` does not see: of those that are new the whole counts.
    count = f"({series} unless {series} offset $__range) or increase({series}[$__range])"
    return [
        ("Rules that deny most", TABLE, [(f"topk(20, sum by ({by}) ({count}) > 0)", "")]),
        ("Denials by rule", "ops", [(f"topk(20, {rate('postern_denials_total', 'rule', inside)})", "{{rule}}")]),
        ("Denials by kind", "ops", [(rate("postern_denials_total", "kind, verdict", selector), "{{kind}} {{verdict}}")]),
    ]


# Title, unit, and queries with their legends; a row's title stands alone.
FLEET = [
    "Are all agents held?",
    ("Injected pods by state", "short", [("sum by (state) (postern_operator_pods)", "{{state}}")]),
    ("Interception proven", "short", [("sum(postern_interception_proven)", "proven"), ("count(postern_interception_proven)", "gateways")]),
    ("Pods deleted because they stayed unproven", "short", [("sum(increase(postern_operator_pods_deleted_total[1h]))", "in an hour")]),
    "Is policy in force?",
    ("Policies", "short", [("sum by (accepted) (postern_operator_policies)", "accepted {{accepted}}")]),
    ("Gateways by revision", "short", [("count by (namespace, revision) (postern_policy_info)", "{{namespace}} {{revision}}")]),
    ("Oldest policy", "s", [("max by (namespace) (postern_policy_age_seconds)", "{{namespace}}")]),
    ("Reconciliations", "ops", [(rate("postern_operator_reconciles_total", "result"), "{{result}}")]),
    ("Questions to the webhook", "ops", [(rate("postern_operator_webhook_requests_total", "path, verdict"), "{{path}} {{verdict}}")]),
    ("Certificates end in", "s", [
        ("min by (namespace) (postern_operator_ca_not_after_timestamp_seconds) - time()", "CA of {{namespace}}"),
        ("min(postern_operator_root_not_after_timestamp_seconds) - time()", "root"),
        ("min(postern_operator_webhook_certificate_not_after_timestamp_seconds) - time()", "webhook"),
    ]),
    "Which rule denies, and where",
    *denials("namespace, kind, rule"),
    "What goes through",
    ("Connections", "ops", [(rate("postern_connections_total", "action"), "{{action}}")]),
    ("Requests", "reqps", [(rate("postern_requests_total", "verdict"), "{{verdict}}")]),
    ("Upstream errors", "ops", [(rate("postern_upstream_errors_total", "class"), "{{class}}")]),
    latency("Added latency", "postern_added_latency_seconds"),
    ("Memory of gateways", "bytes", [("topk(10, process_resident_memory_bytes * on (namespace, pod) group_left () postern_build_info)", "{{namespace}}/{{pod}}")]),
    ("Events and spans lost", "ops", [
        (rate("postern_ledger_dropped_total", "sink, reason"), "event, {{sink}}, {{reason}}"),
        ('sum(rate(postern_spans_exported_total{result="failure"}[$__rate_interval]))', "span"),
    ]),
]

AGENT = [
    "What it asks",
    ("Requests by provider", "reqps", [(rate("postern_requests_total", "provider, api, verdict", POD), "{{provider}} {{api}} {{verdict}}")]),
    ("Tool calls", "ops", [(rate("postern_tool_calls_total", "tool, verdict", POD), "{{tool}} {{verdict}}")]),
    ("Hosted tools taken out", "ops", [(rate("postern_hosted_tools_stripped_total", "type", POD), "{{type}}")]),
    ("Tokens", "short", [(rate("postern_tokens_total", "model, type", POD), "{{model}} {{type}}")]),
    ("Credentials attached", "ops", [(rate("postern_credentials_attached_total", "credential", POD), "{{credential}}")]),
    ("Names it asked for", "ops", [(rate("postern_dns_questions_total", "answer", POD), "{{answer}}")]),
    "Which rule denies",
    *denials("pod, kind, rule", POD),
    "Connections",
    ("By action", "ops", [(rate("postern_connections_total", "mode, action", POD), "{{mode}} {{action}}")]),
    ("Open", "short", [(f"sum by (pod) (postern_connections_open{POD})", "{{pod}}")]),
    ("Why they ended", "ops", [(rate("postern_connections_closed_total", "reason", POD), "{{reason}}")]),
    "Speed",
    latency("Requests", "postern_request_duration_seconds", POD),
    latency("First byte", "postern_time_to_first_byte_seconds", POD),
    latency("Added by the gateway", "postern_added_latency_seconds", POD),
    "The gateway itself",
    ("CPU", "percentunit", [(rate("process_cpu_seconds_total", "pod", POD), "{{pod}}")]),
    ("Memory, and bodies held in it", "bytes", [
        (f"sum by (pod) (process_resident_memory_bytes{POD})", "{{pod}}"),
        (f"sum by (pod) (postern_buffered_bytes{POD})", "{{pod}}, bodies"),
    ]),
    ("Policy age", "s", [(f"max by (pod) (postern_policy_age_seconds{POD})", "{{pod}}")]),
]

POLICY = [
    "Which rule denies, and where",
    *denials("rule, kind, pod", NAMESPACE),
    "What is denied",
    ("Requests", "reqps", [(rate("postern_requests_total", "verdict", NAMESPACE, 'verdict!="Allow"'), "{{verdict}}")]),
    ("Tool calls", "ops", [(rate("postern_tool_calls_total", "tool, verdict", NAMESPACE, 'verdict!="Allow"'), "{{tool}} {{verdict}}")]),
    ("Connections", "ops", [(rate("postern_connections_total", "pod", NAMESPACE, 'action="Deny"'), "{{pod}}")]),
    ("Names that no rule names", "ops", [(rate("postern_dns_questions_total", "pod", NAMESPACE, 'answer="nxdomain"'), "{{pod}}")]),
    ("Bounds and limits reached", "ops", [(rate("postern_limit_refusals_total", "limit", NAMESPACE), "{{limit}}")]),
    ("Clients that reject the leaf", "ops", [(rate("postern_leaf_rejected_total", "pod", NAMESPACE), "{{pod}}")]),
    "What is changed",
    ("Hosted tools taken out", "ops", [(rate("postern_hosted_tools_stripped_total", "provider, type", NAMESPACE), "{{provider}} {{type}}")]),
    ("Credentials attached", "ops", [(rate("postern_credentials_attached_total", "credential", NAMESPACE), "{{credential}}")]),
    ("Tokens", "short", [(rate("postern_tokens_total", "provider, type", NAMESPACE), "{{provider}} {{type}}")]),
    "Is it in force?",
    ("Gateways by revision", "short", [(f"count by (revision) (postern_policy_info{NAMESPACE})", "{{revision}}")]),
    ("Reloads", "ops", [(rate("postern_policy_reloads_total", "result", NAMESPACE), "{{result}}")]),
    ("Oldest", "s", [(f"max by (pod) (postern_policy_age_seconds{NAMESPACE})", "{{pod}}")]),
]

DASHBOARDS = {
    "fleet": ("Postern / Fleet", FLEET, []),
    "agent": ("Postern / Agent", AGENT, ["namespace", "pod"]),
    "policy": ("Postern / Policy", POLICY, ["namespace"]),
}


def main():
    stale = []
    for name, (title, panels, variables) in DASHBOARDS.items():
        path = DIRECTORY / f"{name}.json"
        text = json.dumps(dashboard(name, title, panels, variables), indent=1) + "\n"
        if "--check" in sys.argv[1:]:
            if not path.exists() or path.read_text() != text:
                stale.append(path.name)
        else:
            DIRECTORY.mkdir(exist_ok=True)
            path.write_text(text)
    for name in stale:
        print(f"charts/postern/dashboards/{name} is not what scripts/dashboards.py says: run `just generate`", file=sys.stderr)
    return 1 if stale else 0


def dashboard(name, title, panels, variables):
    """A dashboard in the model of Grafana 10 and later."""
    return {
        "uid": f"postern-{name}",
        "title": title,
        "tags": ["postern"],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {"list": [data_source()] + [variable(label) for label in variables]},
        "links": [{"type": "dashboards", "tags": ["postern"], "title": "Postern", "asDropdown": True}],
        "panels": list(placed(panels)),
    }


def data_source():
    return {"name": "source", "type": "datasource", "query": "prometheus", "label": "Source"}


def variable(label):
    """A choice among the values of a label; `pod` is narrowed by `namespace`."""
    selector = '{namespace=~"$namespace"}' if label == "pod" else ""
    return {
        "name": label,
        "type": "query",
        "datasource": SOURCE,
        "query": f"label_values(postern_policy_info{selector}, {label})",
        "refresh": 2,
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "current": {"text": "All", "value": "$__all"},
    }


def placed(panels):
    """Rows across the whole width, three panels beside each other below each."""
    x = y = 0
    for number, panel in enumerate(panels, 1):
        if isinstance(panel, str):
            y += HEIGHT if x else 0
            yield {"id": number, "type": "row", "title": panel, "collapsed": False, "panels": [], "gridPos": {"h": 1, "w": 24, "x": 0, "y": y}}
            x, y = 0, y + 1
            continue
        yield drawn(number, panel, {"h": HEIGHT, "w": WIDTH, "x": x, "y": y})
        x += WIDTH
        if x == 24:
            x, y = 0, y + HEIGHT


def drawn(number, panel, place):
    title, unit, queries = panel
    if unit == TABLE:
        return table(number, title, queries, place)
    return {
        "id": number,
        "type": "timeseries",
        "title": title,
        "datasource": SOURCE,
        "gridPos": place,
        "fieldConfig": {"defaults": {"unit": unit, "min": 0, "custom": {"fillOpacity": 10}}, "overrides": []},
        "options": {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi"}},
        "targets": [
            {"refId": chr(ord("A") + index), "datasource": SOURCE, "expr": query, "legendFormat": legend}
            for index, (query, legend) in enumerate(queries)
        ],
    }


def table(number, title, queries, place):
    """The labels of each series and its value now, the largest first."""
    return {
        "id": number,
        "type": "table",
        "title": title,
        "datasource": SOURCE,
        "gridPos": place,
        "fieldConfig": {"defaults": {"unit": "short", "decimals": 0}, "overrides": []},
        "options": {"sortBy": [{"displayName": "Count", "desc": True}]},
        "transformations": [
            {"id": "organize", "options": {"excludeByName": {"Time": True}, "renameByName": {"Value": "Count"}}}
        ],
        "targets": [
            {"refId": chr(ord("A") + index), "datasource": SOURCE, "expr": query, "instant": True, "range": False, "format": "table"}
            for index, (query, _) in enumerate(queries)
        ],
    }


if __name__ == "__main__":
    sys.exit(main())
