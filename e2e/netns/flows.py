"""Inheriting the gateway's flows: what connection tracking knows of them helps nobody else (threat A21)."""

import itertools
import socket
from functools import partial

from agent import BOTH
from attack import FAMILIES, NONE
from frames import SYN, TCP, UDP
from outside import ACCOMPLICE_PORT
from plan import Instead, Without
from subject import Subject
from topology import ACCOMPLICE, KINDS, UPSTREAM
from twin import inspected

ESTABLISHED = Instead(r"ct direction reply ct state established accept", "ct state established accept")
# Tracked apart, the gateway's flows would help nobody whatever the filter says.
TOGETHER = Without(r"ct original zone set")
RULE = "asking for the reply direction, in one tracking zone"
OWN = "own.example.com"
QUESTION = b"\x10\x10\x01\x00\x00\x01" + bytes(6) + b"\x03own\x07example\x03com\x00\x00\x01\x00\x01"
QUESTIONS = 3
TCP_REPAIR, SYN_ACK = 19, 0x12
ANY = {4: "0.0.0.0", 6: "::"}
# Ports on either side of the gateway's; TCP's whole range would be as many connections to the gateway.
NEAR = 16
# Outside the usual range, where nobody else has bound any of them.
PORTS = itertools.count(20000, 2 * NEAR + 1)
# The gateway's questions come from few ports, so that all of them are tried in a moment; each time from others, since
# what tracking knows of the agent's attempts holds for the gateway too.
RANGE, USUAL, FEW = "ipv4/ip_local_port_range", "32768 60999", 1000
RANGES = itertools.count(34000, FEW)


def subjects():
    ways = {
        "DNS questions": datagrams,
        "connection": partial(connections, "tcp"),
        # The sockets of MPTCP's paths are the kernel's own, without an owner.
        "connection, by MPTCP": partial(connections, "mptcp"),
    }
    for name, sweep in ways.items():
        yield Subject(f"A21 the source port of the gateway's {name}", partial(examine, sweep), counts=True)
    yield Subject("what the gateway still had to send when it closed", closed)
    yield Subject("A21 entries that an agent left for the gateway's ports", left_behind, counts=True)


def examine(sweep, stage, subject):
    combinations = [(identity, family) for identity in BOTH for family in FAMILIES]
    if stage.backend.weakens:
        stage.plan.weaken([ESTABLISHED, TOGETHER])
        for identity, family in combinations:
            seen, left = sweep(stage, identity, family)
            subject.without += len(left)
            subject.check(f"{identity.name} over IPv{family} gets out without {RULE}", left, seen)
    stage.plan.program()
    for identity, family in combinations:
        seen, left = sweep(stage, identity, family)
        subject.within += len(left)
        subject.nothing_left(f"{identity.name} over IPv{family}", left, seen)
    inspected(stage, subject)


def left_behind(stage, subject):
    """The other way round: the gateway's question goes where an agent's from that port went, to the gateway."""
    subject.unit = "questions of the gateway's that it was asked itself"
    combinations = [(identity, family) for identity in BOTH for family in FAMILIES]
    if stage.backend.weakens:
        stage.plan.weaken([TOGETHER])
        for identity, family in combinations:
            astray = QUESTIONS - answered_outside(stage, identity, family)
            subject.without += astray
            subject.check(f"{identity.name} over IPv{family} bites in one tracking zone", astray, astray)
    stage.plan.program()
    for identity, family in combinations:
        astray = QUESTIONS - answered_outside(stage, identity, family)
        subject.within += astray
        subject.check(f"{identity.name} over IPv{family}: its resolver is asked", not astray, astray)
    inspected(stage, subject)


def answered_outside(stage, identity, family):
    """How many of the gateway's questions reach the resolver, from ports from which an agent asked it before."""
    first, before = next(RANGES), stage.outside.questions.count(OWN)
    last = first + QUESTIONS - 1
    stage.attempt(identity, "sweep", "udp", family, UPSTREAM[family], 53, first, last, counts=is_swept, patience=NONE)
    for port in range(first, last + 1):
        with stage.gateway.socket(family, KINDS["udp"]) as asked:
            asked.bind((ANY[family], port))
            asked.sendto(QUESTION, (UPSTREAM[family], 53))
            asked.recv(512)
    return stage.outside.questions.count(OWN) - before


def datagrams(stage, identity, family):
    """Questions of the gateway's UID are answered; then every port that they can have come from is tried."""
    first, before = next(RANGES), stage.outside.questions.count(OWN)
    stage.topology.write("pod", {RANGE: f"{first} {first + FEW - 1}"})
    for _ in range(QUESTIONS):
        with stage.gateway.socket(family, KINDS["udp"]) as asked:
            asked.sendto(QUESTION, (UPSTREAM[family], 53))
            asked.recv(512)
    stage.topology.write("pod", {RANGE: USUAL})
    if stage.outside.questions.count(OWN) != before + QUESTIONS:
        raise RuntimeError("the gateway's questions did not reach the resolver")
    arguments = ["udp", family, UPSTREAM[family], 53, first, first + FEW - 1]
    return stage.attempt(identity, "sweep", *arguments, counts=is_swept, patience=NONE)


def connections(kind, stage, identity, family):
    """A connection of the gateway's UID is gone without a word, as when its peer vanished."""
    port = next(PORTS)
    with stage.gateway.socket(family, KINDS["tcp"]) as gone:
        gone.bind((ANY[family], port))
        gone.connect((ACCOMPLICE[family], ACCOMPLICE_PORT))
        # What the server says first is taken, so that nothing under way meets a closed port.
        gone.recv(64)
        gone.setsockopt(socket.IPPROTO_TCP, TCP_REPAIR, 1)
    arguments = [kind, family, ACCOMPLICE[family], ACCOMPLICE_PORT, port - NEAR, port + NEAR]
    return stage.attempt(identity, "sweep", *arguments, counts=is_opening, patience=NONE)


def closed(stage, subject):
    """A closed socket has no owner any more; what it was given before reaches the other side all the same."""
    for family in FAMILIES:
        with stage.topology.socket("accomplice", family, KINDS["tcp"]) as server:
            server.bind((ACCOMPLICE[family], 0))
            server.listen()
            with stage.gateway.socket(family, KINDS["tcp"]) as sender:
                sender.connect(server.getsockname()[:2])
                taken, _ = server.accept()
                sender.setblocking(False)
                given = fill(sender)
            with taken:
                arrived = sum(map(len, iter(partial(taken.recv, 1 << 16), b"")))
        subject.check(f"over IPv{family} all of it arrives, and its end", arrived == given, (arrived, given))


def fill(sender):
    """Gives a socket as much as it takes while nobody reads."""
    given = 0
    try:
        while True:
            given += sender.send(bytes(1 << 16))
    except BlockingIOError:
        return given


def is_swept(frame):
    return frame.protocol == UDP and b"swept" in frame.payload


def is_opening(frame):
    return frame.protocol == TCP and frame.ports[1] == ACCOMPLICE_PORT and frame.payload[13] & SYN_ACK == SYN
