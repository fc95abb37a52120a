"""Has the official SDKs of Messages judge recorded answers of Chat Completions, which the gateway routes and translates."""

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

from chat import ENDPOINTS, SILENT, alike, unlike_openai, vendor, wanted
from policies import DENIED, HELD, batches, policy
from recordings import BASES
from stage import PIECES
from steps import Step
from verdicts import calls, differences

FORMS = {True: "streamed", False: "whole"}
MESSAGES = BASES["anthropic"][""]
# Whom recorded requests go to: OpenAI, and a server whose host has no transforms of its own. Each gives this answer.
ASKED, ANSWER = ["openai-chat", "deepseek"], "openai-chat/live/otel-tool-calls.00.response.json"
# What cannot be said to a Chat model: a document's URL, and a stored file.
UNSAYABLE = ["anthropic/live/document-url.request.json", "agentgateway/requests/messages/responses_agent_subset.json"]
THINKING = {"thinking": {"type": "enabled", "budget_tokens": 1024}}

ROUTES = {
    "modelProviders": [{"name": name, "endpoint": base, "dialect": "OpenAIChat"} for name, base in ENDPOINTS.items()],
    "models": [{"name": name, "provider": name} for name in ENDPOINTS],
    "routes": [{"name": name, "match": {"models": [f"{name}/*"]}, "to": [name]} for name in ENDPOINTS],
}


def start():
    """The policy in force before the first step."""
    return policy(**ROUTES)


@dataclass(frozen=True)
class Asked:
    """A recording as an agent asks for it: the model's name tells the upstream which one, and how many bytes a write has."""

    recording: object
    piece: int
    stream: bool
    dialect: str = "anthropic"
    base: str = MESSAGES

    @property
    def name(self):
        return self.recording.name

    @property
    def model(self):
        return f"{vendor(self.recording)}/{self.piece}/{self.name}"


class Tally(Step):
    """A step whose figures are counted by judge."""

    def __init__(self, name, examine):
        super().__init__(name, examine)
        self.judged = {}

    def judge(self, judge, expected, wrong):
        self.judged.setdefault(judge, []).append(self.check(f"{judge} {expected}", not wrong, "; ".join(wrong)))

    def figures(self):
        return "".join(f"  {judge} {holds.count(True)}/{len(holds)}" for judge, holds in self.judged.items())


class Routed:
    """Whatever arrives, whole or streamed, is asked for in both forms, and compared with what the recording says."""

    def __init__(self, stage, answers, requests):
        self.stage, self.answers, self.requests = stage, answers, requests

    def steps(self):
        self.judges = self.stage.judges(direct=False)
        yield Tally("read as OpenAI's SDK reads", lambda _, step: self.understood(step))
        for is_streamed, form in FORMS.items():
            passes = {
                "nothing denied": partial(self.unchanged, is_streamed, [], {}),
                "thinking shown, calls held": partial(self.unchanged, is_streamed, [HELD], THINKING),
                "every other call denied": partial(self.every_other, is_streamed),
                "everything denied": partial(self.everything_denied, is_streamed),
            }
            for name, judge in passes.items():
                yield Tally(f"routed, asked {form}: {name}", lambda _, step, judge=judge: judge(step))
        yield Tally("routed requests", lambda _, step: self.accepted(step))

    def understood(self, step):
        """What the verdicts are compared with is what OpenAI's SDK reads, wherever it reads it."""
        for name, recording in self.answers.items():
            if recording.expected.get("python", {"ok": False})["ok"]:
                step.judge("openai", f"reads {name} so", unlike_openai(recording))

    def unchanged(self, is_streamed, rules, more, step):
        self.stage.gateway.apply(policy(*rules, **ROUTES))
        expected = {name: wanted(each, is_streamed, bool(more)) for name, each in self.answers.items()}
        for language, name, verdict in self._judge(is_streamed, expected, more):
            # What is held must be a whole object, whatever the rules say.
            kept = [call for call in calls("anthropic", expected[name]) if not rules or call.id not in expected[name]["cut"]]
            wrong = self._differences(expected[name], verdict, kept)
            same = ["text", "thinking"] if verdict["ok"] and len(kept) == len(expected[name]["tool_calls"]) else []
            wrong += [f"{key}: {verdict[key]!r}, not {expected[name][key]!r}" for key in same if verdict[key] != expected[name][key]]
            is_estimated = "usage" in expected[name] or (verdict["ok"] and verdict["usage"]["output_tokens"] > 0)
            wrong += [] if is_estimated else ["no tokens are told, and none estimated"]
            step.judge(language, f"accepts {name}", wrong)

    def every_other(self, is_streamed, step):
        expected = {name: wanted(each, is_streamed) for name, each in self.answers.items()}
        for batch in batches({name: calls("anthropic", each) for name, each in expected.items() if each["tool_calls"]}):
            self.stage.gateway.apply(batch.policy(**ROUTES))
            for language, name, verdict in self._judge(is_streamed, {name: expected[name] for name in batch.members}):
                step.judge(language, f"accepts {name}", self._differences(expected[name], verdict, batch.kept(name)))

    def everything_denied(self, is_streamed, step):
        self.stage.gateway.apply(policy(DENIED, **ROUTES))
        expected = {name: wanted(each, is_streamed) for name, each in self.answers.items()}
        for language, name, verdict in self._judge(is_streamed, expected):
            step.judge(language, f"accepts {name}", self._differences(expected[name], verdict, []))

    def _differences(self, expected, verdict, kept):
        """What is wrong with a verdict; a call that was denied is a text in the same place."""
        wrong = differences("anthropic", expected, verdict, kept)
        if verdict["ok"]:
            left = iter(calls("anthropic", expected))
            blocks = ["text" if kind == "tool_use" and next(left) not in kept else kind for kind in expected["blocks"]]
            wrong += [f"blocks {verdict['blocks']}, not {blocks}"] if verdict["blocks"] != blocks else []
        return wrong

    def _judge(self, is_streamed, expected, more=None):
        """By language and name, each judge's verdict on each recording; the judges work side by side."""

        def one(language):
            for number, name in enumerate(expected):
                piece = PIECES[(number + is_streamed) % len(PIECES)]
                verdict = self.judges[language].ask(Asked(self.answers[name], piece, is_streamed), piece, more=more or {})
                yield language, name, alike(verdict, expected[name])

        with ThreadPoolExecutor() as side_by_side:
            return [verdict for each in side_by_side.map(lambda language: list(one(language)), self.judges) for verdict in each]

    def accepted(self, step):
        """Recorded requests of Messages become what OpenAI's own types accept."""
        self.stage.gateway.apply(policy(**ROUTES, hostedTools={"action": "Allow", "urlSources": "Allow"}))
        for name, body in self.requests.items():
            for label in ASKED:
                self._accepted(name, label, body | {"model": f"{label}/0/{ANSWER}"}, step)

    def _accepted(self, request, label, body, step):
        name = f"{request} for {label}"
        self.stage.asked.unlink(missing_ok=True)
        status, answer = self.stage.post(f"{MESSAGES}/v1/messages", json.dumps(body), {"anthropic-version": "2023-06-01"})
        wrong = [f"{status}: {answer[:480]}"]
        if request in UNSAYABLE:
            is_refused = status == 400 and b"Class: Translate" in answer
            step.notes.append(f"refused, as the contract has it: {name}: {json.loads(answer)['error']['message'].splitlines()[2]}")
            step.judge("gateway", f"refuses {name}", [] if is_refused else wrong)
            return
        if status == 200:
            sent = json.loads(self.stage.asked.read_text())
            for message in sent["messages"] if label not in SILENT else []:
                # OpenAI's types do not know it: it goes to the servers that refuse calls without it.
                message.pop("reasoning_content", None)
            verdict = self.judges["python"].verdict({"dialect": "chat request", "body": sent})
            wrong = [] if verdict["ok"] else [verdict["error"]]
        step.judge("openai", f"accepts {name}", wrong)


def requests(place):
    """Recorded requests of Messages, by name."""
    files = [file for file in place.rglob("*.json") if file.name.endswith(".request.json") or "requests/messages" in str(file)]
    bodies = {str(file.relative_to(place)): json.loads(file.read_text()) for file in sorted(files)}
    return {name: body for name, body in bodies.items() if is_of_messages(name, body)}


def is_of_messages(name, body):
    folder = name.rpartition("/")[2] if name.startswith("tool-choice-matrix") else name
    return folder.startswith(("anthropic", "agentgateway")) and "messages" in body and "count" not in name

