"""Coding agents under rules about what their models call and what is offered to them.

What a person at the agent sees is the evidence, and what ran: a command makes a file. Each refusal has a twin that
passes.
"""

import time
from functools import partial

from agents import ANTHROPIC, GEMINI, OPENAI
from steps import Step

from sdks import DONE

POLICY = """
---
apiVersion: postern.dev/v1alpha1
kind: ClusterEgressPolicy
metadata: {name: guarded}
spec:
"""
TOOLS = POLICY + """
  tools:
    - name: no-file
      kind: Shell
      action: Deny
      when: {param: command, operator: Contains, values: [postern-denied]}
      reason: That file is not made
"""
LIMITS = POLICY + "  limits: {requestsPerMinute: 1}\n"
HOSTED = POLICY + "  hostedTools: {action: Deny}\n"


def steps(tools, stage):
    prefix = stage.way.AGENTS

    def claude(prompt):
        return [tools.modules / ".bin/claude", "-p", prompt, "--allowedTools", "Bash,ToolSearch,WebSearch"]

    def codex(prompt, *more):
        exec_ = [tools.modules / ".bin/codex", "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"]
        return [*exec_, *more, prompt]

    def gemini(prompt):
        return [tools.modules / ".bin/gemini", "-p", prompt, "--skip-trust", "-y"]

    agents = [("Claude Code", "@anthropic-ai/claude-code", ANTHROPIC, claude), ("Codex", "@openai/codex", OPENAI, codex)]
    for name, package, provider, command in [*agents, ("Gemini CLI", "@google/gemini-cli", GEMINI, gemini)]:
        version = tools.node_version(package)
        yield Step(f"{prefix}{name}, guarded {version}", partial(examine, provider, command))
        if provider is ANTHROPIC:
            yield Step(f"{prefix}{name}, searching {version}", partial(searching, command))
        if provider is OPENAI:
            # A model that it does not know gets its tools in the request's own list, a hosted one among them.
            other = partial(codex, "run echo", "-m", "gpt-5-codex")
            yield Step(f"{prefix}{name}, hosted tools {version}", partial(offered, other))


def examine(provider, command, stage, client):
    agent, home = stage.way.agent(stage, provider), stage.directory / "home"
    allowed, denied = (home / f"{client.name.split(',')[0].split()[-1]}-postern-{word}" for word in ("allowed", "denied"))
    with agent.with_policy(TOOLS) as ruled:
        code, printed, errors = ruled(*command(f"run touch {allowed}"))
        client.check("an allowed command ran", code == 0 and allowed.exists(), f"{code}: {printed.decode()}{errors}")
        mark = stage.mark()
        code, printed, errors = ruled(*command(f"run touch {denied}"))
    shown = printed.decode()
    answer = ["[postern] Tool call blocked by policy", "Rule: -/guarded/no-file", "Reason: That file is not made"]
    client.check("denied call: the text is the answer, status 0", code == 0 and all(map(shown.count, answer)), f"{code}: {shown}{errors}")
    client.check("the command did not run", not denied.exists(), denied)
    turns = [request["text"] for request in stage.seen_since(mark) if provider.takes(request)]
    ended = turns and not any(f"{denied}" in turn and "tool_result" in turn for turn in turns)
    client.check("no result of it went upstream", ended, [turn[-300:] for turn in turns])
    threads = [turn for turn in turns if '"thread"' in turn]
    client.check("no conversation is kept at the provider", not threads, threads)
    with agent.with_policy(LIMITS) as limited:
        refused(client, "over a limit", "-/guarded/limits", partial(limited, *command(f"run touch {allowed}")))


def searching(command, stage, client):
    """A web search is a request of its own, with a tool that runs at the provider."""
    agent = stage.way.agent(stage, ANTHROPIC)
    mark = stage.mark()
    code, printed, errors = agent(*command("postern-search"))
    sent = [request["text"] or "" for request in stage.seen_since(mark)]
    client.check("alone: the session goes on", code == 0 and DONE.encode() in printed, f"{code}: {printed.decode()}{errors}")
    # Without the tool nothing would be left of the request but a question whose answer the model would invent.
    searched = [text for text in sent if "Perform a web search" in text and '"tool_result"' not in text]
    client.check("alone: the search does not leave", not searched, [text[-300:] for text in searched])
    explained = [text for text in sent if "would invent" in text]
    client.check("alone: the model is told why", explained, [text[-300:] for text in sent])
    mark = stage.mark()
    with agent.with_policy(HOSTED) as ruled:
        code, printed, errors = ruled(*command("postern-search"))
    sent = [request["text"] or "" for request in stage.seen_since(mark)]
    client.check("denied: the session goes on", code == 0 and DONE.encode() in printed, f"{code}: {printed.decode()}{errors}")
    explained = [text for text in sent if "Rule: -/guarded/hostedTools" in text]
    client.check("denied: the model is told why", explained, [text[-300:] for text in sent])


def offered(command, stage, client):
    """A hosted tool in the list of every turn."""
    agent = stage.way.agent(stage, OPENAI)
    mark = stage.mark()
    code, printed, errors = agent(*command())
    turns = [request["text"] for request in stage.seen_since(mark) if OPENAI.takes(request)]
    client.check("stripped: the session goes on", code == 0 and DONE.encode() in printed, f"{code}: {printed.decode()}{errors}")
    client.check("stripped: no turn offers it", turns and not any('"type":"web_search"' in turn for turn in turns), turns)
    with agent.with_policy(HOSTED) as ruled:
        refused(client, "denied", "-/guarded/hostedTools", partial(ruled, *command()))


def refused(client, what, rule, ask):
    """Asks, and checks that a person is told which rule it was, and soon."""
    started = time.monotonic()
    code, printed, errors = ask()
    took, lines = time.monotonic() - started, (printed.decode() + errors).splitlines()
    shown = [line for line in lines if f"Rule: {rule}" in line]
    client.check(f"{what}: reason shown", shown, f"{code}: {lines}")
    # The ones that try again and again take minutes, past the deadline of any command here.
    client.check(f"{what}: not tried for ever", code is not None, f"{took:.0f} s, {code}, {len(shown)} times: {shown[:1]}")
    client.notes.append(f"{what}: ends in {took:.0f} s")
