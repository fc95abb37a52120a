"""Installs what the clients need below target/clients, at pinned versions, and finds the system's own tools."""

import shutil
from pathlib import Path

from packages import TARGET, Packages

HERE = Path(__file__).resolve().parent
PACKAGES = {
    "curl": "curl", "git": "git", "openssl": "openssl", "go": "golang-go", "java": "openjdk-17-jdk-headless",
    "javac": "openjdk-17-jdk-headless", "keytool": "openjdk-17-jdk-headless", "ip": "iproute2", "ssh": "openssh-client",
}


class Tools(Packages):
    """Where everything is. What cannot be installed raises, with what was tried and what it said."""

    def __init__(self, postern):
        self.postern = postern
        self.cache = TARGET / "clients"
        self.cache.mkdir(parents=True, exist_ok=True)
        self._system_packages()
        super().__init__(HERE, self.cache)
        self._programs()

    def installed(self):
        # The install scripts that are needed: each puts the executable of this platform in its place.
        for script in ("@anthropic-ai/claude-code/install.cjs", "opencode-ai/postinstall.mjs"):
            self.run(self.node, self.modules / script, environment=self.path())

    def _system_packages(self):
        missing = sorted({package for tool, package in PACKAGES.items() if not shutil.which(tool)})
        if missing:
            self.run("apt-get", "update", "-qq")
            self.run("apt-get", "install", "-y", "-qq", "--no-install-recommends", *missing)

    def _programs(self):
        self.programs = self.cache / "programs"
        shutil.copytree(HERE / "programs", self.programs, dirs_exist_ok=True)
        self.run("go", "build", "-o", self.programs / "with_go", self.programs / "with_go.go")
        self.run("javac", "-d", self.programs, self.programs / "WithJava.java")
