"""The recorded conversations that hold results of tools: each request is sent through the gateway that compresses."""

import http.client
import json
import os
import ssl
from dataclasses import asdict, dataclass
from pathlib import Path

from standin import DIALECTS

BESIDE = Path(__file__).resolve().parents[2] / "../shared/fixtures"
# Where a recorded request of each dialect is sent.
PATHS = {
    "api.anthropic.com": "/v1/messages",
    "api.openai.com": "/v1/responses",
    "generativelanguage.googleapis.com": "/v1beta/models/gemini-2.5-pro:generateContent",
}
BYTES = 4


@dataclass
class Recorded:
    """The results in one recorded request: how many, the tokens of all and of the longest, and how they were when they arrived."""

    name: str
    dialect: str
    results: int
    longest: int
    before: int
    # None where the gateway let the request not through, or it speaks a dialect that no agent here does.
    after: int | None

    def as_dict(self):
        return asdict(self)


def measured(stage, gateway):
    directory = Path(os.environ.get("POSTERN_RECORDINGS") or BESIDE)
    found = []
    for file in sorted(directory.rglob("*.json")):
        try:
            asked = json.loads(file.read_text())
        except ValueError:
            continue
        host, sizes = results(asked)
        if not sizes:
            continue
        after = sent(stage, gateway, host, asked) if host in PATHS else None
        name = str(file.relative_to(directory))
        found.append(Recorded(name, host, len(sizes), max(sizes) // BYTES, sum(sizes) // BYTES, None if after is None else sum(after) // BYTES))
    return found


def results(asked):
    """The host whose dialect a request speaks, and the bytes of each result in it."""
    if not isinstance(asked, dict):
        return "", []
    for host, key in (("generativelanguage.googleapis.com", "contents"), ("api.openai.com", "input")):
        if isinstance(asked.get(key), list):
            try:
                return host, [len(text.encode()) for text in DIALECTS[host].results(asked)]
            except (KeyError, AttributeError, TypeError):
                return host, []
    messages = [message for message in asked.get("messages") or [] if isinstance(message, dict)]
    chat = [len(json.dumps(message.get("content"))) for message in messages if message.get("role") == "tool"]
    blocks = [block for message in messages if isinstance(message.get("content"), list) for block in message["content"] if isinstance(block, dict)]
    bedrock = [len(json.dumps(block["toolResult"].get("content"))) for block in blocks if "toolResult" in block]
    if chat or bedrock:
        return ("Chat Completions" if chat else "Bedrock"), chat + bedrock
    host = "api.anthropic.com"
    return host, [len(text.encode()) for text in DIALECTS[host].results({"messages": messages})] if blocks else []


def sent(stage, gateway, host, asked):
    """The bytes of each result as they arrived behind the gateway."""
    stage.standin.play(None)
    trust = ssl.create_default_context(cafile=gateway.directory / "ca/ca-cert.pem")
    at, port = gateway.address.split(":")
    connection = http.client.HTTPSConnection(at, int(port), context=trust, timeout=60)
    connection.set_tunnel(host, 443)
    headers = {"content-type": "application/json", "anthropic-version": "2023-06-01", "x-api-key": "made-up"}
    connection.request("POST", PATHS[host], json.dumps(asked | ({"model": "any"} if host != "generativelanguage.googleapis.com" else {})), headers)
    connection.getresponse().read()
    connection.close()
    return results(stage.standin.received[-1])[1] if stage.standin.received else None
