"""How a flow gets its name in every protocol, and that an address is no name (threats A16, B19)."""

from functools import partial

from agent import BOTH, USER
from attack import FAMILIES, LITTLE, MUCH, elsewhere
from gateway import PORTS
from outside import BARE_PORT, GREETING, INTACT, SSL_REQUEST
from subject import Subject
from topology import BARE, POD, UPSTREAM
from twin import POSTERN, inspected

# The port of the CIDR rule that no rule with hosts shares: bytes there are not looked at.
UNSHARED, SHARED = 7443, 443
STARTUP = bytes.fromhex("0000001500030000") + b"user\0agent\0\0"
SYNTHETIC = ("198.18.", "198.19.")
CLOSED = {"ECONNRESET", "ECONNREFUSED", "b''"}


def subjects():
    yield Subject("names in every protocol", every_protocol)
    yield Subject("B19 a secret name at an allowed address", secret_name, counts=True)
    yield Subject("A16 the gateway's own port is dialled", itself)


def every_protocol(stage, subject):
    for identity in BOTH:
        run, who = partial(stage.agents.run, identity), identity.name
        seen = run("twins/https", "api.example.com")
        holds = seen["issuer"].startswith(POSTERN) and INTACT in seen["answer"]
        subject.check(f"{who}: https by SNI, issuer is Postern", holds, seen)
        for family in FAMILIES:
            seen = run("twins/https", "api.example.com", UPSTREAM[family])
            holds = seen["issuer"].startswith(POSTERN)
            subject.check(f"{who}: https by SNI to an IPv{family} address it chose, issuer is Postern", holds, seen)
        mark = len(stage.outside.requests)
        answer = run("twins/http", "plain.example.com")
        hosts = [request.get("host") for request in stage.outside.requests[mark:]]
        holds = INTACT in answer and hosts == ["plain.example.com"]
        subject.check(f"{who}: http by Host", holds, (answer, hosts))
        mark = len(stage.outside.requests)
        answer = run("twins/http", "postern.internal")
        holds = '"explain":"Denials"' in answer and len(stage.outside.requests) == mark
        subject.check(f"{who}: the gateway answers at its own name", holds, answer)
        opaque(run, who, subject)


def opaque(run, who, subject):
    seen = run("twins/speak", "git.example.com", 22, "", b"hello".hex())
    holds = seen["heard"] == [GREETING, "hello"] and seen["peer"].startswith(SYNTHETIC)
    subject.check(f"{who}: ssh-like, the server speaks first, by synthetic address", holds, seen)
    seen = run("twins/speak", "db.example.com", 5432, SSL_REQUEST.hex(), STARTUP.hex())
    holds = [output[:1] for output in seen["heard"]] == ["N", "R"] and seen["peer"].startswith(SYNTHETIC)
    subject.check(f"{who}: PostgreSQL-like by synthetic address", holds, seen)
    for family in FAMILIES:
        seen = run("twins/speak", BARE[family], BARE_PORT, "", b"hello".hex())
        holds = seen["heard"] == ["bare\r\n", "hello"]
        subject.check(f"{who}: a bare IPv{family} address under a CIDR rule", holds, seen)


def secret_name(stage, subject):
    """Without: the same rule on a port that no rule with hosts shares, where bytes are not looked at."""
    subject.unit = "names outside"
    for identity in BOTH:
        for family in FAMILIES:
            who = f"{identity.name} over IPv{family}"
            if stage.backend.weakens:
                outside = names_outside(stage, identity, family, UNSHARED)
                subject.without += outside
                subject.check(f"{who}: the name goes out where nobody looks", outside, outside)
            outside = names_outside(stage, identity, family, SHARED)
            subject.within += outside
            subject.check(f"{who}: neither dialled nor resolved", not outside, outside)
    seen = stage.agents.run(USER, "twins/speak", BARE[4], BARE_PORT, "")
    subject.check("twin: the address itself is reached", seen["heard"] == ["bare\r\n"], seen)


def names_outside(stage, identity, family, port):
    """How often the secret name reached the upstream: in bytes, or in a question to its resolver."""
    secret = f"secret-{identity.name}-{family}.evil.example"
    hello, goes_out = ["attacks/hello", family, BARE[family], port, secret], port == UNSHARED

    def greet():
        stage.agents.run(identity, *hello, patience=MUCH if goes_out else LITTLE)
        # The gateway passes it on when it comes to it, and the agent may have its answer before.
        if goes_out:
            stage.gateway.becomes(lambda: secret.encode() in b"".join(stage.outside.unnamed))

    _, left = stage.capture.during(greet, lambda frame: secret.encode() in frame.payload)
    return len(left) + stage.outside.questions.count(secret)


def itself(stage, subject):
    """A connection to the listener itself leads nowhere, and is one connection: it does not come back."""
    for identity in BOTH:
        for family, loopback in {4: "127.0.0.1", 6: "::1"}.items():
            for address in (loopback, POD[family]):
                who, port = f"{identity.name} dials {address}", PORTS["transparent"]
                before = stage.gateway.metric("postern_connections_total")
                seen, left = stage.attempt(identity, "tcp", "plain", family, address, port, counts=elsewhere)
                subject.check(f"{who}: closed", seen[str(port)] in CLOSED, seen)
                subject.nothing_left(who, left, seen)
                more = stage.gateway.metric("postern_connections_total") - before
                subject.check(f"{who}: one connection", more <= 1, more)
    inspected(stage, subject)

