"""Inheriting the gateway's flows: what connection tracking knows of them helps nobody else (threat A21)."""

import itertools
import os
import socket

from agent import BOTH
from attack import NONE
from frames import TCP, UDP
from gateway import UID
from outside import ACCOMPLICE_PORT, FAMILIES
from plan import Instead
from report import Subject
from topology import ACCOMPLICE, UPSTREAM
from twin import inspected

ESTABLISHED = Instead(r"ct direction reply ct state established accept", "ct state established accept")
OWN = "own.example.com"
QUESTION = b"\x10\x10\x01\x00\x00\x01" + bytes(6) + b"\x03own\x07example\x03com\x00\x00\x01\x00\x01"
RULE = "asking for the reply direction"
TCP_REPAIR, SYN, SYN_ACK = 19, 0x02, 0x12
# Ports on either side of the gateway's; TCP's whole range would be as many connections to the gateway.
NEAR = 16
# Outside the usual range, where nobody else has bound any of them.
PORTS = itertools.count(20000, 2 * NEAR + 1)
# The gateway's questions come from few ports, so that all of them are tried in a moment; each time from others, since
# what tracking knows of the agent's attempts holds for the gateway too.
RANGE, USUAL, FEW = "ipv4/ip_local_port_range", "32768 60999", 1000
RANGES = itertools.count(34000, FEW)
ANY = {4: "0.0.0.0", 6: "::"}


def subjects():
    yield Subject("A21 the source port of the gateway's DNS questions", lambda *given: examine(*given, datagrams), counts=True)
    yield Subject("A21 the source port of the gateway's connection", lambda *given: examine(*given, connections), counts=True)


def examine(stage, subject, sweep):
    if stage.backend.weakens:
        stage.plan.weaken([ESTABLISHED])
        for words, seen, left in swept(stage, sweep):
            subject.without += len(left)
            subject.check(f"{words} gets out without {RULE}", left, seen)
    stage.plan.program()
    for words, seen, left in swept(stage, sweep):
        subject.within += len(left)
        subject.check(f"nothing of {words} gets out", not left, [*map(str, left[:5]), seen])
    inspected(stage, subject)


def swept(stage, sweep):
    for identity in BOTH:
        for family in FAMILIES:
            yield f"{identity.name} over IPv{family}", *sweep(stage, identity, family)


def datagrams(stage, identity, family):
    """Three questions of the gateway's UID are answered; then every port is tried."""
    first, before = next(RANGES), stage.outside.questions.count(OWN)
    stage.topology.write("pod", {RANGE: f"{first} {first + FEW - 1}"})
    with stage.topology.inside("pod"):
        for _ in range(3):
            with owned(family, socket.SOCK_DGRAM) as asked:
                asked.sendto(QUESTION, (UPSTREAM[family], 53))
                asked.recv(512)
    stage.topology.write("pod", {RANGE: USUAL})
    if stage.outside.questions.count(OWN) != before + 3:
        raise RuntimeError("the gateway's questions did not reach the resolver")
    arguments = ["udp", family, UPSTREAM[family], 53, first, first + FEW - 1]
    return run(stage, identity, arguments, lambda frame: frame.protocol == UDP and b"swept" in frame.payload)


def connections(stage, identity, family):
    """A connection of the gateway's UID is gone without a word, as when its peer vanished."""
    port = next(PORTS)
    with stage.topology.inside("pod"), owned(family, socket.SOCK_STREAM) as gone:
        gone.bind((ANY[family], port))
        gone.connect((ACCOMPLICE[family], ACCOMPLICE_PORT))
        # What the server says first is taken, so that nothing under way meets a closed port.
        gone.recv(64)
        gone.setsockopt(socket.IPPROTO_TCP, TCP_REPAIR, 1)
    arguments = ["tcp", family, ACCOMPLICE[family], ACCOMPLICE_PORT, port - NEAR, port + NEAR]
    return run(stage, identity, arguments, is_opening)


def run(stage, identity, arguments, counts):
    return stage.capture.during(lambda: stage.agents.run(identity, "attacks/sweep", *arguments, patience=NONE), counts)


def is_opening(frame):
    return frame.protocol == TCP and frame.ports[1] == ACCOMPLICE_PORT and frame.payload[13] & SYN_ACK == SYN


def owned(family, kind):
    """A socket whose owner, for the kernel's rules, is the gateway's UID."""
    os.seteuid(UID)
    try:
        kept = socket.socket(FAMILIES[family], kind)
    finally:
        os.seteuid(0)
    kept.settimeout(10)
    return kept
