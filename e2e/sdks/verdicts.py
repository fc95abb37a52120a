"""Reads a judge's verdict: its calls, its text without refusals, and how it must look after calls were denied."""

import json
import re
from dataclasses import dataclass

REFUSAL = re.compile(
    r"\[postern\] Tool call blocked by policy\nTool: .*\nRule: .*\nReason: .*\n.*(?:not available here|it unchanged)\.\n(?:Ask: .*\n)?Event: [0-9a-f-]{36}\n*"
)
# Another one at each asking.
EVENT = re.compile(r"(?:Ask: \S*?/why/[0-9a-f-]{36}(?:\\n|\n))?Event: [0-9a-f-]{36}")
# The items of Responses that carry no name are known by these.
NAMES = {
    "local_shell_call": "local_shell", "shell_call": "shell", "apply_patch_call": "apply_patch",
    "computer_call": "computer", "tool_search_call": "tool_search",
}
# Those that the provider carries out, and what is left out of a verdict's calls.
HOSTED = ["code_interpreter_call", "file_search_call", "image_generation_call", "web_search_call", "program"]
FOUND = ["executable_code", "tool_call", "grounding_metadata", "url_context_metadata"]
# What a stop reason that says "tool use" becomes where no call is left.
ENDS = {"tool_use": "end_turn", "tool_calls": "stop", "function_call": "stop"}


def without_ids(verdict):
    """The verdict as JSON, without the ids of refusals."""
    return EVENT.sub("Event:", json.dumps(verdict, sort_keys=True))


@dataclass(frozen=True)
class Call:
    """A call as an SDK hands it on; `given` is its input as JSON in one spelling, or the text of a custom tool."""

    id: str
    name: str
    given: str
    hosted: bool

    def is_named(self):
        """Whether rules know it by this name."""
        return self.name not in HOSTED + FOUND

    def arguments(self):
        """The input as an object; none where it is none."""
        try:
            value = json.loads(self.given)
        except ValueError:
            return None
        return value if isinstance(value, dict) else None


def calls(dialect, verdict):
    """Every call in a verdict, those that a client carries out first."""
    return CALLS[dialect](verdict)


def stopped(verdict):
    """Whether the gateway gave an answer up in the middle, and said so."""
    return not verdict["ok"] and "[postern]" in verdict["error"]


def same(before, after, stream):
    """Whether a body is as it was sent, but for the order of the events around one that was held."""
    if before == after or not stream:
        return before == after
    events = lambda body: sorted(filter(None, re.split(rb"(?:\r?\n)+(?:\r?\n)", body.strip())))  # noqa: E731
    return events(before) == events(after)


def text(dialect, verdict):
    """All text of an answer, that of several choices one after the other."""
    if dialect == "chat":
        return "".join(spoken(choice.get("content")) for choice in verdict["choices"])
    return verdict["text"]


def spoken(content):
    """The text of a message; some vendors send it in parts."""
    if isinstance(content, list):
        return "".join(part.get("text", "") for part in content)
    return content or ""


def differences(dialect, before, after, kept):
    """Returns what is wrong with a verdict, if only the calls `kept` may be left of those in `before`."""
    if not after["ok"]:
        return [f"rejected: {after['error']}"]
    matches, had = [], calls(dialect, before)
    if calls(dialect, after) != kept:
        matches.append(f"calls left: {calls(dialect, after)}, not {kept}")
    answer = text(dialect, after)
    refusals = len(REFUSAL.findall(answer))
    denied = [call for call in had if call not in kept]
    hosted = sum(call.hosted for call in denied)
    # What a provider found or fetched by itself may have a refusal of its own, or share one.
    if refusals < len(denied) - hosted + bool(hosted) or (refusals > len(denied) and not hosted):
        matches.append(f"{refusals} refusals for {len(denied)} denied calls")
    if REFUSAL.sub("", answer).strip() != text(dialect, before).strip():
        matches.append(f"the text became {REFUSAL.sub('', answer)[:80]!r}")
    wanted = stops(dialect, before)
    if not any(not call.hosted for call in kept):
        wanted = [ENDS.get(stop, stop) for stop in wanted] if had else wanted
    if stops(dialect, after) != wanted:
        matches.append(f"stop reasons {stops(dialect, after)}, not {wanted}")
    matches += [f"{key}: {after.get(key)}, not {before[key]}" for key in ("usage", "model") if key in before and after.get(key) != before[key]]
    return matches


def legible(dialect, verdict):
    """The calls without those whose input is cut off or is no JSON: these are denied whatever the rules say."""
    if dialect not in ("chat", "responses"):
        return calls(dialect, verdict)
    texts = {call.get("call_id") for call in verdict.get("tool_calls", []) if call["type"] == "custom_tool_call"}
    return [call for call in calls(dialect, verdict) if call.hosted or call.id in texts or not cut_off(call.given)]


def cut_off(given):
    try:
        json.loads(given)
    except ValueError:
        return bool(given)
    return False


def stops(dialect, verdict):
    if dialect == "chat":
        return [choice["finish"] for choice in verdict["choices"]]
    return verdict["finish"] if dialect == "gemini" else [verdict.get("stop", verdict.get("status"))]


def of_messages(verdict):
    of = lambda key, hosted: [Call(call.get("id"), call["name"], spelled(call["input"]), hosted) for call in verdict[key]]  # noqa: E731
    return of("tool_calls", False) + of("server_calls", True)


def of_chat(verdict):
    matches = []
    for choice in verdict["choices"]:
        legacy = [choice["function_call"] | {"id": None}] if choice["function_call"] else []
        matches += [Call(call["id"], call["name"], spelled(call["arguments"]), False) for call in choice["tool_calls"] + legacy]
    return matches


def of_responses(verdict):
    hosted = lambda call: call["type"] == "mcp_call" or f"{call['type']}_output" in verdict["items"]  # noqa: E731
    matches = [
        Call(call.get("call_id"), call.get("name") or NAMES.get(call["type"]), spelled(call.get("arguments")), hosted(call))
        for call in verdict["tool_calls"]
    ]
    matches += [Call(None, item, "null", True) for item in verdict["items"] if item in HOSTED]
    return sorted(matches, key=lambda call: call.hosted)


def of_gemini(verdict):
    # Parts without a name continue the call before them.
    calls = [call for call in verdict["tool_calls"] if call.get("name")]
    matches = [Call(call.get("id"), call["name"], spelled(call.get("args")), False) for call in calls]
    return matches + [Call(None, kind, "null", True) for kind in dict.fromkeys(verdict["hosted"])]


def of_converse(verdict):
    matches = [Call(call["id"], call["name"], spelled(call["input"]), call.get("type") == "server_tool_use") for call in verdict["tool_calls"]]
    return sorted(matches, key=lambda call: call.hosted)


def spelled(given):
    """One spelling of an input, which some SDKs give as JSON text and some as an object."""
    try:
        value = json.loads(given) if isinstance(given, str) else given
    except ValueError:
        return given
    return json.dumps(whole(value), sort_keys=True) if isinstance(value, (dict, list)) or value is None else given


def whole(value):
    """Returns the value with whole numbers as integers: some SDKs read 7 as 7.0."""
    if isinstance(value, dict):
        return {key: whole(each) for key, each in value.items()}
    if isinstance(value, list):
        return [whole(each) for each in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


CALLS = {
    "anthropic": of_messages, "invoke": of_messages, "chat": of_chat,
    "responses": of_responses, "gemini": of_gemini, "converse": of_converse,
}
