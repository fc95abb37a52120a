"""The gateway is dead: what it carried is refused, and nobody answers in its place (threats A14, A24)."""

from functools import partial

from accomplice import dialled
from agent import BOTH, OTHER, USER
from attack import FAMILIES, LITTLE, MUCH, NONE, elsewhere
from gateway import PORTS, UID
from outside import UPSTREAM_CA
from plan import Instead, Without
from subject import Subject
from topology import ACCOMPLICE, UPSTREAM
from twin import POSTERN, between_containers, inspected

UNOWNED = (Without(r"tcp sport .* drop"), Without(r"udp sport .* drop"))
# A SYN-ACK that is made from a SYN cookie belongs to no socket.
NEGATED = (Instead(r"(tcp sport .*) drop", rf"\1 meta skuid != {UID} drop"),)
COOKIES, USUAL_COOKIES, ALWAYS_COOKIES = "ipv4/tcp_syncookies", 1, 2
READYZ = b"GET /readyz HTTP/1.1\r\nHost: pod\r\n\r\n"
# The loopbacks apart: a gateway that holds one family alone leaves the other to whoever comes.
HELD = [
    ("127.0.0.1", PORTS["transparent"]),
    ("::1", PORTS["transparent"]),
    ("127.0.0.1", PORTS["dns"]),
    ("::1", PORTS["dns"]),
    ("127.0.0.1", PORTS["explicit"]),
    ("127.0.0.1", PORTS["admin"]),
]


def subjects():
    yield Subject("A14 the gateway is killed under load", killed, counts=True)
    yield Subject("A24 its ports are held while it is dead", partial(squatted, UNOWNED), counts=True)
    yield Subject("A24 its ports are held, and answer by SYN cookies", with_cookies, counts=True)
    yield Subject("A24 it starts while a port is held", port_held)


def killed(stage, subject):
    """Without: a plan that goes with the gateway, as its own end would take it away."""
    if stage.backend.weakens:
        seen, left = stage.capture.during(lambda: under_load(stage, plan_stays=False), elsewhere)
        subject.without = len(left)
        subject.check("what the agent sends gets out where the plan goes with the gateway", left, seen)
        stage.plan.program()
        stage.gateway.start()
    seen, left = stage.capture.during(lambda: under_load(stage, plan_stays=True), elsewhere)
    subject.within = len(left)
    subject.nothing_left("the agent", left, seen)
    refused = {said for answers in seen["dialled"] for said in answers.values()}
    subject.check("connections are refused, over both families", refused == {"ECONNREFUSED"}, seen["dialled"])
    words = "the load was served, refused, and served again without a new redirect, by Postern alone"
    subject.check(words, recovered(seen["load"]), seen["load"])
    inspected(stage, subject)


def under_load(stage, plan_stays):
    """Kills the gateway, dials, and where the plan has stayed starts it again; what became of every request."""
    with stage.agents.start(USER, "attacks/load", "api.example.com", UPSTREAM[4]) as load:
        stage.gateway.kill()
        if not plan_stays:
            stage.plan.remove()
        load.next()
        answers = [dial(stage, identity, family) for identity in BOTH for family in FAMILIES]
        if plan_stays:
            stage.gateway.start()
            load.until(is_served)
        return {"dialled": answers, "load": load.end()}


def dial(stage, identity, family, patience=LITTLE):
    return stage.agents.run(identity, "attacks/tcp", "plain", family, ACCOMPLICE[family], 443, patience=patience)


def recovered(load):
    served = [is_served(said) for said, _ in load]
    around = [said for said, _ in load if said.startswith(UPSTREAM_CA)]
    return served[0] and served[-1] and not all(served) and not around


def is_served(said):
    return said.startswith(POSTERN)


def with_cookies(stage, subject):
    """A squatter comes by cookies as it likes: its queue is short, and soon full."""
    squatted(NEGATED, stage, subject, ALWAYS_COOKIES)


def squatted(edits, stage, subject, cookies=USUAL_COOKIES):
    """The squatter is a container of the pod; its victims are one that dials, one that asks DNS, and the node."""
    subject.unit = "answers in its place"
    if stage.backend.weakens:
        stage.plan.weaken(edits)
        answers = forged(stage, subject, USER, cookies, MUCH, LITTLE)
        subject.without = sum(answers.values())
        answered = answers["node"] and answers["TCP 4"] and answers["TCP 6"]
        subject.check("its victims are answered where the owner is not asked for", answered, answers)
        stage.plan.program()
        stage.gateway.start()
    for identity in BOTH:
        answers = forged(stage, subject, identity, cookies, LITTLE, NONE)
        subject.within += sum(answers.values())
        subject.check(f"nobody is answered in its place by {identity.name}", not any(answers.values()), answers)
        stage.gateway.start()
    inspected(stage, subject)
    between_containers(stage, subject)


def forged(stage, subject, identity, cookies, patience, patience_for_names):
    """Kills the gateway; by victim, the answers had while its ports were held, and by the squatter those it gave."""
    stage.gateway.kill()
    stage.topology.write("pod", {COOKIES: cookies})
    with stage.agents.start(identity, "attacks/squat", PORTS["dns"], *PORTS.values()) as squatter:
        held = [where for where, said in squatter.said.items() if said == "done"]
        subject.check(f"{identity.name} holds every port", len(held) == 2 * (len(PORTS) + 1), squatter.said)
        readyz = dialled(stage.topology, 4, PORTS["admin"], READYZ, patience)
        answers = {"node": int("forged" in readyz)}
        for family in FAMILIES:
            answers[f"TCP {family}"] = sum("forged" in said for said in dial(stage, OTHER, family, patience).values())
            said = stage.agents.run(OTHER, "attacks/dns", family, ACCOMPLICE[family], patience=patience_for_names)
            answers[f"DNS {family}"] = list(said.values()).count("NXDOMAIN")
        heard = squatter.end()
    stage.topology.write("pod", {COOKIES: USUAL_COOKIES})
    given = [(kind, said) for kind, said in heard if said != "refused"]
    return answers | {"given by the squatter": len(given)}


def port_held(stage, subject):
    """It does not start half: it names the port, and ends with status 1."""
    stage.gateway.stop()
    for address, port in HELD:
        with stage.agents.start(USER, "attacks/hold", address, port):
            status, said = stage.gateway.refused_start()
        named = status == 1 and str(port) in said and len(said.strip().splitlines()) == 1
        subject.check(f"{address} {port} is held: one sentence that names it, and status 1", named, (status, said))
    stage.gateway.start()
    inspected(stage, subject)
