"""Four network namespaces: the agent's pod, an upstream and an accomplice, joined by a wire between them."""

import os
import signal
import socket
from contextlib import contextmanager
from pathlib import Path

from commands import run, tried
from namespaces import address, inside, ip

HOSTS = ["pod", "upstream", "accomplice"]
# The upstream's second address is named by nobody.
ADDRESSES = {
    "pod": ["10.77.0.5", "fd77::5"],
    "upstream": ["10.77.0.10", "10.77.0.20", "fd77::10", "fd77::20"],
    "accomplice": ["10.77.0.66", "fd77::66", "fe80::66"],
}
POD = {4: "10.77.0.5", 6: "fd77::5"}
UPSTREAM = {4: "10.77.0.10", 6: "fd77::10"}
BARE = {4: "10.77.0.20", 6: "fd77::20"}
# The pod's routes lead through it: whatever leaves is on the wire, wherever it is bound for.
ACCOMPLICE = {4: "10.77.0.66", 6: "fd77::66"}
LINK_LOCAL = {4: "169.254.169.254", 6: "fe80::66%eth0"}
# Nothing speaks by itself: no duplicate address detection, no router discovery, no bridge that asks for memberships.
QUIET = {"dad_transmits": 0, "accept_dad": 0, "accept_ra": 0, "router_solicitations": 0}
# Ping sockets for everybody, data in a SYN without a cookie, segment routing; nothing is asked of a neighbour twice.
POD_SETTINGS = {
    "ipv4/ping_group_range": "0 2147483647",
    "ipv4/tcp_fastopen": 0x5,
    "ipv6/conf/all/seg6_enabled": 1,
    "ipv4/neigh/eth0/mcast_solicit": 1,
    "ipv6/neigh/eth0/mcast_solicit": 1,
}
KINDS = {"tcp": socket.SOCK_STREAM, "udp": socket.SOCK_DGRAM}
FAMILIES = {4: socket.AF_INET, 6: socket.AF_INET6}
PATIENCE = 10
IPV6_OFF = "ipv6/conf/all/disable_ipv6"


class Topology:
    """Namespaces of this run alone; leaving it ends what still runs there and removes them."""

    def __init__(self):
        self.prefix = f"postern-{os.getpid()}"

    def __enter__(self):
        try:
            self._build()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for host in [*HOSTS, "wire"]:
            status, processes = tried("ip", "netns", "pids", self.name(host))
            for process in processes.split() if status == 0 else []:
                os.kill(int(process), signal.SIGKILL)
            tried("ip", "netns", "del", self.name(host))
        resolver = self._resolver()
        resolver.unlink(missing_ok=True)
        if resolver.parent.exists():
            resolver.parent.rmdir()

    def name(self, host):
        return f"{self.prefix}-{host}"

    def inside(self, host):
        """This thread in a host's namespace."""
        return inside(self.name(host))

    def socket(self, host, family, kind, owner=0):
        """A socket in a host's namespace, made by a UID, which the kernel's rules take for its owner's."""
        with self.inside(host):
            os.seteuid(owner)
            try:
                made = socket.socket(FAMILIES[family], kind)
            finally:
                os.seteuid(0)
        made.settimeout(PATIENCE)
        return made

    def command(self, host, *command):
        """A command in a host's namespace and with its resolv.conf."""
        return ["ip", "netns", "exec", self.name(host), *map(str, command)]

    def write(self, host, settings):
        """Sets kernel parameters, by their path under net/."""
        with self.inside(host):
            for key, value in settings.items():
                Path("/proc/sys/net", key).write_text(str(value))

    @contextmanager
    def without_ipv6(self, host):
        """A host whose kernel speaks no IPv6; afterwards it has its addresses and routes again."""
        self.write(host, {IPV6_OFF: 1})
        try:
            yield
        finally:
            self.write(host, {IPV6_OFF: 0})
            address(self.name(host), *(each for each in ADDRESSES[host] if ":" in each))
            ip(self.name(host), f"route add ::/0 via {ACCOMPLICE[6]}")

    def _build(self):
        for host in [*HOSTS, "wire"]:
            run("ip", "netns", "add", self.name(host))
            self.write(host, {f"ipv6/conf/default/{key}": value for key, value in QUIET.items()})
        wire = self.name("wire")
        ip(wire, "link add bridge type bridge stp_state 0 mcast_snooping 0", "link set bridge up")
        for host in HOSTS:
            ip(wire, f"link add {host} type veth peer name eth0 netns {self.name(host)}", f"link set {host} master bridge up")
            ip(self.name(host), "link set lo up", "link set eth0 up")
            address(self.name(host), *ADDRESSES[host])
        # Seen on the wire in the order in which they were sent, whichever processor their senders ran on.
        steered = "/sys/class/net/pod/queues/rx-0/rps_cpus"
        run(*self.command("wire", "sh", "-c", f"[ ! -e {steered} ] || echo 1 > {steered}"))
        ip(self.name("pod"), f"route add 0.0.0.0/0 via {ACCOMPLICE[4]}", f"route add ::/0 via {ACCOMPLICE[6]}")
        self.write("pod", POD_SETTINGS)
        self._resolver().parent.mkdir(parents=True)
        self._resolver().write_text(f"nameserver {UPSTREAM[4]}\n")

    def _resolver(self):
        """Returns the file that `ip netns exec` mounts as /etc/resolv.conf."""
        return Path("/etc/netns", self.name("pod"), "resolv.conf")
