"""Spans of both protocols as Jaeger has them, and what becomes of traffic when it dies."""

import json
import secrets
import time

import answers
import jaeger
from agent import MODEL, PROMPT
from busy import round_of
from pod import NODE_ADDRESS
from stage import KEY
from steps import Step
from waiting import becomes

SECRETS = [PROMPT, KEY, answers.SAID, answers.HARMLESS, answers.DANGEROUS]
WANTED = {
    "gen_ai.operation.name": "chat",
    "gen_ai.provider.name": "anthropic",
    "gen_ai.request.model": MODEL,
    "gen_ai.response.model": MODEL,
    "gen_ai.response.id": "msg_standin01",
    "gen_ai.usage.input_tokens": 12,
    "gen_ai.usage.output_tokens": 8,
    "http.response.status_code": 200,
    "server.address": "api.anthropic.com",
    "span.kind": "client",
}


def steps():
    yield Step("spans by gRPC", lambda stage, step: arrives(step, stage, stage.gateway, stage.agent, "grpc"))
    yield Step("spans by HTTP", lambda stage, step: arrives(step, stage, stage.beside, stage.proxied, "http"))
    yield Step("the collector dies", collector_dies)


def arrives(step, stage, gateway, agent, protocol):
    trace, parent = secrets.token_hex(16), secrets.token_hex(8)
    started = time.time_ns()
    status, answer = agent.chat(f"00-{trace}-{parent}-01")
    step.check("the turn is answered, the dangerous call replaced", status == 200 and "no-force-remove" in answer, answer[-300:])
    owned = {"traceId": trace, "spanId": parent, "name": "turn", "kind": 1}
    jaeger.give(NODE_ADDRESS, owned | {"startTimeUnixNano": str(started), "endTimeUnixNano": str(time.time_ns())})
    arrived = becomes(lambda: whole(jaeger.trace(trace)))
    if not step.check(f"by {protocol} a span joins the agent's in Jaeger", arrived, jaeger.trace(trace)):
        return
    spans = {span["spanID"]: span for span in arrived["spans"]}
    (ours,) = [span for identity, span in spans.items() if identity != parent]
    references = [(each["refType"], each["spanID"]) for each in ours["references"]]
    step.check("it is a child of the agent's", references == [("CHILD_OF", parent)] and not arrived["warnings"], references)
    step.check("it is named as the conventions have it", ours["operationName"] == f"chat {MODEL}", ours["operationName"])
    tags = {each["key"]: each["value"] for each in ours["tags"]}
    differ = {name: tags.get(name) for name, value in WANTED.items() if tags.get(name) != value}
    step.check("it has gen_ai.* and what was asked of whom", not differ, differ or tags)
    verdicts = [event for event in map(fields, ours["logs"]) if event["event"] == "postern.decision"]
    calls = [(event.get("gen_ai.tool.name"), event["postern.verdict"]) for event in verdicts]
    denied = [event for event in verdicts if event["postern.verdict"] == "Deny"]
    step.check("each call's decision is an event of the span", ("Bash", "Allow") in calls and ("Bash", "Deny") in calls, calls)
    step.check("the denial names its rule", [each["postern.rule"] for each in denied] == ["agents/coding-agents/no-force-remove"], denied)
    changed = sorted(event["postern.transform"] for event in map(fields, ours["logs"]) if event["event"] == "postern.transform")
    step.check("what was changed is an event too, once", changed == ["credential", "hosted-tool"], changed)
    resource = fields({"fields": arrived["processes"][ours["processID"]]["tags"]})
    step.check("the resource names the pod", resource.get("k8s.pod.name") == gateway.name, resource)
    text = json.dumps(arrived)
    step.check("no prompt, answer, command or key is in it", not [each for each in SECRETS if each in text], f"{len(text)} bytes")
    step.check("the upstream saw the key all the same", stage.upstream.keys == {KEY}, len(stage.upstream.keys))
    # Jaeger may have it before the gateway has Jaeger's answer.
    exported = becomes(lambda: gateway.metric(EXPORTED, result="success"))
    step.check("the export is counted", exported, exported)


def collector_dies(stage, step):
    gateways = [stage.gateway, stage.beside]
    before = [counted(gateway) for gateway in gateways]
    reference = asked(stage)
    stage.collector_dies()
    wrong = round_of(stage, 0)
    step.check("traffic goes on", not wrong, wrong)
    for gateway in gateways:
        failed = becomes(lambda gateway=gateway: gateway.metric(EXPORTED, result="failure"))
        step.check(f"{gateway.name} counts what it could not export", failed, failed)
    seconds = asked(stage)
    # Whoever waited for the collector would have no answer before the agent's own patience ends.
    step.check("nobody waits for it: each has its answer", len(seconds) == 2, f"after {seconds} s, {reference} s while it lived")
    after = [counted(gateway) for gateway in gateways]
    step.check("nothing else is lost", before == after and all(gateway.is_ready() for gateway in gateways), after)


def asked(stage):
    """Seconds until each agent has an answer."""
    seconds = []
    for agent in (stage.agent, stage.proxied):
        began = time.monotonic()
        agent.ask("api.example.com", "GET", "/open/this?key=canary")
        seconds.append(round(time.monotonic() - began, 2))
    return seconds


def counted(gateway):
    """Returns the counters that a dead collector must not change."""
    return {
        "events dropped": gateway.metric("postern_ledger_dropped_total"),
        "internal failures": gateway.metric("postern_connections_closed_total", reason="internal"),
        "failed reloads": gateway.metric("postern_policy_reloads_total", result="failure"),
    }


def whole(found):
    """A trace with both spans."""
    return found if found and len(found["spans"]) == 2 else None


def fields(event):
    return {each["key"]: each["value"] for each in event["fields"]}


EXPORTED = "postern_spans_exported_total"
