"""The normal form in which requests and answers are compared: what a model or an agent reads, not how it is written."""

import json

# How the texts of several parts are one: a blank line in what the system says, a line break elsewhere.
JOINTS = {"system": "\n\n"}
POSTERN = "postern.1."


def request(result):
    """A Chat request: without the model's name and empty fields, texts in parts joined, arguments parsed."""
    if "error" in result:
        return {"error": reason(result["error"])}
    result = json.loads(json.dumps(result), parse_float=number)
    fields = {key: value for key, value in result["request"].items() if value not in (None, []) and key not in ("model", "messages")}
    if fields.get("stream") is False:
        del fields["stream"]
    return fields | {"messages": [message(each) for each in result["request"]["messages"]]}


def number(written):
    """JSON has one kind of number: 1.0 is 1."""
    return int(float(written)) if float(written).is_integer() else float(written)


def reason(error):
    """The line of an error of the gateway that says why, or the first line of another one."""
    try:
        lines = json.loads(error.split(" ", 1)[1])["error"]["message"].splitlines()
    except (ValueError, LookupError, TypeError):
        return error.splitlines()[0]
    return "; ".join([error[:3], *(line for line in lines if line.startswith(("Class: ", "Reason: ")))])


def message(each):
    normal = {key: value for key, value in each.items() if value is not None or key == "content"}
    if isinstance(each.get("content"), list):
        normal |= parts(each["content"], JOINTS.get(each["role"], "\n"))
    if "tool_calls" in each:
        normal["tool_calls"] = [call(tool_call) for tool_call in each["tool_calls"]]
    return normal


def parts(several, joint):
    """A string if all are texts; what text parts say beside their text stands in `beside`."""
    joined, beside = [], {}
    for part in several:
        if not isinstance(part, dict) or part.get("type") != "text":
            joined.append(part)
            continue
        beside |= {key: value for key, value in part.items() if key not in ("type", "text") and value is not None}
        if joined and joined[-1].get("type") == "text":
            joined[-1] = {"type": "text", "text": joined[-1]["text"] + joint + part["text"]}
        else:
            joined.append({"type": "text", "text": part["text"]})
    is_text = len(joined) == 1 and joined[0].get("type") == "text"
    return {"content": joined[0]["text"] if is_text else joined} | ({"beside": beside} if beside else {})


def call(tool_call):
    function = tool_call["function"]
    return tool_call | {"function": function | {"arguments": parsed(function["arguments"])}}


def parsed(text):
    """JSON, or the text itself where it is none."""
    try:
        return json.loads(text, parse_float=number)
    except ValueError:
        return text


def answer(result, given):
    """A message: its blocks, why it stopped, its usage, and what is wrong with its events; `given` is the Chat answer."""
    if "error" in result:
        return {"error": reason(result["error"])}
    whole = collected(result["events"]) if "events" in result else {"message": result["message"], "wrong": []}
    reply = whole["message"]
    if reply.get("type") == "error":
        return {"error": reply["error"]["type"]}
    usage = reply.get("usage") or {}
    names = ["input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"]
    return {
        "blocks": [block(each, given) for each in reply["content"]],
        "stop_reason": reply.get("stop_reason"),
        "stop_sequence": reply.get("stop_sequence"),
        "usage": {name: usage.get(name) or 0 for name in names},
        "wrong": whole["wrong"],
    } | ({"failed": whole["failed"]} if "failed" in whole else {})


def block(each, given):
    normal = {key: value for key, value in each.items() if value is not None and key not in ("caller", "provider_specific_fields")}
    if "id" in normal and f'"{normal["id"]}"' not in given:
        normal["id"] = "(made)"
    if "tool_use_id" in normal and f'"{normal["tool_use_id"]}"' not in given:
        normal["tool_use_id"] = "(made)"
    if normal["type"] == "thinking":
        signature = normal.pop("signature", "")
        normal["signed"] = "by the gateway" if signature.startswith(POSTERN) else "otherwise" if signature else "no"
    return normal


# What each event adds to the block that it is of.
DELTAS = {
    "text_delta": ("text", "text"),
    "thinking_delta": ("thinking", "thinking"),
    "signature_delta": ("signature", "signature"),
    "input_json_delta": ("json", "partial_json"),
}
HOLDERS = {"text": ["text_delta"], "thinking": ["thinking_delta", "signature_delta"], "tool_use": ["input_json_delta"]}


class Collector:
    """A strict reader of a Messages stream: one open block at a time, indices without gaps, each closed once, one end."""

    def __init__(self):
        self.message, self.open, self.wrong, self.ended, self.failed = None, None, [], 0, None

    def complain(self, what):
        if what not in self.wrong:
            self.wrong.append(what)

    def read(self, name, event):
        if name != event["type"]:
            self.complain("an event has two names")
        if self.failed or self.ended == 2:
            self.complain("an event stands behind the end")
        if self.message is None and name not in ("message_start", "error", "ping"):
            self.complain("an event stands before the start")
            self.message = {"content": []}
        getattr(self, f"_{name}", self._unknown)(event)

    def _unknown(self, event):
        self.complain(f"an event of the type {event['type']}")

    def _ping(self, _):
        pass

    def _message_start(self, event):
        if self.message is not None:
            self.complain("a second start")
        self.message = event["message"]

    def _content_block_start(self, event):
        if self.open is not None:
            self.complain("a block begins in an open one")
        if event["index"] != len(self.message["content"]):
            self.complain("indices have gaps")
        self.open = event["index"]
        self.message["content"].append(event["content_block"] | {"json": "", "index": event["index"]})

    def _content_block_delta(self, event):
        blocks = [each for each in self.message["content"] if each.get("index") == event["index"]]
        if event["index"] != self.open:
            self.complain("a piece for a block that is not open")
        if not blocks:
            return
        kind = event["delta"]["type"]
        if kind not in HOLDERS.get(blocks[0]["type"], []):
            self.complain(f"{kind} in a block of {blocks[0]['type']}")
        into, out_of = DELTAS[kind]
        piece = event["delta"][out_of]
        if not isinstance(piece, str):
            self.complain(f"{kind} without a text")
            piece = json.dumps(piece)
        blocks[0][into] = blocks[0].get(into, "") + piece

    def _content_block_stop(self, event):
        if event["index"] != self.open:
            self.complain("a block ends that is not open")
        self.open = None

    def _message_delta(self, event):
        if self.ended:
            self.complain("a second end")
        self.ended = 1
        self.message |= event["delta"]
        self.message["usage"] = (self.message.get("usage") or {}) | (event.get("usage") or {})

    def _message_stop(self, _):
        if self.open is not None:
            self.complain("the message ends in an open block")
        if not self.ended:
            self.complain("the message ends without a reason")
        self.ended = 2

    def _error(self, event):
        self.failed = event.get("error", {}).get("type", "of no kind")

    def finished(self):
        """The message whole; an error in a stream is `failed`."""
        if self.ended != 2 and not self.failed:
            self.complain("the stream has no end")
        message = self.message or {"content": []}
        for each in message["content"]:
            text = each.pop("json")
            each.pop("index")
            if each["type"] == "tool_use":
                each["input"] = parsed(text) if text else each["input"]
        return {"message": message, "wrong": self.wrong} | ({"failed": self.failed} if self.failed else {})


def collected(text):
    collector = Collector()
    for event in text.replace("\r\n", "\n").split("\n\n"):
        lines = dict(line.split(": ", 1) for line in event.split("\n") if ": " in line)
        if "data" in lines:
            collector.read(lines.get("event"), json.loads(lines["data"]))
    return collector.finished()
