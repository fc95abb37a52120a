"""Attacks that send something out of the pod past the gateway (threats A1, A3 to A6, A11, A26, A27)."""

from agent import ROOT
from attack import Attack
from frames import UDP
from plan import First, Instead, Without
from report import Subject
from topology import ACCOMPLICE, LINK_LOCAL
from twin import between_containers, inspected, inspected_soon

REDIRECT = Without(r"l4proto tcp redirect")
DNS = Without(r"dport 53 redirect")
REJECT = Without(r"^ +counter reject")
POSTROUTING = Without(r"oifname != .lo. ip6? daddr .*drop")
OPEN = (REDIRECT, DNS, REJECT)
PORTS = [443, 8443, 22, 9418, 1]
SECOND = 1.0
# On the link, and nobody's: whoever asks for it says it.
NOBODY = {4: "10.77.0.{}", 6: "fd77::7365:6372:{}"}


def subjects():
    for attack in attacks():
        yield Subject(f"{attack.threat} {attack.name}", attack.examine, counts=True)


def attacks():
    yield from tcp()
    yield from datagrams()
    yield from questions()
    yield from devices()
    yield from groups()


def tcp():
    rule = "the redirect of every TCP port"
    for kind, name in {"plain": f"TCP to {', '.join(map(str, PORTS))}", "mptcp": "MPTCP", "fast-open": "TCP Fast Open"}.items():
        yield Attack("A1", name, rule, (REDIRECT, REJECT), "tcp", dialling(kind, ACCOMPLICE, PORTS))
    usual = Instead(r"meta l4proto tcp redirect", "tcp dport { 80, 443 } redirect")
    yield Attack("A1", "TCP to ports that are not usual", "the rest of the ports", (usual, REJECT), "tcp", dialling("plain", ACCOMPLICE, PORTS[1:]))
    blind = (First("nat_output", "meta nfproto ipv6 accept"), First("filter_output", "meta nfproto ipv6 accept"))
    v6 = {"IPv6": ACCOMPLICE[6], "NAT64": "64:ff9b::10.77.0.66", "6to4": "2002:a4d:42::1", "Teredo": "2001:0:a4d:42::1"}
    for name, address in v6.items():
        yield Attack("A3", f"TCP over {name}", "rules for IPv6", blind, "tcp", dialling("plain", {6: address}, PORTS), families=(6,))
    yield Attack("A3", "UDP over NAT64", "rules for IPv6", blind, "udp", dialling("plain", {6: "64:ff9b::10.77.0.66"}, [443]), families=(6,))
    mapped = dialling("plain", {6: "::ffff:10.77.0.66"}, PORTS)
    yield Attack("A3", "TCP to an IPv4-mapped address", rule, (REDIRECT, REJECT), "tcp", mapped, families=(6,))
    exempt = (First("nat_output", "meta skuid 0 accept"), First("filter_output", "meta skuid 0 accept"))
    yield Attack("A11", "root dials", "root being nobody special", exempt, "tcp", dialling("plain", ACCOMPLICE, PORTS), bites=(ROOT,))


def datagrams():
    rule = "the final reject"
    at_once = ("refused at once", lambda seen, _: seen in REFUSALS)
    soon = ("refused within a second", lambda seen, _: seen["answer"] in REFUSALS and seen["seconds"] < SECOND)
    yield Attack("A4", "QUIC", rule, (REJECT,), "quic", lambda family: [family, ACCOMPLICE[family]], refused=soon, twin=inspected_soon)
    # The kernel tells a ping socket of IPv6 nothing about its refusal.
    told = ("refused at once", lambda seen, family: family == 6 or seen in REFUSALS)
    yield Attack("A5", "echo requests", rule, (REJECT,), "ping", lambda family: [family, ACCOMPLICE[family]], refused=told)
    multicast = {4: "224.0.0.251", 6: "ff02::fb%eth0"}
    kinds = {
        "UDP": ("plain", ACCOMPLICE),
        "UDP in fragments": ("large", ACCOMPLICE),
        "UDP-Lite": ("udplite", ACCOMPLICE),
        "questions for a neighbour's address": ("neighbour", NOBODY),
        "multicast": ("plain", multicast),
        "broadcast": ("broadcast", {4: "10.77.0.255"}),
        "broadcast everywhere": ("broadcast", {4: "255.255.255.255"}),
        "link-local addresses": ("plain", LINK_LOCAL),
    }
    for name, (kind, to) in kinds.items():
        yield Attack("A5", name, rule, (REJECT,), "udp", dialling(kind, to, [5353]), families=tuple(to), refused=at_once, twin=between_containers)


def questions():
    rule = "the redirect of DNS"
    answered = ("the gateway answers instead", lambda seen, _: "TIMEOUT" not in seen.values() and "NXDOMAIN" in seen.values())
    yield Attack("A6", "a secret in DNS questions", rule, OPEN, "dns", lambda family: [family, ACCOMPLICE[family]], refused=answered)


def devices():
    """Where a device is chosen, what was redirected to the loopback leaves by that device."""
    rule = "the rules behind routing"
    loopback = {4: "127.0.0.1", 6: "::1"}
    inside = between_containers
    yield Attack("A26", "TCP bound to a device", rule, (POSTROUTING,), "tcp", dialling("device", ACCOMPLICE, [443]), twin=inside)
    for kind, name in {"device": "SO_BINDTODEVICE", "pktinfo": "IP_PKTINFO", "unicast-if": "IP_UNICAST_IF"}.items():
        yield Attack("A26", f"{name} with a loopback address", rule, (POSTROUTING,), "udp", dialling(kind, loopback, [53]), twin=inside)


def groups():
    negated = Instead(r"counter reject", "meta skuid != 61234 counter reject")
    yield Attack("A27", "multicast groups that carry a secret", "a reject that needs no owner", (negated,), "groups", lambda family: [family], twin=inspected)
    routed = lambda family: ["routing", family, "::1", 5353, ACCOMPLICE[6]]
    yield Attack("A27", "a routing header", "the final reject", (REJECT,), "udp", routed, families=(6,), counts=is_datagram, twin=inspected)


def is_datagram(frame):
    return frame.protocol == UDP


def dialling(kind, addresses, ports):
    return lambda family: [kind, family, addresses[family], *ports]


REFUSALS = {"EPERM", "EACCES", "ECONNREFUSED", "ENETUNREACH", "EHOSTUNREACH"}
