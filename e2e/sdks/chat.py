"""The recorded answers of Chat Completions that are routed, and what an agent of Messages must have of each."""

import hashlib
import json
import re
from dataclasses import dataclass, field

from recordings import BASES, Recording, whole_answer
from verdicts import spoken

CHUNK, SUFFIXES = "chat.completion.chunk", [".sse", ".json", ".jsonl", ".txt"]
# The id of a call whose own one Messages does not allow is made by the gateway.
MADE = "an id of the gateway's"
ID, OWN = re.compile(r"[A-Za-z0-9_-]{1,64}"), re.compile(r"toolu_[0-9a-f]{24}")
# Whose reasoning is left out: their transforms do not read it.
SILENT = ["azure-openai", "openai-chat"]


def load(place, known, made):
    """The Chat answers of `place`, whole and streamed, by name; `known` are the usable recordings, of which some have an
    expectation. What has no framing gets one in `made`."""
    answers = {}
    # Before the chunks of an answer comes what they were framed as.
    for file in sorted((path for path in place.rglob("*") if path.suffix in SUFFIXES), key=lambda path: SUFFIXES.index(path.suffix)):
        name = str(file.relative_to(place))
        if name.endswith((".request.json", ".meta.json", ".chunks.json")) or file.parent == place:
            continue
        content = file.read_text()
        if whole_answer(content).get("object") == "chat.completion":
            answers[name] = Recording(name, file, "chat", False, {})
        elif CHUNK in content and name.replace(".chunks.txt", ".sse") not in answers:
            answers[name] = known.get(name) or Recording(name, framed(file, content, made), "chat", True, {})
    return answers


def framed(file, content, made):
    """The file itself if it is framed as SSE, else one with each line as an event."""
    if content.startswith("data:"):
        return file
    events = [f"data: {line}\n\n" for line in [*content.splitlines(), "[DONE]"] if line]
    place = made / f"chat-{hashlib.sha256(str(file).encode()).hexdigest()[:12]}.sse"
    place.write_text("".join(events))
    return place


def vendor(recording):
    """Whose answer it is: a folder of the recordings."""
    folder, _, file = recording.name.partition("/")
    words = [file.split("-")[0], f"{file.split('-')[0]}-chat"] if folder == "tool-choice-matrix" else [folder]
    return next((word for word in words if word in ENDPOINTS), "openai-chat")


ENDPOINTS = {folder or "openai-chat": base for folder, base in BASES["chat"].items()}


@dataclass
class Turn:
    """An answer: its blocks in the order in which they begin, its end, and its tokens."""

    shows_thinking: bool
    # Each a list of its kind and its text, or of "tool_use" and the call.
    blocks: list = field(default_factory=list)
    blanks: dict = field(default_factory=dict)
    finish: str = ""
    usage: dict = field(default_factory=dict)
    refusal: str = ""

    def say(self, kind, text):
        """A text joins the last block if that is of its kind; white space alone begins none."""
        if self.blocks and self.blocks[-1][0] == kind:
            self.blocks[-1][1] += text
        elif text.strip():
            self.blocks.append([kind, self.blanks.get(kind, "") + text])
            self.blanks.clear()
        else:
            self.blanks[kind] = self.blanks.get(kind, "") + text

    def add(self, message):
        """Takes a message, or the next delta of one."""
        content = message.get("content")
        parts = content if isinstance(content, list) else []
        thoughts = [message.get("reasoning_content") or message.get("reasoning") or ""]
        thoughts += [spoken(part["thinking"]) for part in parts if "thinking" in part]
        if self.shows_thinking:
            self.say("thinking", "".join(thoughts))
        self.refusal += message.get("refusal") or ""
        self.say("text", spoken(content) + (message.get("refusal") or ""))
        legacy = [{"index": "legacy", "function": message["function_call"]}] if message.get("function_call") else []
        for piece in (message.get("tool_calls") or []) + legacy:
            self.call(piece)

    def call(self, piece):
        """A piece of a call belongs to the latest of its index, or to the last one; a name with another id begins one."""
        calls = [block[1] for block in self.blocks if block[0] == "tool_use"]
        same = [call for call in calls if call["index"] == piece.get("index")] or (calls if piece.get("index") is None else [])
        function, number = piece["function"], piece.get("id") or None
        is_other = bool(same) and function.get("name") and number is not None and same[-1]["id"] != number
        if not same or is_other or (function.get("name") and piece.get("index") is None):
            same = [{"index": piece.get("index"), "id": number, "name": "", "arguments": ""}]
            self.blocks.append(["tool_use", same[-1]])
            self.blanks.clear()
        same[-1]["name"] = same[-1]["name"] or function.get("name") or ""
        same[-1]["arguments"] += function.get("arguments") or ""

    def texts(self, kind):
        return "".join(text for each, text in self.blocks if each == kind)

    def calls(self):
        return [call for kind, call in self.blocks if kind == "tool_use"]


def turn_of(recording, shows_thinking):
    """Reads a recording; of several choices the first one alone."""
    turn = Turn(shows_thinking and vendor(recording) not in SILENT)
    for document in documents(recording):
        turn.usage = document.get("usage") or (document.get("x_groq") or {}).get("usage") or turn.usage
        for position, choice in enumerate(document.get("choices") or []):
            if choice.get("index", position) == 0:
                turn.finish = choice.get("finish_reason") or turn.finish
                turn.add(choice.get("delta") or choice.get("message") or {})
    return turn


def documents(recording):
    if not recording.stream:
        return [json.loads(recording.file.read_text())]
    lines = [line.removeprefix("data:").strip() for line in recording.file.read_text().splitlines() if line.startswith("data:")]
    return [json.loads(line) for line in lines if line and line != "[DONE]"]


def unlike_openai(recording):
    """What this module reads otherwise in a recording than OpenAI's own SDK was seen to."""
    turn, known = turn_of(recording, False), recording.expected["python"]
    (choice,) = [choice for choice in known["choices"] if choice["index"] == 0]
    text = spoken(choice["content"]) + turn.refusal
    pairs = {
        "calls": ([{key: call[key] for key in ("id", "name", "arguments")} for call in turn.calls()], choice["tool_calls"]),
        "text": (turn.texts("text"), text if text.strip() else ""),
        "tokens": (turn.usage and tokens(turn.usage), known["usage"] and tokens(known["usage"])),
    }
    return [f"{what}: {ours}, not {theirs}" for what, (ours, theirs) in pairs.items() if ours != theirs]


def wanted(recording, is_streamed, shows_thinking=False):
    """The verdict that an SDK of Messages must give on a recording."""
    turn = turn_of(recording, shows_thinking)
    calls = turn.calls()
    # A stream gives out what was written of a call before the limit of tokens was reached; a whole answer leaves it out.
    given = [call for call in calls if is_streamed or is_object(call["arguments"])]
    numbered = list(zip(ids(given), given, strict=True))
    verdict = {
        "ok": True,
        "tool_calls": [{"id": number, "name": call["name"], "input": input_of(call["arguments"])} for number, call in numbered],
        "cut": [number for number, call in numbered if not is_object(call["arguments"])],
        "server_calls": [],
        "blocks": [kind for kind, call in turn.blocks if kind != "tool_use" or is_streamed or is_object(call["arguments"])],
        "text": turn.texts("text"),
        "thinking": turn.texts("thinking"),
        "stop": "max_tokens" if turn.finish == "length" else "tool_use" if given else "end_turn",
        "model": vendor(recording),
    }
    return verdict | ({"usage": tokens(turn.usage)} if turn.usage else {})


def is_object(text):
    try:
        return isinstance(json.loads(text or "{}"), dict)
    except ValueError:
        return False


def input_of(arguments):
    """The input that SDKs read: of one that breaks off in its first value, as the recorded one does, nothing."""
    return json.loads(arguments or "{}") if is_object(arguments) else {}


def ids(calls):
    """The ids that an agent gets: with other characters than Messages allows as `_`, and made anew where that will not do."""
    given = []
    for call in calls:
        clean = re.sub(r"[^A-Za-z0-9_-]", "_", call["id"] or "")
        is_fit = ID.fullmatch(clean) and not clean.isdigit() and clean not in given
        given.append(clean if is_fit else MADE)
    return given


def tokens(usage):
    """What Messages reports of the tokens that Chat reports."""
    prompt, completion = usage.get("prompt_tokens_details") or {}, usage.get("completion_tokens_details") or {}
    places = [prompt.get("cached_tokens"), usage.get("prompt_cache_hit_tokens"), usage.get("num_cached_tokens")]
    read = next((count for count in places if count is not None), 0)
    wrote, thought = prompt.get("cache_write_tokens") or 0, completion.get("reasoning_tokens") or 0
    asked, answered = usage["prompt_tokens"], usage["completion_tokens"]
    # xAI counts what was thought beside what was written.
    is_apart = thought and usage["total_tokens"] == asked + answered + thought
    return {
        "input_tokens": asked - read - wrote,
        "output_tokens": answered + (thought if is_apart else 0),
        "cache_read_input_tokens": read,
        "cache_creation_input_tokens": wrote,
    }


def alike(verdict, expected):
    """A verdict on a routed answer as `expected` is written: the tokens that Chat knows of, and no id of the gateway's."""
    if not verdict["ok"]:
        return verdict
    usage = {key: verdict["usage"].get(key) or 0 for key in expected.get("usage", verdict["usage"])}
    made = [call["name"] for call in expected["tool_calls"] if call["id"] == MADE]
    is_made = lambda call: call["name"] in made and OWN.fullmatch(call["id"])  # noqa: E731
    calls = [call | {"id": MADE} if is_made(call) else call for call in verdict["tool_calls"]]
    return verdict | {"usage": usage, "tool_calls": calls}
