"""The ways in which the plan is programmed, as far as this machine has them."""

import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from gateway import UID

PROGRAMS = ["iptables-restore", "ip6tables-restore", "iptables-save", "ip6tables-save", "iptables", "ip6tables"]


@dataclass(frozen=True)
class Backend:
    """`programs` is a directory with the programs of one variant, before all others; none for netlink."""

    name: str
    variant: str = ""
    multi: str = ""
    uid: int = UID

    @property
    def weakens(self):
        """Rules are edited in nft's syntax, so the attacks are shown to bite there alone."""
        return self.name == "Nftables"

    def environment(self, directory=None):
        return dict(os.environ)

    def __str__(self):
        return f"{self.name} {self.variant}".strip()


def chosen(name):
    every = [Backend("Nftables"), Backend("Iptables", "nft", "xtables-nft-multi"), Backend("Iptables", "legacy", "xtables-legacy-multi")]
    return [each for each in every if name in (None, each.name) and is_here(each)]


def is_here(each):
    """Whether the kernel has what the variant needs."""
    if not each.multi:
        return True
    program = shutil.which(each.multi)
    return program and subprocess.run(["unshare", "--net", program, "iptables", "-t", "nat", "-S"], capture_output=True, check=False).returncode == 0


del tempfile, Path
