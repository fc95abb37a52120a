"""Attacks the wall in real network namespaces: what gets out of each attack without its rule, and with it.

python3 e2e/run.py netns [--only WORD]… [--backend NAME] [--table FILE] [--verbose] [--keep]
"""

import sys
from functools import partial
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
from runner import POSTERN, Suite, executable, run
from stage import Stage
from subject import table

MODULES = [names, proof, leaving, sockets, flows, inbound, dead, refusals]
# The attacks that this suite answers for, by their numbers in the list of threats.
LISTED = "A1 A3 A4 A5 A6 A11 A14 A15 A16 A21 A22 A24 A25 A26 A27 B19 G2".split()


def subjects(_stage=None):
    return [subject for module in MODULES for subject in module.subjects()]


def stages(options):
    untried = set(LISTED) - {subject.name.split()[0] for subject in subjects()}
    if untried:
        sys.exit(f"FAIL  nothing tries {', '.join(sorted(untried))}\n0 passed, 1 failed")
    for each in backend.chosen(options.backend):
        yield str(each), partial(Stage, options.postern, each), subjects


def closing(options, runs):
    lines = list(table(runs))
    if options.table:
        options.table.write_text("\n".join(lines) + "\n")
    return ["", *lines, ""]


run(Suite(
    "netns", __doc__.splitlines()[0], stages, needs_root=True, restore=Stage.restore, closing=closing,
    programs={"ip": "iproute2", "nft": "nftables", "setpriv": "util-linux", "openssl": "openssl"},
    options={
        "--postern": executable(POSTERN),
        "--backend": {"choices": ["Nftables", "Iptables"], "help": "one, not all that are here"},
        "--table": {"type": Path, "metavar": "FILE", "help": "also write the table there, as Markdown"},
    },
))
