"""Coding agents from npm behind `postern run`.

Each gets a task that takes one tool turn: its shell has run only if the stand-in's stream came through intact. Then
the same where its host is denied, and with a key of its own.
"""

from functools import partial

from behind_run import Door
from report import Client
from sdks import COMMAND, DONE, carried
from stage import HERE, KEYS

POLICY = HERE / "agents.yaml"
RAN = COMMAND.removeprefix("echo ")
DENY = """
---
apiVersion: postern.dev/v1alpha1
kind: ClusterEgressPolicy
metadata: {name: closed}
spec:
  destinations: [{name: models, hosts: [api.anthropic.com, api.openai.com], action: Deny}]
"""


def run(tools, stage):
    claude = [tools.modules / ".bin/claude", "-p", "run echo", "--output-format", "stream-json", "--verbose", "--allowedTools", "Bash"]
    anthropic = {"ANTHROPIC_API_KEY": KEYS["ANTHROPIC_API_KEY"], "IS_SANDBOX": "1"}
    codex = [tools.modules / ".bin/codex", "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "--json", "run echo"]
    openai = {"CODEX_API_KEY": KEYS["OPENAI_API_KEY"]}

    version = tools.node_version("@anthropic-ai/claude-code")
    on_messages = partial(examine, tools, stage, anthropic, "/v1/messages")
    yield Client("postern run -- Claude Code", version, partial(on_messages, claude))
    other_roots = ["env", "-u", "NODE_EXTRA_CA_CERTS", *claude]
    yield Client("postern run -- Claude Code (roots by SSL_CERT_FILE)", version, partial(on_messages, other_roots))
    version = tools.node_version("@openai/codex")
    yield Client("postern run -- Codex", version, partial(examine, tools, stage, openai, "/v1/responses", codex))


def examine(tools, stage, keys, path, command, client):
    """`keys` is what the user's environment holds; its first variable must be a placeholder in the agent's."""
    variable, key = next(iter(keys.items()))
    door = Door(tools, stage, POLICY, keys)
    code, printed, _ = door("env")
    client.check("no key in its environment", code == 0 and key.encode() not in printed, printed.decode())

    mark = stage.mark()
    code, printed, errors = door(*command)
    requests = stage.seen_since(mark)
    client.check("answer printed, status 0", code == 0 and DONE.encode() in printed, f"{code}: {printed.decode()}{errors}")
    turns = [request for request in requests if request["path"].split("?")[0] == path]
    results = [request for request in turns if RAN in (request["text"] or "").replace(COMMAND, "")]
    client.check("tool turn", results, [request["bytes"] for request in turns])
    held = {carried(request["headers"]) for request in turns}
    client.check("key swapped upstream", held == {key}, held)
    beyond = [f"{request['host']}{request['path']}" for request in requests if not request["path"].startswith(path)]
    client.check("no other endpoint was reached", not beyond, beyond)

    mark = stage.mark()
    code, printed, errors = door("env", f"{variable}=another-key", *command)
    said = printed.decode() + errors
    client.check("another key: reason shown", code and "Rule: postern/builtin/credential" in said, said)
    closed = stage.directory / "closed.yaml"
    closed.write_text(POLICY.read_text() + DENY)
    code, printed, errors = Door(tools, stage, closed, keys)(*command)
    said = printed.decode() + errors
    client.check("denied host: reason shown", code and "Rule: -/closed/models" in said, said)
    client.check("nothing refused was sent upstream", not stage.seen_since(mark), stage.seen_since(mark))
