"""Runs the Lua by which Argo CD judges policies over statuses as the operator writes them.

python3 e2e/run.py cluster/argo_health    # PyPI's lupa (it brings Lua) is installed into the cache where it is missing

Argo CD's Lua is 5.1 without libraries that reach out of it. Exit status 1 where a verdict is another one.
"""

import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "postern-e2e" / "lua"
LUPA = "lupa==2.8"
KEY = "resource.customizations.health.postern.dev_"
# What Argo CD's Lua does not have where `useOpenLibs` is off.
WITHOUT = ("io", "os", "package", "debug", "require", "dofile", "loadfile")


def condition(kind, status, reason, message="words"):
    return {"type": kind, "status": status, "reason": reason, "message": message}


def policy(*conditions, seen=1, generation=1):
    status = {"observedGeneration": seen, "conditions": list(conditions)}
    return {"metadata": {"name": "a", "generation": generation}, "status": status}


ACCEPTED = condition("Accepted", "True", "Accepted")
PROGRAMMED = condition("Programmed", "True", "Programmed", "2 of 2 pods enforce the newest revision.")
READY = condition("Ready", "True", "Programmed")


def unprogrammed(reason):
    return policy(ACCEPTED, condition("Programmed", "False", reason), condition("Ready", "False", reason))


# What it is, the object, its health, and what the message begins with.
STATUSES = [
    ("one that is new", {"metadata": {"name": "a", "generation": 1}}, "Progressing", "Waiting"),
    ("one whose status is empty", {"metadata": {"name": "a", "generation": 1}, "status": {}}, "Progressing", "Waiting"),
    ("one that was edited", policy(ACCEPTED, PROGRAMMED, READY, generation=2), "Progressing", "Waiting"),
    ("one that all pods enforce", policy(ACCEPTED, PROGRAMMED, READY), "Healthy", "2 of 2"),
    ("one of an operator without Ready", policy(ACCEPTED, PROGRAMMED), "Healthy", "2 of 2"),
    ("one without pods", policy(ACCEPTED, condition("Programmed", "True", "NoPods")), "Healthy", "words"),
    (
        "one that does not compile",
        policy(condition("Accepted", "False", "Invalid"), condition("Programmed", "False", "NotAccepted")),
        "Degraded",
        "Invalid: words",
    ),
    ("one that pods are about to take over", unprogrammed("Pending"), "Progressing", "Pending: words"),
    *((f"one with {reason}", unprogrammed(reason), "Degraded", f"{reason}: words")
      for reason in ("Unguarded", "Drift", "CredentialMissing", "HostsLeftOut", "TooLarge", "ReconcileFailed")),
]  # fmt: skip


def main():
    scripts = yaml.safe_load((ROOT / "deploy" / "argo-cd" / "health.yaml").read_text())["data"]
    kinds = re.findall(r'name: "(\w*EgressPolicy)"', (ROOT / "src" / "api" / "crd.rs").read_text())
    wrong = [] if {KEY + kind for kind in kinds} == set(scripts) else [f"the kinds are {kinds}"]
    for kind, script in scripts.items():
        for what, object_, status, begins in STATUSES:
            health = judged(script, object_)
            if health.get("status") != status or not health.get("message", "").startswith(begins):
                wrong.append(f"{kind.removeprefix(KEY)}: {what} is {health}, and not {status}")
    for each in wrong:
        print(f"FAIL  {each}")
    count = len(scripts) * len(STATUSES)
    print(f"{count} verdicts: {'all as they should be' if not wrong else 'not as they should be'}")
    return 1 if wrong else 0


def judged(script, object_):
    runtime = lua()
    for name in WITHOUT:
        runtime.globals()[name] = None
    runtime.globals()["obj"] = table(runtime, object_)
    return dict(runtime.execute(script))


def table(runtime, value):
    """Converts an object to Lua as Argo CD does: tables, with lists that begin at one."""
    if isinstance(value, dict):
        return runtime.table_from({key: table(runtime, each) for key, each in value.items()})
    if isinstance(value, list):
        return runtime.table_from([table(runtime, each) for each in value])
    return value


def lua():
    if not (CACHE / "lupa").exists():
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target", CACHE, LUPA]
        subprocess.run(command, check=True, env=os.environ | {"PIP_BREAK_SYSTEM_PACKAGES": "1", "PIP_ROOT_USER_ACTION": "ignore"})
    if str(CACHE) not in sys.path:
        sys.path.insert(0, str(CACHE))
    return importlib.import_module("lupa.lua51").LuaRuntime(register_eval=False)


if __name__ == "__main__":
    sys.exit(main())
