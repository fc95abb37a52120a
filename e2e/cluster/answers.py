"""The answers of the stand-in for Anthropic: a thought, a harmless call of Bash, a dangerous one, or of Edit; as a stream or whole."""

import json

SAID = "I will tidy up first."
HARMLESS, DANGEROUS = "ls /workspace", "rm -rf / --no-preserve-root"
USAGE = {"input_tokens": 12, "output_tokens": 8}


def answer(path, body):
    """An answer to POST as bytes, its head too; `path` is anybody's but the Messages API's where it is echoed."""
    if path != "/v1/messages":
        return whole("application/json", json.dumps({"bytes": len(body)}))
    asked = json.loads(body)
    blocks = [{"type": "text", "text": SAID}]
    if [tool["name"] for tool in asked.get("tools", [])] == ["Edit"]:
        # The input is what was asked.
        blocks.append(call(1, "") | {"name": "Edit", "input": json.loads(asked["messages"][-1]["content"])})
    elif asked.get("tools"):
        blocks += [call(1, HARMLESS), call(2, DANGEROUS)]
    message = {
        "id": "msg_standin01", "type": "message", "role": "assistant", "model": asked["model"], "content": blocks,
        "stop_reason": "tool_use" if asked.get("tools") else "end_turn", "stop_sequence": None, "usage": USAGE,
    }  # fmt: skip
    if not asked.get("stream"):
        return whole("application/json", json.dumps(message))
    return whole("text/event-stream", "".join(f"event: {each['type']}\ndata: {json.dumps(each)}\n\n" for each in events(message)))


def call(number, command):
    return {"type": "tool_use", "id": f"toolu_standin0{number}", "name": "Bash", "input": {"command": command}}


def events(message):
    yield {"type": "message_start", "message": message | {"content": [], "stop_reason": None}}
    for index, block in enumerate(message["content"]):
        if block["type"] == "text":
            empty, deltas = (block | {"text": ""}, [{"type": "text_delta", "text": part} for part in halves(block["text"])])
        else:
            parts = halves(json.dumps(block["input"]))
            empty, deltas = (block | {"input": {}}, [{"type": "input_json_delta", "partial_json": part} for part in parts])
        yield {"type": "content_block_start", "index": index, "content_block": empty}
        yield from ({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas)
        yield {"type": "content_block_stop", "index": index}
    yield {"type": "message_delta", "delta": {"stop_reason": message["stop_reason"], "stop_sequence": None}, "usage": {"output_tokens": 8}}
    yield {"type": "message_stop"}


def halves(text):
    middle = len(text) // 2
    return [text[:middle], text[middle:]]


def whole(kind, text):
    return f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {len(text.encode())}\r\n\r\n{text}".encode()
