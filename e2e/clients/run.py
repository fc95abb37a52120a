"""Runs real clients through the built gateway, and says for each what was expected and what was seen.

python3 e2e/clients/run.py [--way explicit|transparent|both] [--postern PATH] [--only WORD] [--verbose] [--keep]
"""

import argparse
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import agents
import behind_run
import command_line
import fetching
import first_hour
import gateway
import guarded
import install
import sdks
import trust
import unconfigured
from explicit import Explicit
from room import refusal
from stage import Stage
from transparent import Transparent

# By name, the stages that it takes: a way, and what is run on it.
WAYS = {
    "explicit": [(Explicit, [fetching, trust, command_line, sdks, behind_run, first_hour, agents, guarded, gateway])],
    "transparent": [
        (Transparent, [fetching, command_line, sdks, agents, guarded, unconfigured, gateway]),
        (partial(Transparent, families=[6]), [fetching, unconfigured, gateway]),
    ],
}


def main():
    arguments = parse()
    # Ended from outside, it still removes what it made.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by SIGTERM"))
    started, checks = time.monotonic(), []
    ways = list(WAYS) if arguments.way == "both" else [arguments.way]
    why_not = refusal() if "transparent" in ways else None
    if why_not and len(ways) == 1:
        sys.exit(why_not)
    try:
        tools = install.Tools(arguments.postern.resolve(strict=True))
    except (OSError, RuntimeError) as error:
        sys.exit(f"FAIL  a client cannot be installed: {error}\n0 passed, 1 failed")
    for way in ways:
        if way == "transparent" and why_not:
            sys.exit(why_not)
        try:
            checks += [check for stage in WAYS[way] for check in on(*stage, tools, arguments)]
        except (OSError, RuntimeError) as error:
            sys.exit(f"FAIL  what clients meet cannot be started: {error}\n0 passed, 1 failed")
    failed = sum(not holds for _, holds, _ in checks)
    print(f"{len(checks) - failed} passed, {failed} failed in {time.monotonic() - started:.0f} s")
    sys.exit(1 if failed or not checks else 0)


def on(way, suites, tools, arguments):
    """The checks of the chosen clients, on a stage of their own."""
    directory, way = Path(tempfile.mkdtemp(prefix="postern-clients-")), way()
    print(f"--- {way}", flush=True)
    try:
        with Stage(tools, directory, way) as stage:
            clients = [client for suite in suites for client in suite.run(tools, stage)]
            chosen = [client for client in clients if arguments.only.lower() in client.name.lower()]
            return [check for client in chosen for check in examine(client, arguments.verbose)]
    finally:
        if arguments.keep:
            print(f"what was logged is in {directory}")
        else:
            shutil.rmtree(directory)


def examine(client, verbose):
    try:
        client.examine(client)
    except (OSError, RuntimeError, ValueError, LookupError, TypeError, subprocess.SubprocessError) as error:
        client.check("the checks come to their end", False, repr(error))
    print(*client.lines(verbose), sep="\n", flush=True)
    return client.checks


def parse():
    parser = argparse.ArgumentParser(description="Runs real clients through the built gateway.")
    parser.add_argument("--way", choices=[*WAYS, "both"], default="explicit", help="how they reach it; transparent needs root")
    parser.add_argument("--postern", type=Path, default=install.ROOT / "target/debug/postern")
    parser.add_argument("--verbose", action="store_true", help="every check, not the differences alone")
    parser.add_argument("--only", default="", metavar="WORD", help="the clients alone whose name has this word")
    parser.add_argument("--keep", action="store_true", help="keep the logs of gateway and upstream")
    return parser.parse_args()


main()
