"""The redirect's plan in the pod: programmed by the product, weakened by hand, taken away."""

import re
import subprocess
from dataclasses import dataclass

from commands import run
from gateway import UID

INBOUND = [8080]


class Plan:
    """`postern redirect` in the pod's namespace, with one backend."""

    def __init__(self, topology, postern, settings, backend):
        self.topology, self.backend = topology, backend
        self.environment = backend.environment(settings.parent)
        declared = ",".join(map(str, INBOUND))
        self.redirect = [postern, "redirect", "--config", settings, "--uid", UID, "--inbound-ports", declared]

    def program(self):
        self._demand()

    def verify(self):
        """Whether the product finds its own rules, and what it says otherwise."""
        done = self.run("--verify")
        return done.returncode == 0, done.stdout + done.stderr

    def run(self, *more, before=()):
        """The redirect's exit status and outputs; `before` is a command that it is started by."""
        command = self.topology.command("pod", *before, *self.redirect, "--backend", self.backend.name, *more)
        return subprocess.run(command, env=self.environment, capture_output=True, text=True, check=False)

    def remove(self):
        self._demand("--remove")

    def weaken(self, edits):
        """Puts the same plan with some lines edited in the place of the product's."""
        text = run(*self.redirect, "--dry-run", "--backend", "Nftables")
        text = re.sub(r"(?m)^\s*#.*\n", "", text)
        for edit in edits:
            text = edit(text)
        self.load(text)

    def load(self, text):
        """Loads rules in nft's own syntax."""
        run(*self.topology.command("pod", "nft", "-f", "-"), input=text)

    def rules(self):
        """All rules of the pod, whoever made them, without counters and dates."""
        listed = [["nft", "--stateless", "list", "ruleset"], *self.backend.listings()]
        text = "".join(run(*self.topology.command("pod", *each)) for each in listed)
        return re.sub(r"(?m)^#.*\n|\[\d+:\d+\]", "", text)

    def _demand(self, *more):
        done = self.run(*more)
        if done.returncode:
            raise RuntimeError(f"postern redirect {' '.join(more)}: {done.stderr.strip()}")


@dataclass(frozen=True)
class Without:
    """Takes away the lines that match; a plan that has none is another plan, and the edit must be rewritten."""

    pattern: str

    def __call__(self, text):
        edited, count = re.subn(rf"(?m)^.*(?:{self.pattern}).*\n", "", text)
        return changed(edited, count, self.pattern)


@dataclass(frozen=True)
class Instead:
    """Writes something else where the pattern matches."""

    pattern: str
    text: str

    def __call__(self, text):
        return changed(*re.subn(f"(?m){self.pattern}", self.text, text), self.pattern)


@dataclass(frozen=True)
class First:
    """Puts a rule before all others of a chain."""

    chain: str
    rule: str

    def __call__(self, text):
        head = rf"(chain {self.chain} \{{\s*type [^\n]*\n)"
        return changed(*re.subn(head, rf"\1    {self.rule}\n", text), self.chain)


@dataclass(frozen=True)
class WithoutChain:
    """Takes a whole chain away, or with `emptied` its rules alone."""

    chain: str
    emptied: bool = False

    def __call__(self, text):
        block = rf"(  chain {self.chain} \{{\n.*\n)(?:    .*\n)*(  \}}\n)"
        return changed(*re.subn(block, r"\1\2" if self.emptied else "", text), self.chain)


def changed(text, count, pattern):
    if not count:
        raise RuntimeError(f"the plan has nothing that matches {pattern!r}")
    return text
