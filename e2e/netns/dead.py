"""The gateway is dead: what it carried is refused, nothing falls through, and nobody answers in its place (threats A14, A24)."""

from agent import BOTH, OTHER, USER
from attack import LITTLE, elsewhere
from gateway import PORTS
from inbound import dialled
from outside import FAMILIES, UPSTREAM_CA
from plan import Without
from report import Subject
from topology import ACCOMPLICE, UPSTREAM
from twin import between_containers, inspected

SQUATTED = (Without(r"tcp sport .* drop"), Without(r"udp sport .* drop"))
LISTENERS = [PORTS["transparent"], PORTS["explicit"], PORTS["dns"], PORTS["admin"]]


def subjects():
    yield Subject("A14 the gateway is killed under load", killed, counts=True)
    yield Subject("A24 its ports are held while it is dead", squatted, counts=True)
    yield Subject("A24 it starts while a port is held", port_held)


def killed(stage, subject):
    """Without: a plan that goes with the gateway, as its own end would take it away."""
    if stage.backend.weakens:
        seen, left = stage.capture.during(lambda: after_the_kill(stage, stage.plan.remove), elsewhere)
        subject.without = len(left)
        subject.check("what the agent sends gets out where the plan goes with the gateway", left, seen)
        stage.plan.program()
        stage.gateway.start()
    rules = stage.plan.verify()
    seen, left = stage.capture.during(lambda: after_the_kill(stage), elsewhere)
    subject.within = len(left)
    subject.check("nothing gets out", not left, [*map(str, left[:5]), seen])
    refused = {said for answers in seen["dialled"] for said in answers.values()}
    subject.check("connections are refused, over both families", refused == {"ECONNREFUSED"}, seen["dialled"])
    subject.check("the load was served, then refused, then served again, by Postern alone", recovered(seen["load"]), seen["load"])
    subject.check("no new redirect was needed", rules[0] and stage.plan.verify()[0], rules[1])
    inspected(stage, subject)


def after_the_kill(stage, meanwhile=lambda: None):
    """Kills the gateway under load, dials, and where the plan is there starts it again."""
    load = ["attacks/load", "api.example.com", UPSTREAM[4]]
    with stage.agents.start(USER, *load) as under_way:
        stage.gateway.kill()
        meanwhile()
        under_way.next()
        dialled = [stage.agents.run(each, "attacks/tcp", "plain", family, ACCOMPLICE[family], 443, patience=LITTLE) for each in BOTH for family in FAMILIES]
        if stage.plan.verify()[0]:
            stage.gateway.start()
            under_way.next()
        return {"dialled": dialled, "load": under_way.end()}


def recovered(load):
    served = [said.startswith("Postern") for said, _ in load]
    direct = [said for said, _ in load if said.startswith(UPSTREAM_CA)]
    return served[0] and served[-1] and not all(served) and not direct


def squatted(stage, subject):
    """The squatter is another container of the pod; its victims are one that dials, one that asks, and the node."""
    subject.unit = "answers in its place"
    if stage.backend.weakens:
        stage.plan.weaken(SQUATTED)
        subject.without = sum(count_forged(stage, subject, USER).values())
        subject.check("victims are answered without the rule that asks for the owner", subject.without, subject.without)
    stage.plan.program()
    if not stage.gateway.is_alive():
        stage.gateway.start()
    for identity in BOTH:
        forged = count_forged(stage, subject, identity)
        subject.within += sum(forged.values())
        subject.check(f"nobody is answered in its place by {identity.name}", not any(forged.values()), forged)
        stage.gateway.start()
    inspected(stage, subject)
    between_containers(stage, subject)


def count_forged(stage, subject, identity):
    """Who got an answer while the gateway's ports were held, and whose plaintext was heard."""
    stage.gateway.kill()
    with stage.agents.start(identity, "attacks/squat", PORTS["dns"], *LISTENERS) as squatter:
        held = [where for where, said in squatter.said.items() if said == "done"]
        subject.check(f"{identity.name} holds the ports", len(held) >= 2 * (len(LISTENERS) + 1), squatter.said)
        forged = {"node": int("forged" in dialled(stage, "tcp", 4, PORTS["admin"], b"GET /readyz HTTP/1.1\r\n\r\n", LITTLE))}
        for family in FAMILIES:
            said = stage.agents.run(OTHER, "attacks/tcp", "plain", family, ACCOMPLICE[family], 443, patience=LITTLE)
            forged[f"tcp {family}"] = sum("forged" in answer for answer in said.values())
            said = stage.agents.run(OTHER, "attacks/dns", family, ACCOMPLICE[family], patience=0.05)
            forged[f"dns {family}"] = sum(answer == "NXDOMAIN" for answer in said.values())
        heard = squatter.end()
    forged["heard"] = sum("secret" in said for said in heard)
    return forged


def port_held(stage, subject):
    """It does not start half: it names the port, on either loopback, and ends with status 1."""
    held = {"127.0.0.1:15001": ("127.0.0.1", 15001), "[::1]:15001": ("::1", 15001), "127.0.0.1:15053": ("127.0.0.1", 15053), "15002": ("127.0.0.1", 15002), "15090": ("127.0.0.1", 15090)}
    stage.gateway.stop()
    for words, (address, port) in held.items():
        with stage.agents.start(USER, "attacks/hold", address, port):
            status, said = stage.gateway.refused_start()
        subject.check(f"{words} is held: it says so and ends with 1", status == 1 and str(port) in said, (status, said))
        subject.check(f"{words} is held: one sentence", len(said.strip().splitlines()) == 1, said)
    stage.gateway.start()
    inspected(stage, subject)
