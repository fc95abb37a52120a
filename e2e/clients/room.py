"""Two network namespaces, inside and outside, joined by one wire over IPv4 and IPv6, or over one of them."""

import uuid
from pathlib import Path

from commands import run, tried
from namespaces import address, ip

INSIDE = {4: "10.78.0.2", 6: "fd78::2"}
OUTSIDE = {4: "10.78.0.1", 6: "fd78::1"}
ANYWHERE = {4: "0.0.0.0/0", 6: "::/0"}
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
            tried("ip", "netns", "del", f"{self.name}-{side}")
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
        """By the kernel's counter, how many packets came out since `begin` that are no TCP towards an address of outside."""
        return {name: value - self.before[name] for name, value in self._strays().items() if value > self.before[name]}

    def begin(self):
        """Counts from here: before the room is shut, the kernel greets its neighbours."""
        self.before = self._strays()

    def _strays(self):
        lines = self._counters("snmp")
        # Each protocol has two lines, the names of its counters and their values.
        counters = {names[0] + name: value for names, values in zip(lines[::2], lines[1::2]) for name, value in zip(names, values)}
        counters |= dict(line[:2] for line in self._counters("snmp6"))
        return {name: int(counters[name]) for name in STRAYS}

    def _counters(self, file):
        return [line.split() for line in run(*self.outside("cat", f"/proc/net/{file}")).splitlines()]

    def _build(self):
        inside, outside = f"{self.name}-inside", f"{self.name}-outside"
        for side in (inside, outside):
            run("ip", "netns", "add", side)
        ip(outside, f"link add eth0 type veth peer name eth0 netns {inside}")
        for side, addresses in ((inside, INSIDE), (outside, OUTSIDE)):
            ip(side, "link set lo up", "link set eth0 up")
            address(side, *(addresses[family] for family in self.families))
        ip(inside, *(f"route add {ANYWHERE[family]} via {OUTSIDE[family]}" for family in self.families))
        self.files.mkdir(parents=True)
        (self.files / "resolv.conf").write_text(f"nameserver {NAMESERVERS[self.families[0]]}\n")
        # A resolver of the machine that is asked through a Unix socket would answer from outside.
        (self.files / "nsswitch.conf").write_text("passwd: files\ngroup: files\nhosts: files dns\n")
