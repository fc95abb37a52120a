"""Installs Postern on a real Kubernetes of one node, and says for each promise what was expected and what was seen.

python3 e2e/cluster/run.py [--only WORD]… [--keep]
"""

import argparse
import os
import shutil
import signal
import subprocess
import sys
import time

import attacks
import changes
import choices
import failures
import install
import removal
import traffic
from stage import Stage

SUITES = [install, traffic, changes, choices, attacks, failures, removal]
# What runs everything, and where it comes from.
NEEDED = {
    "iproute2": "ip",
    "nftables": "nft",
    "iptables": "iptables",
    "conntrack": "conntrack",
    "util-linux": "nsenter",
    "openssl": "openssl",
    "gcc": "cc",
    "binutils": "strip",
    "containerd": "containerd",
    "runc": "runc",
    "containernetworking-plugins": "/usr/lib/cni/bridge",
    "mmdebstrap": "mmdebstrap",
    "buildah": "buildah",
    "Go 1.26 or later": "go",
}


def main():
    arguments = parse()
    refuse_what_cannot_work()
    # Ended from outside, it still removes what it made.
    for ending in (signal.SIGTERM, signal.SIGINT):
        signal.signal(ending, lambda number, _: sys.exit(f"ended by {signal.Signals(number).name}"))
    started, checks = time.monotonic(), []
    try:
        with Stage(arguments.keep) as stage:
            for step in chosen(arguments.only):
                examine(stage, step)
                checks += step.checks
            times = stage.times
    except (OSError, RuntimeError) as error:
        sys.exit(f"FAIL  the stage cannot be set: {error}\n0 passed, 1 failed")
    print("", *times.lines(), "", sep="\n")
    failed = checks.count(False)
    print(f"{len(checks) - failed} passed, {failed} failed in {time.monotonic() - started:.0f} s")
    sys.exit(1 if failed or not checks else 0)


def chosen(words):
    every = [step for suite in SUITES for step in suite.steps()]
    return [
        step for step in every if step.needed or not words or any(word.lower() in step.name.lower() for word in words)
    ]


def examine(stage, step):
    step.begin()
    try:
        step.examine(stage, step)
    except (
        OSError,
        RuntimeError,
        ValueError,
        LookupError,
        TypeError,
        AttributeError,
        subprocess.SubprocessError,
    ) as error:
        step.check("the checks come to their end", False, repr(error))
    step.end()


def refuse_what_cannot_work():
    if os.geteuid():
        sys.exit("network namespaces and containers are made by root alone: run this suite as root")
    missing = {package for package, program in NEEDED.items() if not shutil.which(program)}
    if missing:
        sys.exit(f"something cannot be found: install {', '.join(sorted(missing))}")


def parse():
    parser = argparse.ArgumentParser(description="Installs Postern on a real Kubernetes of one node.")
    parser.add_argument(
        "--only",
        action="append",
        metavar="WORD",
        help="the steps alone whose name has this word, and those that they need",
    )
    parser.add_argument(
        "--keep",
        action="store_true",
        help="use a cluster that is there, and leave it there: `cluster.py down` removes it",
    )
    return parser.parse_args()


main()
