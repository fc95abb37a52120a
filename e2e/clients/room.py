"""Two network namespaces, inside and outside, joined by one wire over IPv4 and IPv6, or over one of them."""

import os
import subprocess
import uuid
from pathlib import Path

INSIDE = {4: "10.78.0.2", 6: "fd78::2"}
OUTSIDE = {4: "10.78.0.1", 6: "fd78::1"}
# The kernel's counters outside: packets for addresses that are not there, and datagrams.
STRAYS = ["Ip:InAddrErrors", "Udp:InDatagrams", "Udp:NoPorts", "Ip6InNoRoutes", "Udp6InDatagrams", "Udp6NoPorts"]
# Outside, and nobody is there: names are answered by the gateway or by no one.
NAMESERVERS = {4: "203.0.113.53", 6: "fd79::53"}


class Room:
    """Namespaces of this run alone; leaving it removes them, and what was written for them."""

    def __init__(self, families):
        self.families = families
        self.name = f"postern-{uuid.uuid4().hex[:12]}"
        self.files = Path("/etc/netns", f"{self.name}-inside")

    def __enter__(self):
        try:
            self._build()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for side in ("inside", "outside"):
            subprocess.run(["ip", "netns", "del", f"{self.name}-{side}"], capture_output=True, check=False)
        for file in self.files.glob("*"):
            file.unlink()
        if self.files.exists():
            self.files.rmdir()

    def inside(self, *command):
        """A command in the room, with the room's resolv.conf."""
        return ["ip", "netns", "exec", f"{self.name}-inside", *command]

    def outside(self, *command):
        return ["ip", "netns", "exec", f"{self.name}-outside", *command]

    def strays(self):
        """How many packets came out that are no TCP towards an address of outside."""
        lines = self._counters("snmp")
        # Each protocol has two lines, the names of its counters and their values.
        counters = {names[0] + name: value for names, values in zip(lines[::2], lines[1::2]) for name, value in zip(names, values)}
        counters |= dict(line[:2] for line in self._counters("snmp6"))
        return sum(int(counters[name]) for name in STRAYS)

    def _counters(self, file):
        done = subprocess.run(self.outside("cat", f"/proc/net/{file}"), capture_output=True, text=True, check=True)
        return [line.split() for line in done.stdout.splitlines()]

    def _build(self):
        for side in ("inside", "outside"):
            ip("netns", "add", f"{self.name}-{side}")
        ip("-n", f"{self.name}-outside", "link", "add", "eth0", "type", "veth", "peer", "name", "eth0", "netns", f"{self.name}-inside")
        for side, addresses in (("inside", INSIDE), ("outside", OUTSIDE)):
            for link in ("lo", "eth0"):
                ip("-n", f"{self.name}-{side}", "link", "set", link, "up")
            for family in self.families:
                length = {4: ["/24"], 6: ["/64", "nodad"]}[family]
                ip("-n", f"{self.name}-{side}", "address", "add", addresses[family] + length[0], "dev", "eth0", *length[1:])
        for family in self.families:
            ip("-n", f"{self.name}-inside", f"-{family}", "route", "add", "default", "via", OUTSIDE[family])
        self.files.mkdir(parents=True)
        (self.files / "resolv.conf").write_text(f"nameserver {NAMESERVERS[self.families[0]]}\n")
        # A resolver of the machine that is asked through a Unix socket would answer from outside.
        (self.files / "nsswitch.conf").write_text("passwd: files\ngroup: files\nhosts: files dns\n")


def ip(*arguments):
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"ip {' '.join(arguments)}: {done.stderr.strip()}")


def refusal():
    """Why there can be no room on this machine, or None."""
    return "network namespaces are made by root alone: run the transparent way as root" if os.geteuid() else None
