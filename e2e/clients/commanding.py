"""Coding agents whose models work by shell, under their example policies and rules about files, programs and hosts.

A task of several compound commands is done to its end. A command that one rule is about is refused, whatever stands before
it; and under `shell.files: Native` one that only prints a file, where the agent has a tool for that.
"""

import subprocess
from functools import partial

from first_hour import AGENTS, Newcomer
from sdks import DONE
from steps import Step

RULES = """
---
apiVersion: postern.dev/v1alpha1
kind: ClusterEgressPolicy
metadata: {{name: commands}}
spec:
  shell: {{files: {files}, directory: "{project}"}}
  tools:
    - {{name: read, kind: Read, action: Deny, when: {{param: paths, operator: NotWithin, values: ["{home}"]}}}}
    - {{name: write, kind: Write, action: Deny, when: {{param: paths, operator: NotWithin, values: ["{home}"]}}}}
    - {{name: fetch, kind: Fetch, action: Deny}}
    - {{name: push, kind: Shell, action: Deny, when: {{param: command, operator: StartsWith, values: [git push]}}}}
    - name: force
      kind: Shell
      action: Deny
      when: {{all: [{{param: program, operator: In, values: [rm]}}, {{param: options, operator: In, values: [f, force]}}]}}
"""
# Some agents' shells stay where a command went.
TASK = [
    "git init -q notes && cd notes && printf 'one\\ntwo\\n' > notes.txt",
    "cd {project}/notes && cat notes.txt | sort -r | tee sorted.txt; grep -c o *.txt 2>/dev/null || true",
    "cat {project}/notes/notes.txt",
    'cd {project}/notes && git add . && git -c user.name=a -c user.email=a@example.com commit -qm "rm -rf /; git push" && rm -r sorted.txt',
    "bash -lc 'cd {project}/notes && sed -n 1,5p notes.txt > \"first lines\" && git log --oneline'",
]
REFUSED = {
    "read": "cd notes && ls -a; cat /etc/hostname",
    "write": "cd notes && cat <<E>/etc/postern-denied\nx\nE",
    "fetch": "cd notes && timeout 5 curl -s https://evil.example/",
    "push": 'cd notes && bash -c "git push origin main"',
    "force": "cd notes; 'rm' -r -f .",
}
# A file is printed, and written, and nothing else; and what a file tool does not do.
PRINTS = ["cat notes.txt", "echo x > notes.txt"]
WITHOUT_FILES = "mkdir -p notes && cd notes && ls -a | sort | head -n 3 > listed && git init -q"


def steps(tools, stage):
    for agent in AGENTS[:3]:
        version = tools.node_version(agent.package)
        yield Step(f"commands, {agent.name} {version}", partial(examine, agent))
        yield Step(f"commands, {agent.name}, files by its own tools {version}", partial(native, agent))


def prompt(*commands):
    return "run " + ", then ".join(f"`{command}`" for command in commands)


def begin(agent, files, stage, client):
    """Someone under the agent's example policy and the rules, whose project is empty."""
    newcomer = Newcomer(stage, agent, agent.policy)
    with (newcomer.home / ".config/postern/policy.yaml").open("a") as policy:
        policy.write(RULES.format(files=files, home=newcomer.home, project=newcomer.project))
    newcomer.prepare(client)
    return newcomer


def work(newcomer, commands, client):
    """Has the agent do a task, which it ends."""
    task = [command.replace("{project}", str(newcomer.project)) for command in commands]
    code, printed, errors = newcomer.wrapped(*newcomer.agent.headless, prompt(*task))
    client.check("the task is done, status 0", code == 0 and DONE.encode() in printed, f"{code}: {printed.decode()}{errors}")
    client.check("nothing is denied", "0 tool calls denied" in errors and b"blocked by policy" not in printed, f"{printed.decode()}{errors}")


def examine(agent, stage, client):
    newcomer = begin(agent, "Judge", stage, client)
    work(newcomer, TASK, client)
    place = newcomer.project / "notes"
    made = {path.name: path.read_text() for path in place.glob("*") if path.is_file()}
    client.check("every command ran", made == {"notes.txt": "one\ntwo\n", "first lines": "one\ntwo\n"}, made)
    log = subprocess.run(["git", "-C", place, "log", "--format=%s"], capture_output=True, text=True, check=False)
    client.check("the commit is there", log.stdout == "rm -rf /; git push\n", log)
    for rule, command in REFUSED.items():
        refused(newcomer, command, f"Rule: -/commands/{rule}", client)
    client.check("no refused command ran", (place / "notes.txt").exists(), sorted(place.glob("*")))


def native(agent, stage, client):
    newcomer = begin(agent, "Native", stage, client)
    if agent.name == "Codex":  # It has no tool that reads or writes a file, so that nothing is in its way.
        work(newcomer, TASK, client)
        return
    for command, tool in zip(PRINTS, agent_tools(agent), strict=True):
        refused(newcomer, command, f"Use the tool {tool} instead of a command", client)
    work(newcomer, [WITHOUT_FILES], client)


def agent_tools(agent):
    """The agent's tools that read and write a file."""
    return {"Claude Code": ("Read", "Edit"), "Gemini CLI": ("read_file", "replace")}[agent.name]


def refused(newcomer, command, words, client):
    code, printed, errors = newcomer.wrapped(*newcomer.agent.headless, prompt(command))
    shown = printed.decode()
    is_shown = code == 0 and "[postern] Tool call blocked by policy" in shown and words in shown
    client.check(f"{words}: shown", is_shown, f"{code}: {shown}{errors}")
