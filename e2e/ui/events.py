"""Events of a made-up week: sessions of several pods, models, tools and denials, the same on every run."""

import json
import random

START = 1_795_305_600_000
MODELS = [("anthropic", "api.anthropic.com", "claude-sonnet-5-5"), ("anthropic", "api.anthropic.com", "claude-opus-5"), ("openai", "api.openai.com", "gpt-6")]
TOOLS = [("Bash", "no-sudo", "Nothing is run as root"), ("Read", "no-private-keys", "Private keys stay where they are"), ("Edit", None, None), ("mcp__github__create_issue", "issues-only-by-people", "Issues are written by people")]
PLACES = [("pypi.org", "GET", "/simple/requests/", 200), ("registry.npmjs.org", "GET", "/left-pad", 200), ("api.github.com", "POST", "/repos/acme/app/issues", 403)]
HOSTILE = {
    "markup": "<script>document.title='stolen'</script><img src=x onerror=\"document.title='stolen'\">",
    "right to left": "\u202egnp.exe\u202c \u05e9\u05dc\u05d5\u05dd \u0645\u0631\u062d\u0628\u0627",
    "long": "x" * 10_000,
    "controls": "a\u001b[2J\u0000b\nc",
    "combining": "e" + "\u0301" * 400,
}


class Story:
    """Numbers events as they are told."""

    def __init__(self, seed=1):
        self.number, self.random = 0, random.Random(seed)

    def uuid(self, millis, of=0):
        self.number += 1
        return f"{millis:012x}"[:8] + "-" + f"{millis:012x}"[8:] + f"-7{of:03x}-8000-{self.number:012x}"

    def event(self, millis, kind, verdict, rule=None, reason=None, **more):
        decision = {"verdict": verdict} | ({"rule": rule} if rule else {}) | ({"reason": reason} if reason else {})
        decision |= {"enforcement": "Audit" if verdict == "WouldDeny" else "Enforce"}
        direction = "Inbound" if kind in ("ToolCall", "Response") else "Outbound"
        return {
            **{"apiVersion": "postern.dev/event/v1", "id": self.uuid(millis), "time": stamp(millis), "sequence": self.number},
            **{"start": "01a2008d-0000-7000-8000-000000000001", "count": 1, "kind": kind, "direction": direction},
            **more,
            "decision": decision,
        }

    def turn(self, millis, session, pod, model):
        """A request to a model, its tool calls and its answer."""
        name, host, model = model
        exchange = self.uuid(millis, 1)
        shared = {
            **{"session": session, "workload": {"namespace": "agents", "pod": pod, "serviceAccount": "coder"}},
            "destination": {"host": host, "port": 443, "action": "Inspect", "intercepted": True},
            "provider": {"name": name, "api": "messages", "model": model, "stream": True},
            "exchange": exchange,
        }
        http = {"method": "POST", "path": "/v1/messages", "version": "HTTP/2"}
        rule = "agents/coding-agents/models"
        yield self.event(millis, "Request", "Allow", rule, **shared, http=http, payload={"bytes": self.random.randrange(20_000, 400_000), "bodyRetained": False})
        for _ in range(self.random.choice([0, 1, 1, 2, 3])):
            millis += self.random.randrange(200, 4000)
            tool, denier, reason = self.random.choice(TOOLS)
            verdict = self.random.choices(["Allow", "Deny", "WouldDeny", "Audit"], [30, 2, 1, 1])[0] if denier else "Allow"
            call = {"id": f"toolu_{self.number}", "name": tool, "kindsBy": "Catalogue", "inputSha256": "00ff" * 16, "inputBytes": self.random.randrange(20, 900)}
            by = {"rule": f"agents/coding-agents/{denier}", "reason": reason} if verdict != "Allow" else {"rule": rule}
            yield self.event(millis, "ToolCall", verdict, **by, **shared, toolCall=call)
        millis += self.random.randrange(500, 9000)
        tokens = self.random.randrange(8_000, 90_000)
        usage = {"inputTokens": tokens, "outputTokens": self.random.randrange(50, 3_000), "cacheReadTokens": int(tokens * self.random.uniform(0.5, 0.97))}
        yield self.event(millis, "Response", "Allow", rule, **shared, http=http | {"status": 200}, usage=usage, payload={"bytes": usage["outputTokens"] * 40, "bodyRetained": False})

    def visit(self, millis, pod):
        """A request to another host, or a connection that is refused."""
        host, method, path, status = self.random.choice(PLACES)
        shared = {"workload": {"namespace": "agents", "pod": pod, "serviceAccount": "coder"}}
        if self.random.random() < 0.3:
            host = self.random.choice(["paste.example.org", "telemetry.example.com", "169.254.169.254"])
            to = {"host": host, "port": 443, "action": "Deny", "intercepted": False}
            count = self.random.choice([1, 1, 1, 12])
            yield self.event(millis, "Connection", "Deny", None if "." in host[:3] else "postern/builtin/default-deny", "no rule allows this host", **shared, destination=to) | {"count": count, "last": stamp(millis + 800 * count)}
            return
        denied = status == 403
        to = {"host": host, "port": 443, "action": "Inspect", "intercepted": True}
        rule, reason = ("agents/coding-agents/github", "the endpoint is not listed") if denied else ("agents/coding-agents/packages", None)
        yield self.event(millis, "Request", "Deny" if denied else "Allow", rule, reason, **shared, destination=to, http={"method": method, "path": path, "status": status, "version": "HTTP/2"}, exchange=self.uuid(millis, 2))


def week(sessions=14, turns=25, seed=1, start=START):
    """Events in the order of their time."""
    story, told = Story(seed), []
    for number in range(sessions):
        pod, model = f"coder-{number % 4}", story.random.choice(MODELS)
        millis = start + story.random.randrange(0, 6 * 3_600_000)
        label = f"{story.random.getrandbits(32):08x}-{story.random.getrandbits(16):04x}-session-{number}"
        for _ in range(story.random.randrange(turns // 3, turns * 2)):
            told += story.turn(millis, label, pod, model)
            if story.random.random() < 0.2:
                told += story.visit(millis, pod)
            millis += story.random.randrange(5_000, 180_000)
    return sorted(told, key=lambda event: event["time"])


def many(count):
    """So many events, a few kilobytes of texts."""
    told = []
    while len(told) < count:
        told += week(sessions=60, turns=60, seed=len(told))
    return told[:count]


def hostile(start=START + 8 * 3_600_000):
    """Events whose every text is what somebody hostile chose."""
    story = Story(7)
    for text in HOSTILE.values():
        shared = {
            **{"session": text, "workload": {"namespace": text, "pod": text}},
            "destination": {"host": text, "port": 443, "action": "Inspect", "intercepted": True, "reason": text},
            "provider": {"name": text, "api": text, "model": text},
            "http": {"method": text[:64], "path": f"/{text}", "status": 200, "version": "HTTP/2"},
            "exchange": story.uuid(start, 3),
        }
        for kind in ("Request", "ToolCall", "Response", "Policy"):
            start += 1000
            call = {"toolCall": {"id": text, "name": text, "inputBytes": 1, "input": text, "command": text}} if kind == "ToolCall" else {}
            usage = {"usage": {"inputTokens": 5, "outputTokens": 7}} if kind == "Response" else {}
            yield story.event(start, kind, "Deny", text, text, **shared, **call, **usage)


def lines(events):
    return "".join(json.dumps(event) + "\n" for event in events)


def stamp(millis):
    seconds, rest = divmod(millis, 1000)
    import datetime

    return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S") + f".{rest:03}Z"
