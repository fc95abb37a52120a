"""The agent: programs in the pod, as root without the dropped capabilities or as an ordinary user."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass

PATIENCE, ANSWER = 180, 15
KEPT = ["chown", "dac_override", "fowner", "kill", "net_bind_service"]


@dataclass(frozen=True)
class Identity:
    name: str
    uid: int
    capabilities: tuple

    def command(self, *command):
        """A command of this identity; nothing that it starts gains more."""
        kept = ",".join(["-all", *(f"+{capability}" for capability in self.capabilities)])
        limits = [f"--{capability_set}={kept}" for capability_set in ("bounding-set", "inh-caps", "ambient-caps")]
        owner = [f"--reuid={self.uid}", f"--regid={self.uid}", "--clear-groups"]
        return ["setpriv", *owner, *limits, "--no-new-privs", *map(str, command)]


ROOT = Identity("root", 0, tuple(KEPT))
USER = Identity("user", 1000, ())
OTHER = Identity("another container", 1001, ())
BOTH = [ROOT, USER]


class Agents:
    """Starts the programs of `attacks/` and `twins/` in the pod; each prints one JSON value, what it saw."""

    def __init__(self, topology, directory):
        self.topology, self.directory = topology, directory
        self.python = interpreter()

    def run(self, identity, program, *arguments, patience=ANSWER):
        """Runs a program and returns what it saw; `patience` is its deadline for each answer."""
        command, environment = self._command(identity, program, arguments), os.environ | {"PATIENCE": str(patience)}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=PATIENCE)
        if done.returncode:
            raise RuntimeError(f"{program} as {identity.name}: {done.stderr.strip()[-600:]}")
        return json.loads(done.stdout)

    def start(self, identity, program, *arguments):
        """A program that goes on, after it has printed its first line."""
        command, environment = self._command(identity, program, arguments), os.environ | {"PATIENCE": str(ANSWER)}
        process = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        return Running(process)

    def _command(self, identity, program, arguments):
        python = [self.python, "-S", "-B", self.directory / f"{program}.py"]
        return self.topology.command("pod", *identity.command(*python, *arguments))


class Running:
    """A program under way; its input ending tells it to end, and then it prints what it saw."""

    def __init__(self, process):
        self.process = process
        self.said = self.next()

    def next(self):
        """The next line that it prints."""
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"a program ended before its time: {self.process.args[-4:]}")
        return json.loads(line)

    def until(self, holds):
        """The first line from here on of which `holds` is true."""
        while not holds(line := self.next()):
            pass
        return line

    def end(self):
        seen, _ = self.process.communicate(timeout=PATIENCE)
        return json.loads(seen.splitlines()[-1])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()


def interpreter():
    """A Python that an ordinary user may start: the one of root's own home is none."""
    for python in (sys.executable, "/usr/bin/python3", "/usr/local/bin/python3"):
        try:
            if subprocess.run(USER.command(python, "-c", ""), capture_output=True, check=False).returncode == 0:
                return python
        except OSError:
            continue
    raise RuntimeError("no Python can be started by an ordinary user")
