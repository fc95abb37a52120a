"""Runs real clients through the built gateway, and says for each what was expected and what was seen.

python3 e2e/clients/run.py [--postern PATH] [--only WORD] [--verbose] [--keep]
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import agents
import behind_run
import command_line
import fetching
import gateway
import install
import sdks
from stage import Stage

SUITES = [fetching, command_line, sdks, behind_run, agents, gateway]


def main():
    arguments = parse()
    started = time.monotonic()
    try:
        tools = install.Tools(arguments.postern.resolve(strict=True))
    except (OSError, RuntimeError) as error:
        sys.exit(f"FAIL  a client cannot be installed: {error}\n0 passed, 1 failed")
    directory = Path(tempfile.mkdtemp(prefix="postern-clients-"))
    try:
        with Stage(tools, directory) as stage:
            clients = [client for suite in SUITES for client in suite.run(tools, stage)]
            chosen = [client for client in clients if arguments.only.lower() in client.name.lower()]
            checks = [check for client in chosen for check in examine(client, arguments.verbose)]
    finally:
        if arguments.keep:
            print(f"what was logged is in {directory}")
        else:
            shutil.rmtree(directory)
    failed = sum(not holds for _, holds, _ in checks)
    print(f"{len(checks) - failed} passed, {failed} failed in {time.monotonic() - started:.0f} s")
    sys.exit(1 if failed or not checks else 0)


def examine(client, verbose):
    try:
        client.examine(client)
    except (OSError, ValueError, LookupError, TypeError, subprocess.SubprocessError) as error:
        client.check("the checks come to their end", False, repr(error))
    print(*client.lines(verbose), sep="\n", flush=True)
    return client.checks


def parse():
    parser = argparse.ArgumentParser(description="Runs real clients through the built gateway.")
    parser.add_argument("--postern", type=Path, default=install.ROOT / "target/debug/postern")
    parser.add_argument("--verbose", action="store_true", help="every check, not the differences alone")
    parser.add_argument("--only", default="", metavar="WORD", help="the clients alone whose name has this word")
    parser.add_argument("--keep", action="store_true", help="keep the logs of gateway and upstream")
    return parser.parse_args()


main()
