"""The agents: how each is asked to do a task, and what it is told of keys."""

import json
from dataclasses import dataclass

TASK = "Do the task."
CLAUDE = ("claude", "-p", TASK, "--output-format", "stream-json", "--verbose", "--allowedTools", "Bash Read")


@dataclass(frozen=True)
class Agent:
    """An agent from npm, the host of its provider, its arguments, and the variables that it needs."""

    name: str
    package: str
    host: str
    command: tuple
    variables: dict
    # Files of its home, by their paths.
    files: dict
    # Whether what it sends of an output is the output and no more.
    is_plain: bool = False

    def prepare(self, home):
        for path, text in self.files.items():
            (home / path).parent.mkdir(parents=True, exist_ok=True)
            (home / path).write_text(text)


AGENTS = {
    "claude": Agent(
        "Claude Code", "@anthropic-ai/claude-code", "api.anthropic.com", CLAUDE,
        {"ANTHROPIC_API_KEY": "sk-ant-made-up", "IS_SANDBOX": "1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}, {}, is_plain=True,
    ),
    "codex": Agent(
        "Codex", "@openai/codex", "api.openai.com",
        ("codex", "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "--json", TASK),
        {"CODEX_API_KEY": "sk-made-up"}, {".codex/config.toml": "[analytics]\nenabled = false\n"},
    ),
    "gemini": Agent(
        "Gemini CLI", "@google/gemini-cli", "generativelanguage.googleapis.com",
        ("gemini", "-p", TASK, "--skip-trust", "-y", "-o", "stream-json"),
        {"GEMINI_API_KEY": "made-up"}, {".gemini/settings.json": json.dumps({"privacy": {"usageStatisticsEnabled": False}})},
    ),
    # What a subscription sends says of itself that nobody changed it: it is left as it is.
    "subscription": Agent(
        "Claude Code with a subscription", "@anthropic-ai/claude-code", "api.anthropic.com", CLAUDE,
        {"CLAUDE_CODE_OAUTH_TOKEN": "sk-ant-oat01-made-up", "IS_SANDBOX": "1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}, {},
    ),
}
