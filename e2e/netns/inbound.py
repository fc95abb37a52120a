"""Others reach declared ports and the probes in the pod, nothing else (threats A15, A22, G2)."""

from contextlib import suppress
from functools import partial

from accomplice import dialled, proxied
from agent import BOTH, ROOT, USER
from attack import FAMILIES, LITTLE, MUCH, NONE, elsewhere
from frames import TCP, UDP
from gateway import KEY, PORTS
from plan import INBOUND, Without
from subject import Subject
from topology import KINDS, POD
from twin import inspected

CLOSED = Without(r"^ +counter drop")
RULE = "the drop of undeclared inbound flows"
DECLARED, UNDECLARED = INBOUND[0], 9090
SERVED = {"/healthz": 200, "/readyz": 200, "/metrics": 200}
NOT_SERVED = ["/", "/status", "/config", "/policy", "/debug/pprof/", "/quitquitquit", "/metrics/../status"]


def subjects():
    for kind in KINDS:
        yield Subject(f"A22 an accomplice dials an agent, {kind}", partial(listening, kind), counts=True)
    yield Subject("A15 an accomplice dials the gateway's ports", gateway_ports, counts=True)
    yield Subject("A15 the agent dials the gateway's ports", admin)
    yield Subject("G2 an accomplice borrows the gateway's key", borrowed, counts=True)


def listening(kind, stage, subject):
    """The payload is in the answer to a flow that somebody else began."""

    def attempt(identity, family, patience):
        with stage.agents.start(identity, "attacks/listen", kind, family, UNDECLARED):
            return answers(stage, [(kind, UNDECLARED)], family, patience)

    both_halves(stage, subject, attempt, BOTH)
    for family in FAMILIES:
        with stage.agents.start(USER, "attacks/listen", "tcp", family, DECLARED):
            answer = dialled(stage.topology, family, DECLARED)
        subject.check(f"twin: a declared port is served over IPv{family}", answer.startswith("secret"), answer)


def gateway_ports(stage, subject):
    every = [("tcp", PORTS[name]) for name in ("transparent", "explicit", "dns")] + [("udp", PORTS["dns"])]
    # Some of them have nothing to say; that the kernel takes the connection is an answer.
    both_halves(stage, subject, lambda _, family, __: answers(stage, every, family, NONE), [ROOT])
    status, _ = stage.gateway.ask("/healthz", "accomplice", POD[4])
    subject.check("twin: the kubelet's probe is answered", status == 200, status)


def both_halves(stage, subject, attempt, identities):
    combinations = [(identity, family) for identity in identities for family in FAMILIES]
    if stage.backend.weakens:
        stage.plan.weaken([CLOSED])
        for identity, family in combinations:
            seen, left = attempt(identity, family, MUCH)
            subject.without += len(left)
            subject.check(f"{identity.name} over IPv{family} answers without {RULE}", left, seen)
    stage.plan.program()
    for identity, family in combinations:
        seen, left = attempt(identity, family, NONE)
        subject.within += len(left)
        subject.nothing_left(f"{identity.name} over IPv{family}", left, seen)


def answers(stage, ports, family, patience):
    """Dials as the accomplice; a declared port answers behind them, so that they were all judged. `patience` is for what
    the listeners themselves say, who answer when it is their turn."""
    sources = {(TCP if kind == "tcp" else UDP, port) for kind, port in ports}

    def dial():
        with stage.agents.start(USER, "attacks/listen", "tcp", family, DECLARED):
            begun = [begin(stage, kind, family, port) for kind, port in ports]
            dialled(stage.topology, family, DECLARED)
            return [end(one, patience) for one in begun]

    def counts(frame):
        return (frame.protocol, frame.ports[0]) in sources or frame.protocol not in (TCP, UDP)

    return stage.capture.during(dial, counts)


def begin(stage, kind, family, port):
    dialling = stage.topology.socket("accomplice", family, KINDS[kind])
    dialling.setblocking(False)
    dialling.connect_ex((POD[family], port))
    if kind == "udp":
        dialling.send(b"give")
    return dialling


def end(dialling, patience):
    with dialling:
        dialling.settimeout(patience)
        try:
            return dialling.recv(64).decode(errors="replace")
        except OSError as error:
            return repr(error)


def admin(stage, subject):
    """Health, readiness and metrics, to the agent and to the node alike; the other ports lead nowhere."""
    for host, address in {"accomplice": POD[4], "pod": "127.0.0.1"}.items():
        served = {path: stage.gateway.ask(path, host, address)[0] for path in SERVED}
        subject.check(f"{host}: probes and metrics are served", served == SERVED, served)
        others = {path: stage.gateway.ask(path, host, address)[0] for path in NOT_SERVED}
        subject.check(f"{host}: nothing else is", set(others.values()) <= {400, 404}, others)
    for identity in BOTH:
        dial = ["plain", 4, "127.0.0.1", *PORTS.values()]
        seen, left = stage.attempt(identity, "tcp", *dial, counts=elsewhere, patience=LITTLE)
        subject.nothing_left(identity.name, left, seen)
    shown = stage.gateway.ask("/metrics")[1]
    subject.check("the key is not in the metrics", KEY not in shown, shown[:200])


def borrowed(stage, subject):
    """The explicit listener is on every address here, as a careless user would have it."""
    subject.unit = "uses of the key"
    if stage.backend.weakens:
        stage.plan.weaken([CLOSED])
        subject.without = uses_of_the_key(stage, MUCH)
        subject.check(f"the key is used for the accomplice without {RULE}", subject.without, subject.without)
    stage.plan.program()
    subject.within = uses_of_the_key(stage, LITTLE)
    subject.check("the key is not used for the accomplice", not subject.within, subject.within)
    mark = len(stage.outside.requests)
    inspected(stage, subject)
    subject.check("twin: the agent's own request has the key", with_key(stage, mark), stage.outside.requests[mark:])


def uses_of_the_key(stage, patience):
    mark = len(stage.outside.requests)
    with suppress(TimeoutError):
        proxied(stage.topology, (POD[4], PORTS["explicit"]), stage.directory / "roots.pem", patience)
    return with_key(stage, mark)


def with_key(stage, mark):
    return sum(request.get("authorization") == f"bearer {KEY}" for request in stage.outside.requests[mark:])
