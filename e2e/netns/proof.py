"""The gateway's own proof: it is ready only while the redirect is in force, every rule of it that is asked for."""

import json
import subprocess

from agent import BOTH
from attack import elsewhere
from plan import Instead, Without, WithoutChain
from subject import Subject
from topology import ACCOMPLICE
from twin import inspected

TAMPERED = {
    "the redirect rule": [Without(r"l4proto tcp redirect")],
    "the final reject": [Without(r"^ +counter reject")],
    "the redirect of IPv6": [Instead(r"meta l4proto tcp redirect", "meta nfproto ipv4 meta l4proto tcp redirect")],
    "the final reject of IPv6": [Instead(r"^ +counter reject", "    meta nfproto ipv4 counter reject")],
    "the filter's rules": [WithoutChain("filter_output", emptied=True)],
    "the filter's chain": [WithoutChain("filter_output")],
}


def subjects():
    yield Subject("proof of interception", proof)
    yield Subject("a pod without IPv6", without_ipv6)
    yield Subject("doctor, asked by the agent", doctor)


def proof(stage, subject):
    subject.check("in force: ready, and the metric says 1", proven(stage), told(stage))
    for words, edits in TAMPERED.items():
        if stage.backend.weakens:
            stage.plan.weaken(edits)
            unproven(stage, subject, f"without {words}")
    stage.plan.remove()
    unproven(stage, subject, "with the whole plan deleted")
    inspected(stage, subject)


def without_ipv6(stage, subject):
    """A family without a route is closed: the other is enough."""
    stage.gateway.stop()
    with stage.topology.without_ipv6("pod"):
        stage.plan.program()
        stage.gateway.start()
        subject.check("ready, and the metric says 1", proven(stage), told(stage))
        for identity in BOTH:
            dial = ["plain", 4, ACCOMPLICE[4], 443]
            seen, left = stage.attempt(identity, "tcp", *dial, counts=elsewhere)
            subject.nothing_left(identity.name, left, seen)
        inspected(stage, subject)
        stage.gateway.stop()
    stage.plan.program()
    stage.gateway.start()


def doctor(stage, subject):
    """It tries what whoever runs it can send, and says what became of it."""
    for identity in BOTH:
        matches = examined(stage, identity)
        subject.check(f"{identity.name}: every way out leads to the gateway or nowhere", matches == {"ok"}, matches)
    stage.plan.remove()
    for identity in BOTH:
        matches = examined(stage, identity)
        subject.check(f"{identity.name}: without the plan it is not enforced", matches == {"not enforced"}, matches)
    stage.plan.program()


def examined(stage, identity):
    """The states of what doctor says of the ways out and of names."""
    doctor = identity.command("env", "KUBERNETES_SERVICE_HOST=10.96.0.1", stage.postern, "doctor", "-o", "json")
    done = subprocess.run(stage.topology.command("pod", *doctor), capture_output=True, text=True, check=True)
    findings = json.loads(done.stdout)
    return {finding["state"] for finding in findings if finding["subject"] in ("way out", "names")}


def unproven(stage, subject, words):
    stage.gateway.reload()
    lost = stage.gateway.becomes(lambda: stage.gateway.proven() == 0 and not stage.gateway.is_ready())
    subject.check(f"{words}: not ready, and the metric says 0", lost, told(stage))
    verified, answer = stage.plan.verify()
    subject.check(f"{words}: --verify says so", not verified, answer)
    stage.plan.program()
    stage.gateway.reload()
    again = stage.gateway.becomes(lambda: proven(stage))
    subject.check(f"{words}: proven again once programmed again", again, told(stage))


def proven(stage):
    return stage.gateway.proven() == 1 and stage.gateway.is_ready()


def told(stage):
    return stage.gateway.proven(), stage.gateway.ask("/readyz")
