"""Attacks that send something out of the pod past the gateway (threats A1, A3 to A6, A11, A22, A26, A27)."""

import itertools

from agent import ROOT
from attack import Attack
from frames import UDP
from gateway import UID
from plan import First, Instead, Without
from subject import Subject
from topology import ACCOMPLICE, LINK_LOCAL, POD
from twin import between_containers, inspected_after_quic

REDIRECT = Without(r"l4proto tcp redirect")
DNS = Without(r"dport 53 redirect")
REJECT = Without(r"^ +counter reject")
POSTROUTING = Without(r"oifname != .lo. ip6? daddr .*drop")
EVERY_PORT, FINAL_REJECT = "the redirect of every TCP port", "the final reject"
PORTS = [443, 8443, 22, 9418, 1]
REFUSALS = {"EPERM", "EACCES", "ECONNREFUSED", "ENETUNREACH", "EHOSTUNREACH"}
AT_ONCE = ("refused at once", lambda seen, _: seen in REFUSALS)


def subjects():
    for attack in [*tcp(), *ipv6(), *datagrams(), *questions(), *devices(), *groups(), *answers()]:
        yield Subject(f"{attack.threat} {attack.name}", attack.examine, counts=True)


def tcp():
    kinds = {"plain": f"TCP to {', '.join(map(str, PORTS))}", "mptcp": "MPTCP", "fast-open": "TCP Fast Open"}
    for kind, name in kinds.items():
        yield Attack("A1", name, EVERY_PORT, (REDIRECT, REJECT), "tcp", dialling(kind, ACCOMPLICE, PORTS))
    usual = Instead(r"meta l4proto tcp redirect", "tcp dport { 80, 443 } redirect")
    others = dialling("plain", ACCOMPLICE, PORTS[1:])
    yield Attack("A1", "TCP to ports that are not usual", "the rest of the ports", (usual, REJECT), "tcp", others)
    exempt = (First("nat_output", "meta skuid 0 accept"), First("filter_output", "meta skuid 0 accept"))
    every = dialling("plain", ACCOMPLICE, PORTS)
    yield Attack("A11", "root dials", "root being nobody special", exempt, "tcp", every, bites=(ROOT,))


def ipv6():
    """IPv4 inside IPv6 too: NAT64 (RFC 6052), 6to4 (RFC 3056), Teredo (RFC 4380), mapped (RFC 4291 section 2.5.5.2)."""
    blind = (First("nat_output", "meta nfproto ipv6 accept"), First("filter_output", "meta nfproto ipv6 accept"))
    nat64 = "64:ff9b::10.77.0.66"
    ways = {"IPv6": ACCOMPLICE[6], "NAT64": nat64, "6to4": "2002:a4d:42::1", "Teredo": "2001:0:a4d:42::1"}
    for name, address in ways.items():
        dial = dialling("plain", {6: address}, PORTS)
        yield Attack("A3", f"TCP over {name}", "rules for IPv6", blind, "tcp", dial, families=(6,))
    send = dialling("plain", {6: nat64}, [443])
    yield Attack("A3", "UDP over NAT64", "rules for IPv6", blind, "udp", send, families=(6,))
    dial = dialling("plain", {6: "::ffff:10.77.0.66"}, PORTS)
    yield Attack("A3", "TCP to a mapped address", EVERY_PORT, (REDIRECT, REJECT), "tcp", dial, families=(6,))


def datagrams():
    # By the kernel: what is dropped is a timeout for its sender.
    shown = ("refused, not dropped", lambda seen, _: seen["answer"] in REFUSALS)
    quic = {"refused": shown, "twin": inspected_after_quic}
    yield Attack("A4", "QUIC", FINAL_REJECT, (REJECT,), "quic", accomplice, **quic)
    # The kernel tells a ping socket of IPv6 nothing about its refusal.
    shown = ("refused at once", lambda seen, family: family == 6 or seen in REFUSALS)
    yield Attack("A5", "echo requests", FINAL_REJECT, (REJECT,), "ping", accomplice, refused=shown)
    kinds = {
        "UDP": ("plain", ACCOMPLICE),
        "UDP in fragments": ("large", ACCOMPLICE),
        "UDP-Lite": ("udplite", ACCOMPLICE),
        # On the link, and nobody's: whoever asks for it says it.
        "questions for a neighbour's address": ("neighbour", {4: "10.77.0.{}", 6: "fd77::7365:6372:{}"}),
        "multicast": ("plain", {4: "224.0.0.251", 6: "ff02::fb%eth0"}),
        "broadcast": ("broadcast", {4: "10.77.0.255"}),
        "broadcast everywhere": ("broadcast", {4: "255.255.255.255"}),
        "link-local addresses": ("plain", LINK_LOCAL),
    }
    for name, (kind, to) in kinds.items():
        more = {"families": tuple(to), "refused": AT_ONCE, "twin": between_containers}
        yield Attack("A5", name, FINAL_REJECT, (REJECT,), "udp", dialling(kind, to, [5353]), **more)


def questions():
    answered = ("the gateway answers", lambda seen, _: "NXDOMAIN" in seen.values() and "TIMEOUT" not in seen.values())
    every = (REDIRECT, DNS, REJECT)
    yield Attack("A6", "a secret in DNS questions", "the redirect of DNS", every, "dns", accomplice, refused=answered)


def devices():
    """Where a socket chooses its device, what was redirected to the loopback leaves by that device."""
    rule = "the rules behind routing"
    dial = dialling("device", ACCOMPLICE, [443])
    yield Attack("A26", "TCP bound to a device", rule, (POSTROUTING,), "tcp", dial, twin=between_containers)
    for kind, name in {"device": "SO_BINDTODEVICE", "pktinfo": "IP_PKTINFO", "unicast-if": "IP_UNICAST_IF"}.items():
        send = dialling(kind, {4: "127.0.0.1", 6: "::1"}, [53])
        name = f"{name} with a loopback address"
        yield Attack("A26", name, rule, (POSTROUTING,), "udp", send, twin=between_containers)


def groups():
    negated = Instead(r"counter reject", f"meta skuid != {UID} counter reject")
    joins = "multicast groups that carry a secret"
    yield Attack("A27", joins, "a reject that needs no owner", (negated,), "groups", lambda family: [family])
    more = {"families": (6,), "counts": lambda frame: frame.protocol == UDP}
    send = dialling("routing", {6: "::1"}, [5353, ACCOMPLICE[6]])
    yield Attack("A27", "a routing header", FINAL_REJECT, (REJECT,), "udp", send, **more)


def answers():
    """Any user may send IPv6 packets from an address that is not the pod's, over the loopback, to the pod."""
    forged = (Without(r"fib saddr type"), Instead(r"oifname .lo. fib daddr type local accept", 'oifname "lo" accept'))
    more = {"families": (6,), "refused": AT_ONCE, "twin": between_containers}
    # A port for each attempt: what was let through without the rule goes on where it is the same flow.
    ports = itertools.count(5353)
    arguments = lambda family: [POD[family], ACCOMPLICE[family], next(ports)]
    yield Attack("A22", "answers to a forged flow", "asking for own addresses", forged, "forge", arguments, **more)


def dialling(kind, addresses, more):
    return lambda family: [kind, family, addresses[family], *more]


def accomplice(family):
    return [family, ACCOMPLICE[family]]
