"""Coding agents whose models others answer: Claude Code on a server of Chat Completions, Codex on one of Responses.

The evidence is what reached the agents' own providers and the other models, what a person at the agent sees, and what ran:
commands print and make files.
"""

import json
import subprocess
from contextlib import contextmanager
from functools import partial

import first_hour
from agents import ANTHROPIC, KEYS, OPENAI, RAN
from explicit import PosternRun
from runner import ROOT
from stage import HERE
from steps import Step

from sdks import COMMAND, DONE, carried

DOCUMENT, ENDPOINT = ROOT / "docs/routing.md", "http://127.0.0.1:8000/v1"
TOKEN, LABEL, MODEL = "af83e9", "coder", "qwen3-coder"
# The head of a request to a model; the agent's is longer, and holds its key.
HEAD = {"host", "content-type", "content-length", "accept", "accept-encoding", "user-agent"}
# The places of an agent's key, and the words in which its vendor knows the user.
OWN = [*KEYS.values(), "sk-ant-postern-anthropic", "sk-postern-openai", "user_id", "x-claude-code"]
SUBAGENT = """---
name: local
description: Runs one command
tools: Bash
{more}---
{marker}You run the command that you are given.
"""
POLICY = """
apiVersion: postern.dev/v1alpha1
kind: EgressPolicy
metadata: {{name: routed, namespace: e2e}}
spec:
  podSelector: {{}}
  destinations:
    - {{name: anthropic, hosts: [api.anthropic.com, platform.claude.com], action: Inspect, reach: {reach}}}
    - {{name: openai, hosts: [api.openai.com], action: Inspect, reach: {reach}}}
  credentials:
    - {{name: anthropic, hosts: [api.anthropic.com], fromEnv: ANTHROPIC_API_KEY, placeholder: sk-ant-postern-anthropic, require: true}}
    - {{name: openai, hosts: [api.openai.com], fromEnv: CODEX_API_KEY, placeholder: sk-postern-openai, require: true}}
    - {{name: models, hosts: [api.example.com], fromEnv: API_KEY}}
  modelProviders:
    - {{name: local, endpoint: "{endpoint}", dialect: OpenAIChat, allowAddresses: [127.0.0.0/8]}}
    - {{name: messages, endpoint: "{endpoint}", dialect: Anthropic, allowAddresses: [127.0.0.0/8]}}
    - {{name: absent, endpoint: "http://127.0.0.1:1/v1", dialect: OpenAIChat, allowAddresses: [127.0.0.0/8]}}
    - {{name: responses, endpoint: "https://api.example.com/v1", dialect: OpenAIResponses, credential: models}}
  models:
    - {{name: coder, provider: local, model: qwen3-coder, maxTokens: 8192}}
    - {{name: moved, provider: messages, model: qwen3-coder}}
    - {{name: uncapped, provider: local, model: qwen3-coder}}
    - {{name: absent, provider: absent}}
    - {{name: gpt, provider: responses, model: gpt-oss-120b}}
  routes:
    - {{name: routed, {route}}}
"""
BY_MARKER = f"match: {{marker: {TOKEN}}}, to: [coder]"
BY_MODEL = 'match: {models: ["claude-haiku-*"]}, to: [coder]'
EVERY = 'match: {models: ["*"], hosts: [api.anthropic.com]}, to: [coder]'
MOVED = EVERY.replace("coder", "moved")
UNCAPPED = EVERY.replace("coder", "uncapped")
OUTAGE = 'match: {models: ["*"], hosts: [api.anthropic.com]}, to: [origin], fallback: [coder]'
SECOND = 'match: {models: ["*"]}, to: [absent], fallback: [coder]'
RESPONSES = 'match: {models: ["gpt-*"]}, to: [gpt]'
NO_FILE = """  tools:
    - name: no-file
      kind: Shell
      action: Deny
      when: {param: command, operator: Contains, values: [postern-denied]}
      reason: That file is not made
"""
REFUSED = ["[postern] Tool call blocked by policy", "Rule: e2e/routed/no-file", "Reason: That file is not made"]
# Each prints 24,000 bytes, so a context of 32,768 tokens is full before they have all run.
LONG_TASK = "run " + ", then ".join(f"`seq {number}0001 {number}4000`" for number in range(1, 7))
SUMMED_UP = f"postern: models of routes answered: {LABEL} 2 times"
SUMMARY = "Your task is to create a detailed summary of"
STREAM = ["--output-format", "stream-json", "--verbose"]
COUNT = '{"model":"claude-opus-5-5","messages":[{"role":"user","content":"How many tokens has this?"}]}'


VARIABLES = {
    "ANTHROPIC_API_KEY": KEYS["ANTHROPIC_API_KEY"], "CODEX_API_KEY": KEYS["OPENAI_API_KEY"], "API_KEY": KEYS["API_KEY"],
    "IS_SANDBOX": "1", "CLAUDE_CODE_MAX_RETRIES": "2",
}


class Models:
    """The server of models, for one agent under one policy after the other; `claude` and `codex` are their commands."""

    def __init__(self, tools, stage):
        self.tools, self.stage, self.log, self.runs = tools, stage, stage.directory / "models.jsonl", 0
        self.log.touch()
        self.port = None

    def start(self):
        """Starts the server, once."""
        if self.port is None:
            command = [self.tools.node, HERE / "models.mjs", self.log]
            process = self.stage.start(command, env=self.stage.bare(), stdout=subprocess.PIPE, text=True)
            self.port = process.stdout.readline().strip()

    def run(self, behaviour, route, reach="Routes", rules="", **variables):
        """`postern run` under this route, with a server that behaves in this way."""
        text = self.policy(behaviour, route, reach) + rules
        policy = self.stage.directory / f"routed-{self.runs}.yaml"
        policy.write_text(text)
        return Run(self, PosternRun(self.stage, policy, VARIABLES | variables))

    def policy(self, behaviour, route, reach="Routes"):
        """The policy of another run."""
        return POLICY.format(reach=reach, endpoint=self.endpoint(behaviour), route=route)

    def endpoint(self, behaviour):
        """The endpoint of another run."""
        self.start()
        self.runs += 1
        self.path = f"{behaviour}-{self.runs}"
        return f"http://127.0.0.1:{self.port}/{self.path}/v1"

    def asked(self):
        """What reached the server in the last run."""
        with self.log.open() as log:
            lines = [json.loads(line) for line in log]
        return [line for line in lines if line["path"].startswith(f"/{self.path}/")]


class Run:
    """An agent under a policy: what it shows, and what reached whom."""

    def __init__(self, models, wrapped):
        self.models, self.stage, self.wrapped = models, models.stage, wrapped
        self.modules = models.tools.modules / ".bin"

    def claude(self, prompt, *more):
        return self([self.modules / "claude", "--allowedTools", "Bash,Agent", "-p", prompt, *more])

    def codex(self, prompt):
        return self([self.modules / "codex", "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", prompt])

    def __call__(self, command):
        mark = self.stage.mark()
        self.code, printed, self.errors = self.wrapped(*command)
        self.shown = printed.decode()
        self.origin, self.asked = self.stage.seen_since(mark), self.models.asked()
        return self

    def __str__(self):
        asked = [(each["number"], each["tokens"], each["refused"]) for each in self.asked]
        return f"{self.code}: {self.shown} {asked} {self.errors}"

    def is_done(self):
        return self.code == 0 and DONE in self.shown

    def turns(self):
        """The turns that reached the agent's own provider."""
        return [request for request in self.origin if ANTHROPIC.takes(request)]

    def results(self):
        """The requests to the other model that bring back what the command printed."""
        return [request for request in self.asked if RAN in request["text"].replace(COMMAND, "")]

    def is_alone(self):
        """Whether nothing of the agent itself reached the other model."""
        heads = all(request["headers"].keys() <= HEAD for request in self.asked)
        return self.asked and heads and not any(word in json.dumps(request) for request in self.asked for word in OWN)


def steps(tools, stage):
    models = Models(tools, stage)
    claude = {
        "a subagent by its marker": by_marker,
        "a marker without a model": unknown,
        "a subagent by its model": by_model,
        "reasoning of two models": pondering,
        "every request, its host never reached": everywhere,
        "in a terminal, its host never reached": terminal,
        "to a server of its own API": moved,
        "a call denied": denied,
        "a conversation longer than the context": overflow,
        "a context that counts the answer too": uncapped,
        "a context that is too small": tiny,
        "system messages refused": picky,
        "429, then an answer": busy,
        "an answer that breaks off": cut,
        "a model that is out of order": dead,
        "the first model absent": absent,
        "its provider without an answer": outage,
    }
    version = tools.node_version("@anthropic-ai/claude-code")
    for name, examine in claude.items():
        yield Step(f"routed, Claude Code, {name} {version}", partial(examine, models))
    version = tools.node_version("@openai/codex")
    yield Step(f"routed, Codex, by plain requests {version}", partial(codex, models))
    yield Step(f"routed, Codex, its first start with a model of one's own {version}", partial(own_model, models))


def by_marker(models, stage, client):
    subagent(models, client, BY_MARKER, SUBAGENT.format(more="", marker=f"<!-- @proxy-local-route:{TOKEN} model={LABEL} -->\n"))


def unknown(models, stage, client):
    """The marker names a label that the route does not have: the subagent's report says which ones it has."""
    with an_agent(models, SUBAGENT.format(more="", marker=f"<!-- @proxy-local-route:{TOKEN} model=other -->\n")):
        run = models.run("sound", BY_MARKER, reach="Origin").claude("postern-subagent")
    client.check("the main agent goes on, status 0", run.is_done(), run)
    told = 'No model \\"other\\" can be chosen here. Labels: coder.'
    texts = [request["text"].replace("\\\\", "\\") for request in run.turns()]
    client.check("it reads which labels there are", any(told in text for text in texts), [text[-300:] for text in texts])
    client.check("nothing is asked of the other model", not run.asked, run)


def by_model(models, stage, client):
    subagent(models, client, BY_MODEL, SUBAGENT.format(more="model: haiku\n", marker=""))


def subagent(models, client, route, written):
    """The main conversation stays where it was; the turns of one subagent go to the other model, and its report comes back."""
    with an_agent(models, written):
        run = models.run("sound", route, reach="Origin").claude("postern-subagent")
    client.check("answer printed, status 0", run.is_done(), run)
    client.check("the subagent's tool ran", run.results(), run)
    models_asked = {json.loads(request["text"])["model"] for request in run.asked}
    client.check("it is the label's model that is asked", models_asked == {MODEL}, models_asked)
    texts = [request["text"] for request in run.turns()]
    held = {carried(request["headers"]) for request in run.turns()}
    client.check("the main conversation goes to its provider, with its key", len(texts) >= 2 and held == {ANTHROPIC.key}, held)
    client.check("the subagent's does not", not any(RAN in text for text in texts), [text[-300:] for text in texts])
    client.check("its report comes back", any(DONE in text for text in texts), [text[-300:] for text in texts])
    leaving = [request["text"] for request in [*run.origin, *run.asked]]
    client.check("the marker does not leave", not any(TOKEN in (text or "") for text in leaving))
    client.check("nothing of the agent itself leaves for the other model", run.is_alone(), run.asked)


@contextmanager
def an_agent(models, written):
    """The file of a subagent, as long as it is needed."""
    directory = models.stage.directory / "home/.claude/agents"
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "local.md").write_text(written)
    yield
    (directory / "local.md").unlink()


def pondering(models, stage, client):
    """What a model thought goes back to that model; where the session goes on with Anthropic, it does not go there."""
    run = models.run("pondering", EVERY).claude("run echo")
    client.check("answer printed, status 0", run.is_done(), run)
    back = [json.loads(each["text"])["messages"] for each in run.asked[1:]]
    thoughts = [message.get("reasoning_content") for messages in back for message in messages if message.get("tool_calls")]
    client.check("its reasoning comes back to it", thoughts and set(thoughts) == {"I ponder."}, thoughts)
    run = models.run("pondering", BY_MARKER, reach="Origin").claude("Go on.", "--continue")
    texts = [request["text"] for request in run.turns()]
    client.check("the session goes on with its provider", run.is_done() and any(RAN in text for text in texts), run)
    strange = [text[-600:] for text in texts if "postern.1" in text or "I ponder" in text]
    client.check("which reads no reasoning that is not its own", not strange, strange)
    run = models.run("sound", MOVED).claude("Go on.", "--continue")
    kept = any("I ponder." in each["text"] and f"postern.1.{LABEL}." in each["text"] for each in run.asked)
    client.check("though the agent keeps it", run.is_done() and kept, run)


def moved(models, stage, client):
    """To a server that speaks Messages itself."""
    run = models.run("sound", MOVED).claude("run echo")
    client.check("answer printed, status 0", run.is_done(), run)
    client.check("tool turn", run.results(), run)
    client.check("its host is never reached", not run.origin, run.origin)
    asked = {json.loads(request["text"])["model"] for request in run.asked}
    client.check("it is the label's model that is asked", asked == {MODEL}, asked)
    keys = [word for word in OWN[:-2] if any(word in json.dumps(request) for request in run.asked)]
    heads = set().union(*(request["headers"] for request in run.asked))
    client.check("no key of the agent leaves, and nothing else of its head", not keys and heads <= HEAD | {"anthropic-version"}, (keys, heads))


def everywhere(models, stage, client):
    run = models.run("sound", EVERY).claude("run echo")
    client.check("answer printed, status 0", run.is_done(), run)
    client.check("tool turn", run.results(), run)
    client.check("its host is never reached", not run.origin, run.origin)
    client.check("nothing of the agent itself leaves for the other model", run.is_alone(), run.asked)
    client.check("the summary has the model and its tokens", all(map(run.errors.count, [SUMMED_UP, "postern: 0 tool calls denied, 2"])), run.errors)
    # With more of a history than one prompt, by another start.
    run = models.run("sound", EVERY).claude("run `echo postern-tool-ran`", "--continue")
    client.check("the session is taken up again", run.is_done() and RAN in run.asked[0]["text"], run)
    sent = len(models.asked())
    counted = ask(run, "/v1/messages/count_tokens", "--data", COUNT)
    client.check("tokens are counted by the gateway", counted.get("input_tokens", 0) > 5, counted)
    listed = {each["id"] for each in ask(run, "/v1/models").get("data", [])}
    client.check("models are listed by the gateway", LABEL in listed, listed)
    client.check("nobody else was asked", not run.origin and len(models.asked()) == sent, run.origin)


def terminal(models, stage, client):
    """The first start with the policy of docs/routing.md and its key that is none: every dialogue is answered."""
    agent = first_hour.AGENTS[0]
    newcomer = first_hour.Newcomer(stage, agent, agent.policy, documented(0, models.endpoint("sound")))
    newcomer.environment |= {agent.variable: "no-key-is-needed", "IS_SANDBOX": "1"}
    *dialogues, (ready, _) = agent.dialogues
    mark = stage.mark()
    steps = [*dialogues, (ready, ["run echo", first_hour.ENTER]), (first_hour.ANSWERED, [agent.leave, first_hour.ENTER])]
    ended = newcomer.terminal(steps, *agent.terminal)
    client.check("starts, calls a tool and answers", ended["seen"] == len(steps), f"{ended['seen']} of {len(steps)}: {ended['screen']}")
    client.check("it ends when it is told to", ended["status"] == 0, f"{ended['status']}: {ended['screen']}")
    client.check("nothing was reached but the model", models.asked() and not stage.seen_since(mark), stage.seen_since(mark))
    code, printed, errors = newcomer.start(stage.tools.postern, "ledger", "stats", "--by", "model")
    client.check("the ledger tells which model answered", code == 0 and MODEL in printed.decode(), f"{code}: {printed.decode()}{errors}")


def documented(number, endpoint):
    """A policy of the document, with another endpoint."""
    policy = DOCUMENT.read_text().split("```yaml\n")[number + 1].split("```")[0]
    if policy.count(ENDPOINT) != 1:
        raise ValueError(f"policy {number} of {DOCUMENT} has not the one endpoint {ENDPOINT}")
    return policy.replace(ENDPOINT, endpoint)


def ask(run, path, *more):
    """The answer to a request of another client under the same policy."""
    key = ["-H", f"x-api-key: sk-ant-postern-anthropic", "-H", "anthropic-version: 2023-06-01", "-H", "content-type: application/json"]
    return json.loads(run(["curl", "--silent", *key, *more, f"https://api.anthropic.com{path}"]).shown or "{}")


def denied(models, stage, client):
    """The other model's calls are judged as the agent's own model's are."""
    allowed, forbidden = (stage.directory / f"home/routed-postern-{word}" for word in ("allowed", "denied"))
    run = models.run("sound", EVERY, rules=NO_FILE).claude(f"run touch {allowed}")
    client.check("an allowed command ran", run.is_done() and allowed.exists(), run)
    run = models.run("sound", EVERY, rules=NO_FILE).claude(f"run touch {forbidden}")
    client.check("denied call: the text is the answer, status 0", run.code == 0 and all(map(run.shown.count, REFUSED)), run)
    client.check("the command did not run", not forbidden.exists(), forbidden)
    client.check("the model is not asked again", len(run.asked) == 1, run)
    shows(client, run, REFUSED[0])


def overflow(models, stage, client):
    """llama.cpp's sentence becomes the one on which Claude Code shortens its conversation."""
    run = models.run("narrow", EVERY).claude(LONG_TASK, *STREAM)
    compacted(client, run)
    shows(client, run, '"subtype":"compact_boundary"', end=110)


def uncapped(models, stage, client):
    """Without `maxTokens` a server refuses what the answer may have; Claude Code asks for less, and in the end shortens."""
    run = models.run("strict", UNCAPPED).claude(LONG_TASK, *STREAM)
    compacted(client, run)
    limits = [json.loads(request["text"])["max_tokens"] for request in run.asked[:2]]
    client.check("refused, it asks for a shorter answer", limits[0] > limits[1] and run.asked[1]["refused"] is None, limits)


def compacted(client, run):
    client.check("answer printed, status 0", run.is_done(), run)
    asked = run.asked
    summaries = [number for number, each in enumerate(asked) if SUMMARY in each["text"] and each["refused"] is None]
    client.check("it asks for a summary", summaries, run)
    told = [each for each in asked[: summaries[0]] if each["refused"] == 400]
    client.check("once the server has refused", told, run)
    after = asked[summaries[0] + 1]
    client.check("and goes on with less", after["tokens"] < told[-1]["tokens"] and " have run" in after["text"], run)
    missed = [number for number in range(1, 7) if not any(f"{number}4000\\n" in each["text"] or f'{number}4000"' in each["text"] for each in asked)]
    client.check("all commands have run", not missed, missed)


def tiny(models, stage, client):
    run = models.run("tiny", EVERY).claude("run echo")
    client.check("it says what is too long, and ends", run.code == 1 and "Prompt is too long" in run.shown and "limit 8192" in run.shown, run)
    shows(client, run, "Prompt is too long")


def picky(models, stage, client):
    """Templates of many models take system messages at the beginning alone; Claude Code can do without the others."""
    for what, route in (("translated", EVERY), ("moved", MOVED)):
        run = models.run("picky", route).claude("run echo")
        client.check(f"{what}: answer printed, status 0", run.is_done(), run)
        client.check(f"{what}: tool turn", run.results(), run)
        refused = [each["refused"] for each in run.asked]
        client.check(f"{what}: refused once, and not again in this session", refused == [500, None, None], run)


def busy(models, stage, client):
    run = models.run("busy", EVERY).claude("run echo")
    client.check("answer printed, status 0", run.is_done(), run)
    client.check("asked again after the 429", [each["refused"] for each in run.asked] == [429, None, None], run)
    client.check("tool turn", run.results(), run)


def cut(models, stage, client):
    """In the middle of a call: by a reset, by an error event, and whenever it is asked."""
    for behaviour, what in (("cut", "reset"), ("failing", "error event")):
        file = stage.directory / f"home/{behaviour}"
        run = models.run(behaviour, EVERY).claude(f"run `echo x >> {file}`")
        client.check(f"{what}: the agent goes on from what it has", run.is_done() and "cut off mid-stream" in run.asked[1]["text"], run)
        lines = file.read_text().split() if file.exists() else []
        client.check(f"{what}: the half call did not run", lines == ["x"], lines)
    file = stage.directory / "home/dead"
    run = models.run("dead", EVERY).claude(f"run `echo x >> {file}`")
    client.check("always: the agent says so, and ends", run.code == 1 and "API Error: Server error mid-response" in run.shown, run)
    client.check("always: nothing ran", not file.exists(), run)
    shows(client, run, "API Error")


def dead(models, stage, client):
    run = models.run("broken", EVERY).claude("run echo")
    words = ["API Error: 502 [postern] coder gave no answer", "Class: HTTP_500", "Reason: CUDA error: out of memory", "Route: e2e/routed/routed"]
    client.check("it shows model, reason and route, and ends", run.code == 1 and all(map(run.shown.count, words)), run)
    client.check("asked again as often as it is told to", len(run.asked) == 3, run)
    shows(client, run, "API Error")


def absent(models, stage, client):
    """The agent does not notice."""
    run = models.run("sound", SECOND).claude("run echo")
    client.check("answer printed, status 0", run.is_done() and "API Error" not in run.shown, run)
    client.check("tool turn", run.results(), run)
    client.check("no turn is asked twice", [each["number"] for each in run.asked] == [1, 2] and SUMMED_UP in run.errors, run)


def outage(models, stage, client):
    """Its own provider is overloaded, or wants money: the session goes on with another model."""
    for word in ("postern-overloaded", "postern-no-credit"):
        run = models.run("sound", OUTAGE, reach="Origin").claude(f"run echo {word}")
        client.check(f"{word}: answer printed, status 0", run.is_done() and "API Error" not in run.shown, run)
        client.check(f"{word}: tool turn", run.results() and SUMMED_UP in run.errors, run)
        client.check(f"{word}: its provider is asked first", [len(run.turns()), len(run.asked)] == [2, 2], run)
        client.check(f"{word}: nothing of the agent itself leaves for the other model", run.is_alone(), run.asked)
    run = models.run("sound", OUTAGE, reach="Origin").claude("run echo")
    client.check("else its provider answers", run.is_done() and len(run.turns()) == 2 and not run.asked, run)


def codex(models, stage, client):
    """Its WebSocket is answered by 426, after which it sends plain requests; they go where the route says."""
    run = models.run("sound", RESPONSES).codex("run echo")
    client.check("answer printed, status 0", run.is_done(), run)
    turns = [request for request in run.origin if OPENAI.takes(request)]
    hosts = {request["host"] for request in run.origin}
    client.check("its host is never reached", hosts == {"api.example.com"} and turns == run.origin, hosts)
    results = [request for request in turns if RAN in request["text"].replace(COMMAND, "")]
    client.check("tool turn", results, run)
    asked = {json.loads(request["text"])["model"] for request in turns}
    client.check("it is the label's model that is asked", asked == {"gpt-oss-120b"}, asked)
    held = {carried(request["headers"]) for request in turns}
    client.check("with the provider's key alone", held == {KEYS["API_KEY"]}, held)
    heads = set().union(*(request["headers"] for request in turns))
    client.check("and nothing else of its head", heads <= HEAD | {"authorization"}, heads)
    shows(client, run, "WebSocket", of=run.errors)
    forbidden = stage.directory / "home/routed-codex-postern-denied"
    run = models.run("sound", RESPONSES, rules=NO_FILE).codex(f"run touch {forbidden}")
    client.check("denied call: the text is the answer, status 0", run.code == 0 and all(map(run.shown.count, REFUSED)), run)
    client.check("the command did not run", not forbidden.exists(), forbidden)


def own_model(models, stage, client):
    """The policy and the command of docs/routing.md."""
    agent = first_hour.AGENTS[1]
    newcomer = first_hour.Newcomer(stage, agent, agent.policy, documented(1, models.endpoint("sound")))
    newcomer.environment |= {"CODEX_API_KEY": "no-key-is-needed"}
    del newcomer.environment[agent.variable]
    mark = stage.mark()
    code, printed, errors = newcomer.wrapped(*agent.headless, "--disable", "multi_agent", "-m", MODEL, "run echo")
    said = printed.decode() + errors
    client.check("answer printed, status 0", code == 0 and DONE in said and SUMMED_UP in said, f"{code}: {said}")
    asked = models.asked()
    results = [each for each in asked if RAN in each["text"].replace(COMMAND, "")]
    client.check("tool turn", results, [each["text"][-300:] for each in asked])
    kinds = {tool["type"] for each in asked for tool in json.loads(each["text"]).get("tools", [])}
    client.check("its tools are functions alone", kinds == {"function"}, kinds)
    client.check("nothing was reached but the model", not stage.seen_since(mark), stage.seen_since(mark))


def shows(client, run, words, of=None, end=400):
    """Notes the line that a person at the agent reads."""
    lines = (run.shown if of is None else of).splitlines()
    client.notes += [f"it shows: {line[:end]}" for line in lines if words in line][:1]
