"""Coding agents from npm: behind `postern run`, or unconfigured.

Each gets a task that takes one tool turn: its shell has run only if the stand-in's stream came through intact. Then
the same where its host is denied, and with a key of its own.
"""

import json
import re
from dataclasses import dataclass
from functools import partial

from stage import KEYS
from steps import Step

from sdks import COMMAND, DONE, carried

RAN = COMMAND.removeprefix("echo ")
# A token as GitLab makes them, put together by the command, so that it stands in the command's output alone.
SECRET = "glp" + "at-Ab3dEf6hIj9kLm2nOp5q"
REPLACED = "[postern:gitlab-token]"
TURNS = 20
LONG_TASK = "run " + ", then ".join([f"`printf %s%s {SECRET[:3]} {SECRET[3:]}`", *(f"`echo turn-{turn}`" for turn in range(2, TURNS + 1))])
DENY = """
---
apiVersion: postern.dev/v1alpha1
kind: ClusterEgressPolicy
metadata: {name: closed}
spec:
  destinations: [{name: models, hosts: [api.anthropic.com, api.openai.com, generativelanguage.googleapis.com], action: Deny}]
"""


@dataclass(frozen=True)
class Provider:
    """Where an agent's turns go and what it may read before them, the variable of its key, and what stands there."""

    turns: re.Pattern
    startup: tuple
    variable: str
    placeholder: str
    key: str

    def takes(self, request):
        """Whether a request is a turn."""
        return self.turns.fullmatch(request["path"].split("?")[0])


ANTHROPIC = Provider(
    re.compile("/v1/messages"),
    ("/v1/messages/count_tokens", "/v1/models", "/api/hello", "/api/claude_code/settings", "/api/claude_code/policy_limits", "/api/claude_cli/bootstrap"),
    "ANTHROPIC_API_KEY", "sk-ant-postern-anthropic", KEYS["ANTHROPIC_API_KEY"],
)
OPENAI = Provider(re.compile("/v1/responses"), ("/v1/models",), "CODEX_API_KEY", "sk-postern-openai", KEYS["OPENAI_API_KEY"])
GEMINI = Provider(
    re.compile("/v1beta/models/[^/]+:(generateContent|streamGenerateContent)"), (),
    "GEMINI_API_KEY", "postern-placeholder-gemini", KEYS["GEMINI_API_KEY"],
)


def steps(tools, stage):
    claude = [tools.modules / ".bin/claude", "-p", "run echo", "--output-format", "stream-json", "--verbose", "--allowedTools", "Bash"]
    codex = [tools.modules / ".bin/codex", "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "--json", "run echo"]
    prefix = stage.way.AGENTS
    version = tools.node_version("@anthropic-ai/claude-code")
    for trusted, other in (("NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE"), ("SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS")):
        command = ["env", "-u", other, *claude]
        # It compresses what it sends to its own host, unless it is told of a proxy or of more roots in its own variable.
        coding = "gzip" if trusted == "SSL_CERT_FILE" and not stage.way.variables(stage) else "identity"
        yield Step(f"{prefix}Claude Code, roots by {trusted} {version}", partial(examine, ANTHROPIC, command, coding))
    version = tools.node_version("@openai/codex")
    yield Step(f"{prefix}Codex {version}", partial(examine, OPENAI, codex, "identity"))
    gemini = [tools.modules / ".bin/gemini", "-p", "run echo", "--skip-trust", "-y", "-o", "stream-json"]
    version = tools.node_version("@google/gemini-cli")
    yield Step(f"{prefix}Gemini CLI {version}", partial(examine, GEMINI, gemini, "identity"))


def examine(provider, command, coding, stage, client):
    agent = stage.way.agent(stage, provider)
    mark = stage.mark()
    code, printed, errors = agent(*command)
    requests = stage.seen_since(mark)
    client.check("answer printed, status 0", code == 0 and DONE.encode() in printed, f"{code}: {printed.decode()}{errors}")
    turns = [request for request in requests if provider.takes(request)]
    results = [request for request in turns if RAN in (request["text"] or "").replace(COMMAND, "")]
    client.check("tool turn", results, [request["bytes"] for request in turns])
    codings = [request["headers"].get("content-encoding", "identity") for request in turns]
    whole = [json.loads(request["text"]).keys() for request in turns]
    client.check(f"{coding} bodies intact", whole and set(codings) == {coding}, (codings, whole))
    held = {carried(request["headers"]) for request in turns}
    client.check("key swapped upstream", held == {provider.key}, held)
    beyond = {request["path"].split("?")[0] for request in requests if not provider.takes(request)} - set(provider.startup)
    client.check("nothing but inference was reached", not beyond, beyond)

    mark = stage.mark()
    code, printed, errors = agent(*(LONG_TASK if word == "run echo" else word for word in command))
    texts = [request["text"] or "" for request in stage.seen_since(mark) if provider.takes(request)]
    # The task names each turn once, and so does the call.
    last = [text for text in texts if text.count(f"turn-{TURNS}") > 2]
    client.check(f"{TURNS} turns after a secret came in", code == 0 and DONE.encode() in printed and last, f"{code}: {len(texts)} turns{errors}")
    client.check("the secret did not leave", texts and not any(SECRET in text for text in texts), texts)
    counts = [text.count(REPLACED) for text in texts]
    since = counts[next((number for number, count in enumerate(counts) if count), len(counts)):]
    client.check("it was replaced on each turn", len(since) >= TURNS and all(since), counts)

    mark = stage.mark()
    code, printed, errors = agent("env", f"{provider.variable}=another-key", *command)
    answer = printed.decode() + errors
    client.check("another key: reason shown", code and "Rule: postern/builtin/credential" in answer, answer)
    with agent.with_policy(DENY) as closed:
        code, printed, errors = closed(*command)
    answer = printed.decode() + errors
    client.check("denied host: reason shown", code and "Rule: -/closed/models" in answer, answer)
    # A greeting without a key passes, whatever key the turns have.
    sent = [request for request in stage.seen_since(mark) if request["path"] not in provider.startup or carried(request["headers"])]
    client.check("nothing refused was sent upstream", not sent, sent)
