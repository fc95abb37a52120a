"""Two network namespaces, the node's and all that is outside it, and what pods open across the node's bridge."""

import json
from pathlib import Path

from commands import run, tried
from namespaces import address, inside, ip, within

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
    ip(NODE, f"link add eth0 type veth peer name eth0 netns {OUTSIDE}")
    for name, addresses in ((NODE, [NODE_ADDRESS]), (OUTSIDE, [GATEWAY, UPSTREAM, ELSEWHERE])):
        address(name, *(each for families in addresses for each in families.values()))
        ip(name, "link set lo up", "link set eth0 up")
    for each in (METADATA, RESOLVER):
        ip(OUTSIDE, f"address add {each}/32 dev lo")
        ip(NODE, f"route add {each}/32 via {GATEWAY[4]}")
    ip(NODE, f"route add 0.0.0.0/0 via {GATEWAY[4]}", f"route add ::/0 via {GATEWAY[6]}")
    with inside(NODE):
        for key, value in NODE_SETTINGS.items():
            Path("/proc/sys/net", key).write_text(str(value))
    run(*within(NODE, "nft", "-f", "-"), input=WIRE)


def remove():
    for name in (NODE, OUTSIDE):
        tried("ip", "netns", "del", name)


def exists():
    return Path("/run/netns", NODE).exists()


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
            (matches,) = [each["set"] for each in listed["nftables"] if "set" in each]
            for element in matches.get("elem", []):
                source, destination, protocol, port = element["elem"]["val"]["concat"]
                if source in addresses:
                    counted[f"{protocol} {destination} {port}"] = element["elem"]["counter"]["packets"]
        return counted
