"""Attacks the wall in real network namespaces: what gets out of each attack without its rule, and with it.

python3 e2e/netns/run.py [--postern PATH] [--only WORD] [--backend NAME] [--table FILE] [--verbose] [--keep]
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import backend
import dead
import flows
import inbound
import leaving
import names
import proof
import refusals
import sockets
from report import table
from stage import Stage

ROOT = Path(__file__).resolve().parents[2]
SUITES = [names, proof, leaving, sockets, flows, inbound, dead, refusals]
# The attacks that this suite answers for, by their numbers in the list of threats.
LISTED = "A1 A3 A4 A5 A6 A11 A14 A15 A16 A21 A22 A24 A25 A26 A27 B19 G2".split()
NEEDED = ["ip", "nft", "setpriv", "openssl"]


def main():
    arguments = parse()
    refuse_what_cannot_work(arguments)
    started = time.monotonic()
    forgotten = set(LISTED) - {subject.name.split()[0] for subject in chosen("")}
    if forgotten:
        sys.exit(f"FAIL  nothing tries {', '.join(sorted(forgotten))}\n0 passed, 1 failed")
    runs = []
    for each in backend.chosen(arguments.backend):
        directory = Path(tempfile.mkdtemp(prefix="postern-netns-"))
        print(f"--- {each}", flush=True)
        try:
            with Stage(arguments.postern, each, directory) as stage:
                runs.append((each, [examine(stage, subject, arguments.verbose) for subject in chosen(arguments.only)]))
        except (OSError, RuntimeError) as error:
            sys.exit(f"FAIL  the stage cannot be set: {error}\n0 passed, 1 failed")
        finally:
            if arguments.keep:
                print(f"what was logged is in {directory}")
            else:
                shutil.rmtree(directory)
    tell(runs, arguments.table, time.monotonic() - started)


def chosen(word):
    every = [subject for suite in SUITES for subject in suite.subjects()]
    return [subject for subject in every if word.lower() in subject.name.lower()]


def examine(stage, subject, verbose):
    try:
        subject.examine(stage, subject)
    except (OSError, RuntimeError, ValueError, LookupError, TypeError, subprocess.SubprocessError) as error:
        subject.check("the checks come to their end", False, repr(error))
        stage.restore()
    print(*subject.lines(verbose), sep="\n", flush=True)
    return subject


def tell(runs, file, seconds):
    lines = list(table(runs))
    print("", *lines, sep="\n")
    if file:
        file.write_text("\n".join(lines) + "\n")
    checks = [check for _, subjects in runs for subject in subjects for check in subject.checks]
    failed = sum(not holds for _, holds, _ in checks)
    print(f"\n{len(checks) - failed} passed, {failed} failed in {seconds:.0f} s")
    sys.exit(1 if failed or not checks else 0)


def refuse_what_cannot_work(arguments):
    if os.geteuid():
        sys.exit("network namespaces are made by root alone: run this suite as root")
    missing = [program for program in NEEDED if not shutil.which(program)]
    if missing:
        sys.exit(f"{', '.join(missing)} cannot be found: install iproute2, nftables, util-linux and openssl")
    if not arguments.postern.exists():
        sys.exit(f"{arguments.postern} is not there: run `cargo build` first")


def parse():
    parser = argparse.ArgumentParser(description="Attacks the wall in real network namespaces.")
    parser.add_argument("--postern", type=Path, default=ROOT / "target/debug/postern")
    parser.add_argument("--verbose", action="store_true", help="every check, not the differences alone")
    parser.add_argument("--only", default="", metavar="WORD", help="the subjects alone whose name has this word")
    parser.add_argument("--backend", choices=["Nftables", "Iptables"], help="one, not all that are here")
    parser.add_argument("--table", type=Path, metavar="FILE", help="also write the table there, as Markdown")
    parser.add_argument("--keep", action="store_true", help="keep the gateway's log and what it was given")
    return parser.parse_args()


main()
