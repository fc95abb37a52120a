"""How a flow gets its name in every protocol, and that an address is no name (issue 4 item 8; threats A16, B19)."""

from agent import BOTH, USER
from attack import LITTLE
from gateway import PORTS
from outside import BARE_PORT, FAMILIES, GREETING, INTACT, SSL_REQUEST
from report import Subject
from topology import BARE, POD, UPSTREAM
from twin import inspected

# The port of the CIDR rule that no rule with hosts shares: bytes there are not looked at.
UNSHARED, SHARED = 7443, 443
STARTUP = bytes.fromhex("0000001500030000") + b"user\0agent\0\0"
SYNTHETIC = ("198.18.", "198.19.")


def subjects():
    yield Subject("names in every protocol", every_protocol)
    yield Subject("B19 a secret name at an allowed address", secret_name, counts=True)
    yield Subject("A16 the gateway's own port is dialled", itself)


def every_protocol(stage, subject):
    for identity in BOTH:
        run = lambda program, *arguments: stage.agents.run(identity, f"twins/{program}", *arguments)
        who = identity.name
        seen = run("https", "api.example.com")
        subject.check(f"{who}: https by SNI, issuer is Postern", seen["issuer"].startswith("Postern") and INTACT in seen["answer"], seen)
        for family in FAMILIES:
            seen = run("https", "api.example.com", UPSTREAM[family])
            subject.check(f"{who}: https by SNI to an address of the agent's, IPv{family}", seen["issuer"].startswith("Postern"), seen)
        mark = len(stage.outside.requests)
        answer = run("http", "plain.example.com")
        named = [request.get("host") for request in stage.outside.requests[mark:]]
        subject.check(f"{who}: http by Host", INTACT in answer and named == ["plain.example.com"], (answer, named))
        seen = run("speak", "git.example.com", 22, "", b"hello".hex())
        fits = seen["heard"] == [GREETING, "hello"] and seen["peer"].startswith(SYNTHETIC)
        subject.check(f"{who}: ssh-like, the server speaks first, by synthetic address", fits, seen)
        seen = run("speak", "db.example.com", 5432, SSL_REQUEST.hex(), STARTUP.hex())
        fits = seen["heard"][0] == "N" and seen["heard"][1].startswith("R") and seen["peer"].startswith(SYNTHETIC)
        subject.check(f"{who}: PostgreSQL-like by synthetic address", fits, seen)
        for family in FAMILIES:
            seen = run("speak", BARE[family], BARE_PORT, "", b"hello".hex())
            subject.check(f"{who}: a bare address under a CIDR rule, IPv{family}", seen["heard"] == ["bare\r\n", "hello"], seen)


def secret_name(stage, subject):
    """Without: the same rule on a port that no named rule shares, where bytes are not looked at."""
    subject.unit = "names outside"
    for identity in BOTH:
        for family in FAMILIES:
            if stage.backend.weakens:
                outside = names_outside(stage, identity, family, UNSHARED)
                subject.without += outside
                subject.check(f"{identity.name} over IPv{family}: the name goes out where nobody looks", outside, outside)
            outside = names_outside(stage, identity, family, SHARED)
            subject.within += outside
            subject.check(f"{identity.name} over IPv{family}: neither dialled nor resolved", not outside, outside)
    seen = stage.agents.run(USER, "twins/speak", BARE[4], BARE_PORT, "")
    subject.check("twin: the address itself is reached", seen["heard"] == ["bare\r\n"], seen)


def names_outside(stage, identity, family, port):
    """How often the secret name reached the upstream: in bytes, or in a question to its resolver."""
    secret = f"secret-{identity.name}-{family}.evil.example"
    dial = lambda: stage.agents.run(identity, "attacks/hello", family, BARE[family], port, secret, patience=LITTLE)
    _, left = stage.capture.during(dial, lambda frame: secret.encode() in frame.payload)
    return len(left) + sum(question.endswith("evil.example") for question in stage.outside.questions)


def itself(stage, subject):
    """A connection to the listener itself leads nowhere: one connection in, none that it makes of it."""
    for identity in BOTH:
        for family, loopback in {4: "127.0.0.1", 6: "::1"}.items():
            for words, address in {"the loopback": loopback, "the pod's own address": POD[family]}.items():
                before = stage.gateway.metric("postern_connections_total")
                seen, left = stage.capture.during(
                    lambda: stage.agents.run(identity, "attacks/tcp", "plain", family, address, PORTS["transparent"]), lambda _: True
                )
                said = seen[str(PORTS["transparent"])]
                subject.check(f"{identity.name}: {words} over IPv{family} is closed", said in ("ECONNRESET", "b''", "ECONNREFUSED"), said)
                subject.check(f"{identity.name}: {words} over IPv{family}: nothing leaves", not left, list(map(str, left)))
                more = stage.gateway.metric("postern_connections_total") - before
                subject.check(f"{identity.name}: {words} over IPv{family} is one connection", more <= 1, more)
    inspected(stage, subject)
