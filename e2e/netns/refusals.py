"""The redirect refuses bad input, and gives the same result however often it runs."""

from agent import BOTH, USER
from attack import elsewhere
from subject import Subject
from topology import ACCOMPLICE
from twin import inspected

FOREIGN = """
table ip foreign {
  chain output {
    type nat hook output priority -150; policy accept;
    meta skuid 1000 accept
  }
}
"""
TIMES = 10


def subjects():
    yield Subject("redirect refuses what it cannot hold", refusals)
    yield Subject("redirect again, verified and removed", idempotent)
    yield Subject("redirect again and again under attack", atomic)


def refusals(stage, subject):
    """In one sentence, with status 1, and with nothing half programmed."""
    refused(stage, subject, "without NET_ADMIN", ["setpriv", "--bounding-set=-net_admin", "--inh-caps=-net_admin"])
    refused(stage, subject, "as an ordinary user", USER.command())
    stage.plan.remove()
    stage.plan.load(FOREIGN)
    refused(stage, subject, "beside a table that exempts a UID", [])
    stage.plan.load("delete table ip foreign\n")
    stage.plan.program()
    inspected(stage, subject)


def refused(stage, subject, words, before):
    rules = stage.plan.rules()
    done = stage.plan.run(before=before)
    output = done.stderr.strip()
    subject.check(f"{words}: exit status 1", done.returncode == 1, (done.returncode, output))
    subject.check(f"{words}: one sentence", output and len(output.splitlines()) == 1, output)
    subject.check(f"{words}: no rule has changed", stage.plan.rules() == rules, stage.plan.rules())


def idempotent(stage, subject):
    rules = stage.plan.rules()
    subject.check("the rules are where this backend has them", stage.backend.mark in rules, rules)
    stage.plan.program()
    subject.check("again: the same rules", stage.plan.rules() == rules, stage.plan.rules())
    verified, output = stage.plan.verify()
    subject.check("--verify finds them", verified, output)
    stage.plan.remove()
    subject.check("--remove leaves none", "postern" not in stage.plan.rules().lower(), stage.plan.rules())
    verified, output = stage.plan.verify()
    subject.check("--verify misses them", not verified, output)
    stage.plan.program()
    inspected(stage, subject)


def atomic(stage, subject):
    """At no moment does half a plan stand."""
    for identity in BOTH:
        with stage.agents.start(identity, "attacks/flood", 443, *ACCOMPLICE.values()) as flood:
            _, left = stage.capture.during(lambda: [stage.plan.program() for _ in range(TIMES)], elsewhere)
            seen = flood.end()
        subject.check(f"nothing of {identity.name} gets out meanwhile", not left, [*map(str, left[:5]), seen])
    inspected(stage, subject)
