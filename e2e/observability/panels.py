"""Every query of every panel, as Grafana asks it, of a Prometheus that scrapes busy gateways."""

import json
import time

from busy import round_of
from pod import BESIDE, NAME
from prometheus import CHART
from steps import Step
from waiting import becomes

# What Grafana makes of them where gateways are scraped each second and both pods are chosen.
VARIABLES = {"$__rate_interval": "4s", "$__range": "5m", "$namespace": "agents", "$pod": f"({NAME}|{BESIDE})"}
# Counters that stand still where nothing goes wrong.
STILL = ["postern_ledger_dropped_total", "postern_operator_pods_deleted_total"]
PATIENCE = 180


def steps():
    yield Step("targets", targets)
    yield Step("panels have data", have_data)
    yield Step("variables have choices", have_choices)
    yield Step("the operator's view", operators_view)


def targets(stage, step):
    becomes(lambda: not stage.prometheus.down())
    step.check("gateways and operator are scraped", not stage.prometheus.down(), stage.prometheus.down() or "3 targets are up")


def have_data(stage, step):
    queries, number, wrong, deadline = list(asked()), 0, [], time.monotonic() + PATIENCE
    lacking = queries
    # Rounds of traffic until every query has what it asks for.
    while lacking and time.monotonic() < deadline:
        wrong += round_of(stage, number)
        number += 1
        lacking = [query for query in lacking if lacks(stage.prometheus, query[-1])]
    step.check(f"{number} rounds of traffic came out as they should", not wrong, wrong or "each exchange as meant")
    for dashboard, panel, query in queries:
        why = lacks(stage.prometheus, query) if (dashboard, panel, query) in lacking else ""
        step.check(f"{dashboard} / {panel}", not why, f"{why or 'has data'}: {query}")


def lacks(prometheus, query):
    """Returns why a query has no useful data, or nothing."""
    try:
        values = prometheus.values(query)
    except ValueError as error:
        return str(error)
    if not values:
        return "it has no data"
    may_stand_still = "rate(" not in query or any(name in query for name in STILL)
    return "" if may_stand_still or max(values) > 0 else "it never moves"


def asked():
    """Dashboard, panel and query of each, with variables substituted."""
    for file in sorted((CHART / "dashboards").glob("*.json")):
        dashboard = json.loads(file.read_text())
        for panel in dashboard["panels"]:
            for target in panel.get("targets", []):
                query = target["expr"]
                for name, value in VARIABLES.items():
                    query = query.replace(name, value)
                yield dashboard["title"], panel["title"], query


def have_choices(stage, step):
    for file in sorted((CHART / "dashboards").glob("*.json")):
        dashboard = json.loads(file.read_text())
        listed = {each["name"]: each for each in dashboard["templating"]["list"]}
        sources = {target["datasource"]["uid"] for panel in dashboard["panels"] for target in panel.get("targets", [])}
        step.check(f"{dashboard['title']} asks the chosen source", sources == {"${source}"} and "source" in listed, sources)
        for name, variable in listed.items():
            if variable["type"] == "query":
                selector, label = variable["query"].removeprefix("label_values(").removesuffix(")").rsplit(", ", 1)
                matches = stage.prometheus.ask(f"label/{label}/values", **{"match[]": selector.replace("$namespace", "agents")})
                wanted = {"namespace": ["agents"], "pod": [NAME, BESIDE]}[name]
                step.check(f"{dashboard['title']}: ${name}", matches == wanted, matches)


def operators_view(stage, step):
    seen = {
        'postern_operator_pods{state="enforcing"}': 1,
        'postern_operator_policies{accepted="true"}': 2,
        'postern_operator_policies{accepted="false"}': 1,
        "postern_operator_leader": 1,
    }
    for query, expected in seen.items():
        becomes(lambda query=query, expected=expected: latest(stage, query) == [expected])
        step.check(f"{query} is {expected}", latest(stage, query) == [expected], latest(stage, query))


def latest(stage, query):
    return [float(each["value"][1]) for each in stage.prometheus.ask("query", query=query)["result"]]
