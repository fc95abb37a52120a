"""Coding agents from npm behind `postern run`, which reaches the stand-in as a corporate proxy of the environment.

Each gets a task that takes one tool turn: its shell has run only if the answer of the stand-in came through intact.
"""

import json
from functools import partial

from report import Client, output
from sdks import COMMAND, DONE, carried
from stage import HERE, KEYS

RAN = "postern-tool-ran"


def run(tools, stage):
    claude = [tools.modules / ".bin/claude", "-p", "run echo", "--output-format", "stream-json", "--verbose", "--allowedTools", "Bash"]
    codex = [tools.modules / ".bin/codex", "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "--json"]
    anthropic = {"ANTHROPIC_API_KEY": KEYS["ANTHROPIC_API_KEY"], "IS_SANDBOX": "1"}
    openai = {"CODEX_API_KEY": KEYS["OPENAI_API_KEY"]}
    name = "@anthropic-ai/claude-code"
    yield Client("Claude Code", tools.node_version(name), partial(examine, tools, stage, claude, anthropic, "/v1/messages"))
    version = tools.node_version("@openai/codex")
    yield Client("Codex", version, partial(examine, tools, stage, [*codex, "run echo"], openai, "/v1/responses"))


def examine(tools, stage, command, keys, path, client):
    """`keys` is the user's environment; the agent must see placeholders in their stead."""
    way = {"HTTPS_PROXY": stage.upstream_proxy, "SSL_CERT_FILE": str(stage.roots("upstream"))}
    door = [tools.postern, "run", "--policy", HERE / "agents.yaml", "--"]
    environment, key = stage.bare() | way | keys, next(iter(keys.values()))
    code, printed, _ = output([*door, "sh", "-c", "env"], env=environment)
    client.check("its environment holds no key", code == 0 and key not in printed.decode(), printed.decode())

    mark = stage.mark()
    code, printed, errors = output([*door, *command], env=environment, cwd=stage.bare()["HOME"])
    said, requests = printed.decode(errors="replace"), stage.seen_since(mark)
    client.check("status 0 and the answer printed", code == 0 and DONE in said, f"{code}: {said}{errors}")
    turns = [request for request in requests if request["path"].split("?")[0] == path]
    results = [request for request in turns if RAN in tool_results(request["text"])]
    client.check("its tool ran, and the result went upstream", results, [request["bytes"] for request in turns])
    held = {carried(request["headers"]) for request in turns}
    client.check("key swapped upstream", held == {key}, held)
    beyond = [f"{request['host']}{request['path']}" for request in requests if request not in turns]
    client.check("nothing but its endpoint was reached", not [place for place in beyond if path not in place], beyond)
    client.check("the door's summary is on standard error", "denied" in errors.lower(), errors)


def tool_results(text):
    """A request's text without the command itself, which an agent repeats beside its result."""
    return json.dumps(json.loads(text)).replace(COMMAND, "") if text else ""
