"""The ways in which the plan is programmed, as far as this machine has them."""

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

PROGRAMS = [f"{family}{action}" for family in ("iptables", "ip6tables") for action in ("", "-save", "-restore")]


@dataclass(frozen=True)
class Backend:
    """`multi` is the program that is all of one variant of iptables, by the name it is called; none for netlink.
    `mark` stands in the listed rules of this backend alone."""

    name: str
    mark: str
    variant: str = ""
    multi: str = ""

    @property
    def weakens(self):
        """Rules are edited in nft's syntax, so the attacks are shown to bite there alone."""
        return self.name == "Nftables"

    def environment(self, directory):
        """In which the variant's programs come before all others; they are linked in `directory`."""
        if not self.multi:
            return dict(os.environ)
        links = Path(directory, self.multi)
        if not links.exists():
            links.mkdir()
            for program in PROGRAMS:
                (links / program).symlink_to(shutil.which(self.multi))
        return os.environ | {"PATH": f"{links}:{os.environ['PATH']}"}

    def listings(self):
        """Commands that list rules which nft does not show."""
        if self.variant != "legacy":
            return []
        return [["iptables-legacy-save"], ["ip6tables-legacy-save"]]

    def is_here(self):
        """Whether program and kernel have the variant."""
        if not self.multi:
            return True
        if not (program := shutil.which(self.multi)):
            return False
        listed = ["unshare", "--net", program, "iptables", "-t", "nat", "-S"]
        return subprocess.run(listed, capture_output=True, check=False).returncode == 0

    def __str__(self):
        return f"{self.name} ({self.variant})" if self.variant else self.name


EVERY = [
    Backend("Nftables", "table inet postern"),
    Backend("Iptables", "chain POSTERN_OUTPUT", "nft", "xtables-nft-multi"),
    Backend("Iptables", ":POSTERN_OUTPUT", "legacy", "xtables-legacy-multi"),
]


def chosen(name):
    """Those of a name, or all, that this machine has."""
    return [each for each in EVERY if name in (None, each.name) and each.is_here()]
