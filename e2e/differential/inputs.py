"""What is translated: the requests that the gateway's own tests write down, small answers, and the recordings."""

import json
import os
from dataclasses import dataclass, field
from pathlib import Path

from answers import STREAMS, WHOLE

ROOT = Path(__file__).resolve().parents[2]
BESIDE = ROOT / "../shared/fixtures"
# A file for each row of the table of requests: terms, and a request of Messages.
GOLDEN = ROOT / "src/provider/openai_chat/ask/golden"
# The host of a server of no known vendor.
NOBODY = "models.example"
# Hosts by which the gateway knows a vendor: those of golden requests, and those of the folders of recordings.
VENDORS = {"openai": "api.openai.com", "azure.ai.openai": "team.openai.azure.com"}
FOLDERS = {
    "agentgateway/response/completions": NOBODY,
    "deepseek": "api.deepseek.com",
    "groq": "api.groq.com",
    "mistral": "api.mistral.ai",
    "ollama": "ollama.com",
    "openai-chat": "api.openai.com",
    "openrouter": "openrouter.ai",
    "perplexity": "api.perplexity.ai",
    "tool-choice-matrix": NOBODY,
    "xai": "api.x.ai",
}
PROPERTIES = {"type": "object", "properties": {"p": {"type": "string"}}}
# Of more than one fact at once, as agents say them.
SPOKEN = {
    "turns": {
        "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
        "messages": [
            {"role": "user", "content": "list it"},
            {"role": "assistant", "content": [{"type": "text", "text": "I look."}, {"type": "tool_use", "id": "toolu_01", "name": "LS", "input": {"p": "."}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_01", "content": "a.txt"}, {"type": "text", "text": "and?"}]},
        ],
        "tools": [{"name": "LS", "description": "Lists.", "input_schema": PROPERTIES}],
        "tool_choice": {"type": "auto"},
    },
    "plain": {"system": "Be brief.", "messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "ho"}, {"role": "user", "content": "hi"}]},
    "streamed": {"messages": [{"role": "user", "content": "hi"}], "stream": True},
    "thinking": {"messages": [{"role": "user", "content": "hi"}], "thinking": {"type": "enabled", "budget_tokens": 2048}},
}
# What every answer is an answer to. Thinking is asked for, since reasoning is shown to nobody else.
ASKED = {
    "max_tokens": 4096,
    "messages": [{"role": "user", "content": "go"}],
    "thinking": {"type": "enabled", "budget_tokens": 2048},
}


@dataclass(frozen=True)
class Input:
    """A request of Messages, and with `answer` what a server of Chat says to it, whole or as a stream. `terms` are fields of
    the model that answers, and `host` where it is; `expected` is the Chat request, where it is written down."""

    name: str
    request: dict
    answer: str | None = None
    is_stream: bool = False
    terms: dict = field(default_factory=dict)
    expected: dict | None = None


def recordings():
    """Where the recordings are: what the environment says, or beside the repository; none where they are not."""
    place = Path(os.environ.get("POSTERN_RECORDINGS", BESIDE)).resolve()
    return place if (place / "INDEX.json").exists() else None


def load(place):
    """Every input; those of the recordings only where these are."""
    inputs = [*golden(), *spoken(), *small_answers(STREAMS, True), *small_answers(WHOLE, False)]
    return inputs + ([*recorded_requests(place), *recorded_answers(place)] if place else [])


def golden():
    for file in sorted(GOLDEN.glob("*.json")):
        written = json.loads(file.read_text())
        given = dict(written["terms"])
        terms = {"host": VENDORS[given.pop("vendor")]} if "vendor" in given else {}
        terms |= {"transforms": []} | {"maxTokens" if key == "max_tokens" else key: value for key, value in given.items()}
        yield Input(f"request/{file.stem}", written["messages"], terms=terms, expected=written.get("chat"))


def spoken():
    for name, body in SPOKEN.items():
        yield Input(f"request/spoken/{name}", {"max_tokens": 4096} | body)


def small_answers(answers, is_stream):
    """Small answers; one that is a pair has a request of its own in front."""
    for name, answer in answers.items():
        request, text = answer if isinstance(answer, tuple) else ({}, answer)
        asked = ASKED | {"stream": is_stream} | request
        kind = "stream" if is_stream else "whole"
        yield Input(f"{kind}/{name}", {key: value for key, value in asked.items() if value is not None}, text, is_stream)


def recorded_requests(place):
    """Requests of Messages that agents sent to Anthropic."""
    for pattern in ("anthropic/live/*.request.json", "tool-choice-matrix/anthropic-*.request.json", "agentgateway/requests/messages/*.json"):
        for file in sorted(place.glob(pattern)):
            body = json.loads(file.read_text())
            if "messages" in body and "max_tokens" in body:
                name = str(file.relative_to(place)).removesuffix(".json").removesuffix(".request")
                yield Input(f"request/recorded/{name}", body)


def recorded_answers(place):
    for folder, host in FOLDERS.items():
        for file in sorted((place / folder).rglob("*.sse")):
            yield answered(place, file, host, True)
        for file in sorted((place / folder).rglob("*.json")):
            if '"chat.completion"' in file.read_text():
                yield answered(place, file, host, False)


def answered(place, file, host, is_stream):
    kind = "stream" if is_stream else "whole"
    name = f"{kind}/recorded/{file.relative_to(place)}"
    return Input(name, ASKED | {"stream": is_stream}, file.read_text(), is_stream, {"host": host})
