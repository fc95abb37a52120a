"""The recorded answers: where they are, what speaks in each, and what the official SDKs were seen to make of it."""

import base64
import json
import os
import struct
import zlib
from dataclasses import dataclass
from pathlib import Path

BESIDE = Path(__file__).resolve().parent.parent.parent / "../shared/fixtures"
SSE, FRAMES, JSON = "text/event-stream", "application/vnd.amazon.eventstream", "application/json"
# Where each vendor's SDK is pointed at, by the folder of its recordings; the first of a dialect is for all others.
BASES = {
    "anthropic": {"": "https://api.anthropic.com"},
    "chat": {
        "": "https://api.openai.com/v1",
        "azure-openai": "https://team.openai.azure.com/openai/v1",
        "deepseek": "https://api.deepseek.com",
        "groq": "https://api.groq.com/openai/v1",
        "mistral": "https://api.mistral.ai/v1",
        "ollama": "https://ollama.com/v1",
        "openrouter": "https://openrouter.ai/api/v1",
        "perplexity": "https://api.perplexity.ai",
        "xai": "https://api.x.ai/v1",
    },
    "responses": {"": "https://api.openai.com/v1", "azure-openai": "https://team.openai.azure.com/openai/v1"},
    "gemini": {"": "https://generativelanguage.googleapis.com"},
    "converse": {"": "https://bedrock-runtime.us-east-1.amazonaws.com"},
    "invoke": {"": "https://bedrock-runtime.us-east-1.amazonaws.com"},
}
MODELS = {
    "anthropic": "claude-sonnet-5",
    "chat": "gpt-5",
    "responses": "gpt-5",
    "gemini": "gemini-2.5-pro",
    "converse": "anthropic.claude-sonnet-4-5-20250929-v1:0",
    "invoke": "anthropic.claude-sonnet-4-5-20250929-v1:0",
}
PATHS = {
    "anthropic": ["/v1/messages", "/v1/messages"],
    "chat": ["/chat/completions", "/chat/completions"],
    "responses": ["/responses", "/responses"],
    "gemini": ["/v1beta/models/{}:generateContent", "/v1beta/models/{}:streamGenerateContent?alt=sse"],
    "converse": ["/model/{}/converse", "/model/{}/converse-stream"],
    "invoke": ["/model/{}/invoke", "/model/{}/invoke-with-response-stream"],
}
INVOKED = ["bedrock-invoke", "completion_streaming", "invoke_stream"]
# What ends a message of Anthropic.
END = b'"type":"message_stop"'
# Events before the answer and after its end, which nobody reads and the gateway leaves out.
IRREGULAR = ["anthropic/sdk/unknown_events.sse"]


@dataclass
class Recording:
    """One answer. `expected` has by SDK what was recorded of its reading; none where nobody recorded it."""

    name: str
    file: Path
    dialect: str
    stream: bool
    expected: dict
    # The name of what is the first of several answers, one after the other in this recording.
    several: str = ""

    @property
    def type(self):
        if not self.stream:
            return JSON
        return FRAMES if self.dialect in ("converse", "invoke") else SSE

    @property
    def base(self):
        bases = BASES[self.dialect]
        return bases.get(self.name.split("/")[0], bases[""])

    @property
    def model(self):
        return "amazon.titan-text-express-v1" if "titan" in self.name else MODELS[self.dialect]

    def url(self):
        """Where a client that is no SDK asks for it."""
        return self.base + PATHS[self.dialect][self.stream].format(self.model.replace(":", "%3A"))

    def body(self):
        """A small request of the dialect."""
        turns = {"role": "user", "content": [{"text": "go"}]}
        messages = [{"role": "user", "content": "go"}]
        claude = {"anthropic_version": "bedrock-2023-05-31", "max_tokens": 64, "messages": messages}
        named = {"model": self.model} | ({"stream": True} if self.stream else {})
        return {
            "anthropic": named | {"max_tokens": 64, "messages": messages},
            "chat": named | {"messages": messages},
            "responses": named | {"input": "go", "store": False},
            "gemini": {"contents": [{"role": "user", "parts": [{"text": "go"}]}]},
            "converse": {"messages": [turns]},
            "invoke": {"inputText": "go"} if "titan" in self.name else claude,
        }[self.dialect]


def directory():
    """Where the recordings are: what the environment says, or beside the repository; none where they are not."""
    place = Path(os.environ.get("POSTERN_RECORDINGS", BESIDE)).resolve()
    return place if (place / "INDEX.json").exists() else None


def load(place, made):
    """Every usable recording of `place`, by name; those that are framed anew for InvokeModel are written to `made`."""
    expected = {sdk: json.loads((place / f"expected-{sdk}-sdk.json").read_text())["files"] for sdk in ("python", "node")}
    matches = []
    for file in sorted(path for path in place.rglob("*") if path.suffix in (".sse", ".bin", ".json")):
        name = str(file.relative_to(place))
        output = {sdk: files[name] for sdk, files in expected.items() if name in files}
        if file.suffix == ".sse" and output:
            matches.append(Recording(name, file, output["python"]["api"], True, output))
            matches += [first(matches[-1], made)] if file.read_bytes().count(END) > 1 else []
        elif file.suffix == ".bin":
            matches.append(Recording(name, file, "invoke" if any(word in name for word in INVOKED) else "converse", True, {}))
        elif file.suffix == ".json" and not name.endswith((".request.json", ".meta.json", ".chunks.json")):
            dialect = whole(file)
            matches += [Recording(name, file, dialect, False, {})] if dialect else []
    alone = [each for each in matches if not each.several]
    matches += [framed(each, made) for each in alone if each.dialect == "anthropic" and has_calls(each)]
    matches += [
        Recording(f"invoke/{each.name}", each.file, "invoke", False, {})
        for each in matches
        if each.dialect == "anthropic" and not each.stream
    ]
    return {recording.name: recording for recording in matches}


def first(recording, made):
    """The first answer alone of a recording that holds several: the others stand behind its end."""
    recording.several = f"first/{recording.name}"
    sent = recording.file.read_bytes()
    file = made / f"first-{recording.name.replace('/', '-')}"
    file.write_bytes(sent[: sent.index(b"\n\n", sent.index(END)) + 2])
    return Recording(recording.several, file, recording.dialect, True, {})


def whole(file):
    """The dialect of an answer that came whole and calls tools; none of anything else."""
    answer = whole_answer(file.read_text())
    holds = lambda items, *words: any(word in json.dumps(item) for item in items for word in words)  # noqa: E731
    shapes = {
        "anthropic": answer.get("type") == "message" and holds(answer["content"], "tool_use"),
        "chat": answer.get("object") == "chat.completion" and holds(answer["choices"], '"tool_calls": [{'),
        "responses": answer.get("object") == "response" and holds(answer["output"], "_call"),
        "gemini": "candidates" in answer and holds(answer["candidates"], "functionCall"),
        "converse": "stopReason" in answer and "message" in answer["output"] and holds([answer], "toolUse"),
    }
    return next((dialect for dialect, is_it in shapes.items() if is_it), None)


def whole_answer(content):
    """The object that a file holds; an empty one if it holds none."""
    try:
        answer = json.loads(content)
    except ValueError:
        return {}
    return answer if isinstance(answer, dict) else {}


def has_calls(recording):
    return recording.stream and any(verdict.get("tool_calls") or verdict.get("server_calls") for verdict in recording.expected.values())


def framed(recording, made):
    """The events of a recorded Messages stream as InvokeModelWithResponseStream frames them."""
    lines = recording.file.read_text().splitlines()
    events = [line.removeprefix("data:").strip() for line in lines if line.startswith("data:")]
    file = made / f"{recording.name.replace('/', '-')}.bin"
    file.write_bytes(b"".join(frame(event) for event in events if '"ping"' not in event))
    return Recording(f"invoke/{recording.name}", file, "invoke", True, {})


def frame(event):
    """One message of an AWS event stream, its event type `chunk`."""
    headers = {":event-type": "chunk", ":content-type": "application/json", ":message-type": "event"}
    head = b"".join(
        struct.pack(">B", len(name)) + name.encode() + struct.pack(">BH", 7, len(value)) + value.encode()
        for name, value in headers.items()
    )
    payload = json.dumps({"bytes": base64.b64encode(event.encode()).decode(), "p": "abcdefgh"}).encode()
    prelude = struct.pack(">II", 16 + len(head) + len(payload), len(head))
    message = prelude + struct.pack(">I", zlib.crc32(prelude)) + head + payload
    return message + struct.pack(">I", zlib.crc32(message))
