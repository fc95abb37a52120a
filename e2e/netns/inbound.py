"""What others can reach in the pod: declared ports and the probes, nothing else (threats A15, A22, G2)."""

import socket
import ssl

from agent import BOTH, ROOT, USER
from attack import LITTLE, elsewhere
from frames import TCP, UDP
from gateway import KEY, PORTS
from outside import FAMILIES
from plan import INBOUND, Without
from report import Subject
from topology import POD
from twin import inspected

CLOSED = Without(r"^ +counter drop")
RULE = "the drop of undeclared inbound flows"
DECLARED, UNDECLARED = INBOUND[0], 9090
KINDS = {"tcp": socket.SOCK_STREAM, "udp": socket.SOCK_DGRAM}
PATIENCE = 5
ADMIN_PATHS = {"/healthz": 200, "/readyz": 200, "/metrics": 200}
NOT_SERVED = ["/", "/status", "/config", "/policy", "/debug/pprof/", "/quitquitquit", "/metrics/../status"]


def subjects():
    for kind in KINDS:
        yield Subject(f"A22 an accomplice dials an agent that listens, {kind}", lambda *given, kind=kind: listening(*given, kind), counts=True)
    yield Subject("A15 an accomplice dials the gateway's ports", gateway_ports, counts=True)
    yield Subject("A15 the agent dials the gateway's ports", admin)
    yield Subject("G2 an accomplice borrows the gateway's key", borrowed, counts=True)


def listening(stage, subject, kind):
    """The payload is in the answer to a flow that somebody else began."""
    both_halves(stage, subject, lambda identity, family: secret_handed_out(stage, kind, identity, family))
    for family in FAMILIES:
        with stage.agents.start(USER, "attacks/listen", "tcp", family, DECLARED):
            answer = dialled(stage, "tcp", family, DECLARED)
        subject.check(f"twin: a declared port is served over IPv{family}", answer.startswith("secret"), answer)


def secret_handed_out(stage, kind, identity, family):
    """The frames that left from the undeclared port, and what the accomplice got."""
    with stage.agents.start(identity, "attacks/listen", kind, family, UNDECLARED):
        return attempts(stage, [(kind, UNDECLARED)], family)


def gateway_ports(stage, subject):
    every = [("tcp", PORTS[name]) for name in ("transparent", "explicit", "dns")] + [("udp", PORTS["dns"])]
    both_halves(stage, subject, lambda _, family: attempts(stage, every, family), identities=[ROOT])
    status, _ = stage.gateway.ask("/healthz", "accomplice", POD[4])
    subject.check("twin: the kubelet's probe is answered", status == 200, status)


def both_halves(stage, subject, attempt, identities=tuple(BOTH)):
    combinations = [(identity, family) for identity in identities for family in FAMILIES]
    if stage.backend.weakens:
        stage.plan.weaken([CLOSED])
        for identity, family in combinations:
            seen, left = attempt(identity, family)
            subject.without += len(left)
            subject.check(f"{identity.name} over IPv{family} answers without {RULE}", left, seen)
    stage.plan.program()
    for identity, family in combinations:
        seen, left = attempt(identity, family)
        subject.within += len(left)
        subject.check(f"{identity.name} over IPv{family} answers nobody", not left, [*map(str, left), seen])


def attempts(stage, ports, family):
    """Dials as the accomplice without waiting; a declared port answers behind them, so that they were all judged."""
    sources = {(TCP if kind == "tcp" else UDP, port) for kind, port in ports}

    def dial_all():
        with stage.agents.start(USER, "attacks/listen", "tcp", family, DECLARED):
            kept = [begin(stage, kind, family, port) for kind, port in ports]
            dialled(stage, "tcp", family, DECLARED)
            return [end(one) for one in kept]

    return stage.capture.during(dial_all, lambda frame: (frame.protocol, frame.ports[0]) in sources or frame.protocol not in (TCP, UDP))


def begin(stage, kind, family, port):
    with stage.topology.inside("accomplice"):
        dialling = socket.socket(FAMILIES[family], KINDS[kind])
    dialling.setblocking(False)
    dialling.connect_ex((POD[family], port))
    if kind == "udp":
        dialling.send(b"give")
    return dialling


def end(dialling):
    with dialling:
        try:
            return dialling.recv(64).decode(errors="replace")
        except OSError as error:
            return repr(error)


def dialled(stage, kind, family, port, says=b"", patience=PATIENCE):
    """What a port of the pod says to the accomplice, or the error."""
    with stage.topology.inside("accomplice"):
        dialling = socket.socket(FAMILIES[family], KINDS[kind])
    with dialling:
        dialling.settimeout(patience)
        try:
            dialling.connect((POD[family], port))
            dialling.sendall(says)
            return dialling.recv(64).decode(errors="replace")
        except OSError as error:
            return repr(error)


def admin(stage, subject):
    """Health, readiness and metrics, to the agent and to the node alike."""
    for host, address in {"accomplice": POD[4], "pod": "127.0.0.1"}.items():
        served = {path: stage.gateway.ask(path, host, address)[0] for path in ADMIN_PATHS}
        subject.check(f"{host}: probes and metrics are served", served == ADMIN_PATHS, served)
        others = {path: stage.gateway.ask(path, host, address)[0] for path in NOT_SERVED}
        subject.check(f"{host}: nothing else is", set(others.values()) <= {400, 404}, others)
    dial = ["attacks/tcp", "plain", 4, "127.0.0.1", *PORTS.values()]
    seen, left = stage.capture.during(lambda: [stage.agents.run(identity, *dial, patience=LITTLE) for identity in BOTH], elsewhere)
    subject.check("the agent dials every port of the gateway: nothing leaves", not left, [*map(str, left), seen])
    told = stage.gateway.ask("/metrics")[1]
    subject.check("the key is not in the metrics", KEY not in told, told[:200])


def borrowed(stage, subject):
    """The explicit listener is on every address here, as a careless user would have it."""
    if stage.backend.weakens:
        stage.plan.weaken([CLOSED])
        subject.without = keys_upstream(stage, subject)
        subject.check(f"the key goes out for the accomplice without {RULE}", subject.without, "no request had the key")
    stage.plan.program()
    subject.unit, subject.within = "uses of the key", keys_upstream(stage, subject)
    subject.check("no key goes out for the accomplice", not subject.within, subject.within)
    mark = len(stage.outside.requests)
    inspected(stage, subject)
    subject.check("twin: the agent's own request has the key", with_key(stage, mark), stage.outside.requests[mark:])


def keys_upstream(stage, subject):
    mark = len(stage.outside.requests)
    try:
        proxied(stage, POD[4])
    except OSError:
        return with_key(stage, mark)
    return with_key(stage, mark)


def with_key(stage, mark):
    return sum(request.get("authorization") == f"bearer {KEY}" for request in stage.outside.requests[mark:])


def proxied(stage, address):
    """A request with the placeholder through CONNECT, sent by the accomplice."""
    context = ssl.create_default_context(cafile=stage.directory / "roots.pem")
    with stage.topology.inside("accomplice"):
        tunnel = socket.socket(socket.AF_INET)
    with tunnel:
        tunnel.settimeout(1)
        tunnel.connect((address, PORTS["explicit"]))
        tunnel.sendall(b"CONNECT api.example.com:443 HTTP/1.1\r\nHost: api.example.com:443\r\n\r\n")
        tunnel.recv(4096)
        with context.wrap_socket(tunnel, server_hostname="api.example.com") as secured:
            secured.sendall(b"GET / HTTP/1.1\r\nHost: api.example.com\r\nAuthorization: Bearer postern:api\r\nConnection: close\r\n\r\n")
            return secured.recv(4096)
