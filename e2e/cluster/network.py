"""Two network namespaces, the node's and all that is outside it, and what pods open across the node's bridge."""

import ctypes
import json
import subprocess
from contextlib import contextmanager
from pathlib import Path

from commands import run

NODE, OUTSIDE = "postern-e2e-node", "postern-e2e-outside"
NODE_ADDRESS = {4: "10.99.0.2", 6: "fd00:99::2"}
GATEWAY = {4: "10.99.0.1", 6: "fd00:99::1"}
# Where the stand-in for every upstream listens, and where it is reached by a UDP datagram.
UPSTREAM = {4: "10.99.0.10", 6: "fd00:99::10"}
# Nobody may reach it: it stands for what no policy names.
ELSEWHERE = {4: "10.99.0.66", 6: "fd00:99::66"}
METADATA = "169.254.169.254"
RESOLVER = "10.96.0.10"
BRIDGE = "cni0"
CLONE_NEWNET = 0x40000000
LIBC = ctypes.CDLL(None, use_errno=True)
NODE_SETTINGS = {
    "ipv4/ip_forward": 1,
    "ipv6/conf/all/forwarding": 1,
    "ipv4/conf/all/route_localnet": 1,
    "bridge/bridge-nf-call-iptables": 1,
    "bridge/bridge-nf-call-ip6tables": 1,
}
# Every flow that a pod opens, in the order of connection tracking: replies are not counted.
WIRE = """
table inet postern_e2e {
  set opened4 { type ipv4_addr . ipv4_addr . inet_proto . inet_service; size 65535; flags dynamic; counter; }
  set opened6 { type ipv6_addr . ipv6_addr . inet_proto . inet_service; size 65535; flags dynamic; counter; }
  chain seen {
    type filter hook prerouting priority -150;
    iifname "%(bridge)s" ct direction original update @opened4 { ip saddr . ip daddr . meta l4proto . th dport }
    iifname "%(bridge)s" ct direction original update @opened6 { ip6 saddr . ip6 daddr . meta l4proto . th dport }
  }
}
""" % {"bridge": BRIDGE}


def build():
    """Both namespaces and the wire between them; the node's only way leads outside, and none leads to this machine."""
    for name in (NODE, OUTSIDE):
        run("ip", "netns", "add", name)
        run("ip", "-n", name, "link", "set", "lo", "up")
    run("ip", "-n", NODE, "link", "add", "eth0", "type", "veth", "peer", "name", "eth0", "netns", OUTSIDE)
    outside = [*GATEWAY.values(), *UPSTREAM.values(), *ELSEWHERE.values()]
    for name, addresses in ((NODE, NODE_ADDRESS.values()), (OUTSIDE, outside)):
        for address in addresses:
            options = ["/64", "nodad"] if ":" in address else ["/24"]
            run("ip", "-n", name, "address", "add", address + options[0], "dev", "eth0", *options[1:])
        run("ip", "-n", name, "link", "set", "eth0", "up")
    for address in (METADATA, RESOLVER):
        run("ip", "-n", OUTSIDE, "address", "add", f"{address}/32", "dev", "lo")
        run("ip", "-n", NODE, "route", "add", f"{address}/32", "via", GATEWAY[4])
    run("ip", "-n", NODE, "route", "add", "default", "via", GATEWAY[4])
    run("ip", "-n", NODE, "-6", "route", "add", "default", "via", GATEWAY[6])
    with inside(NODE):
        for key, value in NODE_SETTINGS.items():
            Path("/proc/sys/net", key).write_text(str(value))
    run(*within(NODE, "nft", "-f", "-"), input=WIRE)


def remove():
    for name in (NODE, OUTSIDE):
        subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)


def exists():
    return Path("/run/netns", NODE).exists()


def within(name, *command):
    """A command in a namespace. `ip netns exec` would hide cgroups."""
    return ["nsenter", f"--net=/run/netns/{name}", *map(str, command)]


@contextmanager
def inside(name):
    """This thread in a namespace: sockets made there stay there."""
    with open("/proc/thread-self/ns/net", "rb") as before, open(f"/run/netns/{name}", "rb") as there:
        enter(there)
        try:
            yield
        finally:
            enter(before)


def enter(namespace):
    if LIBC.setns(namespace.fileno(), CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), f"{namespace.name} cannot be entered")


class Wire:
    """The flows that pods have opened since it was cleared, as the node's kernel counted them."""

    def clear(self):
        for name in ("opened4", "opened6"):
            run(*within(NODE, "nft", "flush", "set", "inet", "postern_e2e", name))

    def opened(self, *addresses):
        """By destination, protocol and port, the packets of flows that these addresses of pods opened."""
        counted = {}
        for name in ("opened4", "opened6"):
            listed = json.loads(run(*within(NODE, "nft", "-j", "list", "set", "inet", "postern_e2e", name)))
            (found,) = [each["set"] for each in listed["nftables"] if "set" in each]
            for element in found.get("elem", []):
                source, destination, protocol, port = element["elem"]["val"]["concat"]
                if source in addresses:
                    counted[f"{protocol} {destination} {port}"] = element["elem"]["counter"]["packets"]
        return counted
