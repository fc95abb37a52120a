"""Coding agents as a newcomer starts them: an empty HOME, the key in the variable that everybody has, and a policy of
`postern policy init`, in a terminal too.

Nobody has told the agent anything. In a terminal every dialogue of its first start is answered as a person would.
"""

import json
import re
from dataclasses import dataclass
from functools import partial

import agents
from commands import output
from stage import KEYS
from steps import Step

from sdks import COMMAND, DONE, carried

DENIED = "run sudo touch /postern/postern-denied"
ENTER, UP, DOWN = "\r", "\x1b[A", "\x1b[B"
RAN = COMMAND.removeprefix("echo ")
# The answer below the call; above it some show the conversation's title, which the model gave.
ANSWERED = rf"{RAN}[\s\S]*{re.escape(DONE)}"
SAID = ["[postern] Tool call blocked by policy", "Reason: Nothing is run as root"]


@dataclass(frozen=True)
class Agent:
    """A package and its executable, whose policy it is, how it is started with a prompt and in a terminal."""

    name: str
    package: str
    policy: str
    turns: re.Pattern
    variable: str
    headless: tuple
    terminal: tuple
    # What it shows before it takes a prompt, each with the keys that a person answers with.
    dialogues: tuple
    leave: str
    # What is run once, before all else: Codex stores the placeholder, and Copilot unpacks itself.
    once: tuple = ()
    in_readmes: bool = True


AGENTS = [
    Agent(
        "Claude Code", "@anthropic-ai/claude-code", "claude", agents.ANTHROPIC.turns, "ANTHROPIC_API_KEY",
        ("claude", "--allowedTools", "Bash", "-p"), ("claude",),
        (
            ("Choose the text style", [ENTER]),
            ("Do you want to use this API key", [UP, ENTER]),
            ("Press Enter to continue", [ENTER]),
            ("trust this folder", [DOWN, ENTER]),
            ("auto mode on", []),
        ),
        "/exit",
    ),
    Agent(
        "Codex", "@openai/codex", "codex", agents.OPENAI.turns, "OPENAI_API_KEY",
        ("codex", "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"), ("codex", "--no-daemon"),
        (("Ask Codex to do", []),),
        "/quit",
        ("sh", "-c", "printenv OPENAI_API_KEY | codex login --with-api-key"),
    ),
    Agent(
        "Gemini CLI", "@google/gemini-cli", "gemini", agents.GEMINI.turns, "GEMINI_API_KEY",
        ("gemini", "--skip-trust", "-y", "-p"), ("gemini",),
        (
            ("Do you trust the files", [ENTER]),
            ("How would you like to authenticate", [ENTER]),
            ("Enter Gemini API Key", [ENTER]),
            ("Type your message", []),
        ),
        "/quit",
    ),
    Agent(
        "opencode", "opencode-ai", "opencode", agents.ANTHROPIC.turns, "ANTHROPIC_API_KEY",
        ("opencode", "run"), ("opencode",),
        (("Ask anything", []),),
        "/exit",
    ),
    Agent(
        "Copilot CLI", "@github/copilot", "copilot", re.compile("/responses|/chat/completions"), "COPILOT_GITHUB_TOKEN",
        ("copilot", "--allow-all-tools", "-p"), ("copilot",),
        (("Do you trust", [ENTER]), ("/ commands", [])),
        "/exit",
        ("copilot", "--version"),
        in_readmes=False,
    ),
]


def steps(tools, stage):
    for agent in AGENTS:
        version = tools.node_version(agent.package)
        # The first example of the README, and the policy that is the agent's own.
        for policy in ["any"] * agent.in_readmes + [agent.policy]:
            yield Step(f"first hour, {agent.name}, policy for {policy} {version}", partial(headless, agent, policy))
        yield Step(f"first hour, {agent.name} in a terminal {version}", partial(interactive, agent))


class Newcomer:
    """Someone whose HOME has nothing but the policy where `postern run` looks for one: that of `postern policy init` for an
    agent, or one that they have `written`."""

    def __init__(self, stage, agent, policy, written=None):
        self.stage, self.agent = stage, agent
        self.home = stage.directory / f"newcomer-{len(list(stage.directory.glob('newcomer-*')))}"
        self.project = self.home / "project"
        self.project.mkdir(parents=True)
        way = {"HTTPS_PROXY": stage.way.upstream_proxy, "SSL_CERT_FILE": str(stage.roots("upstream")), "TERM": "xterm-256color"}
        self.environment = stage.bare() | way | {"HOME": str(self.home), agent.variable: KEYS[agent.variable]}
        self.environment["PATH"] = f"{stage.tools.modules / '.bin'}:{self.environment['PATH']}"
        code, text, errors = self.start(stage.tools.postern, "policy", "init", "--agent", policy)
        if code:
            raise RuntimeError(f"no policy for {policy}: {errors}")
        text = text if written is None else written.encode()
        directory = self.home / ".config/postern"
        directory.mkdir(parents=True)
        (directory / "policy.yaml").write_bytes(text)

    def start(self, *command):
        """Status, standard output and standard error of a command."""
        return output(command, env=self.environment, cwd=self.project)

    def wrapped(self, *command):
        """Starts a command under `postern run`."""
        return self.start(self.stage.tools.postern, "run", "--", *command)

    def terminal(self, steps, *command):
        """Returns the screen of a command under `postern run` in a terminal, after these steps."""
        tools = self.stage.tools
        driven = [tools.python, tools.programs / "in_terminal.py", json.dumps(steps), tools.postern, "run", "--", *command]
        code, printed, errors = output(driven, env=self.environment, cwd=self.project)
        if code:
            raise RuntimeError(f"the terminal: {code}: {errors}")
        return json.loads(printed)

    def prepare(self, client):
        if self.agent.once:
            code, _, errors = self.wrapped(*self.agent.once)
            client.check(f"once: {' '.join(self.agent.once)}", code == 0, f"{code}: {errors}")

    def examine(self, client, sent):
        """Checks the requests that reached the stand-in, and that no file holds the key."""
        turns = [request for request in sent if self.agent.turns.fullmatch(request["path"].split("?")[0])]
        held = {carried(request["headers"]) for request in turns}
        client.check("key swapped upstream", held == {KEYS[self.agent.variable]}, held)
        results = [request for request in turns if RAN in (request["text"] or "").replace(COMMAND, "")]
        client.check("tool turn", results, [request["bytes"] for request in turns])
        key = KEYS[self.agent.variable].encode()
        files = [path for path in self.home.rglob("*") if path.is_file() and not path.is_symlink()]
        leaked = [path for path in files if key in path.read_bytes()]
        client.check("no key in its files", not leaked, leaked)


def headless(agent, policy, stage, client):
    newcomer = Newcomer(stage, agent, policy)
    newcomer.prepare(client)
    mark = stage.mark()
    code, printed, errors = newcomer.wrapped(*agent.headless, "run echo")
    client.check("answer printed, status 0", code == 0 and DONE.encode() in printed, f"{code}: {printed.decode()}{errors}")
    newcomer.examine(client, stage.seen_since(mark))
    code, printed, errors = newcomer.wrapped(*agent.headless, DENIED)
    shown = printed.decode()
    name = "coding-agents" if policy == "any" else policy
    is_explained = all(map(shown.count, [*SAID, f"Rule: agents/{name}/no-sudo"]))
    client.check("denied call: rule and reason shown", code == 0 and is_explained, f"{code}: {shown}{errors}")
    client.check("denied call: in the summary", re.search(r"\b[1-9]\d* tool calls? denied", errors), errors)


def interactive(agent, stage, client):
    newcomer = Newcomer(stage, agent, agent.policy)
    newcomer.prepare(client)
    mark = stage.mark()
    # The prompt that is denied comes first: the stand-in's models call nothing any more once they have a result.
    rule = f"Rule: agents/{agent.policy}/no-sudo"
    steps = [*agent.dialogues[:-1], (agent.dialogues[-1][0], [DENIED, ENTER]), (rule, ["run echo", ENTER]), (ANSWERED, [agent.leave, ENTER])]
    ended = newcomer.terminal(steps, *agent.terminal)
    expected = [pattern for pattern, _ in steps]
    missed = f"not seen: {expected[ended['seen']:][:1]} on {ended['screen']}"
    client.check("starts and takes a prompt", ended["seen"] >= len(agent.dialogues), missed)
    client.check("denied call: its rule on the screen", ended["seen"] > len(agent.dialogues), missed)
    client.check("an allowed call, and its answer", ended["seen"] == len(steps), missed)
    client.check("it ends when it is told to", ended["status"] == 0, f"{ended['status']}: {ended['screen']}")
    newcomer.examine(client, stage.seen_since(mark))
