"""What the redirect refuses to do: in one sentence, with status 1, and with nothing half programmed."""

import subprocess

from agent import USER
from report import Subject
from twin import inspected

FOREIGN = """
table ip foreign {
  chain output {
    type nat hook output priority -150; policy accept;
    meta skuid 1000 accept
  }
}
"""


def subjects():
    yield Subject("redirect refuses what it cannot hold", refusals)
    yield Subject("redirect again, verified and removed", idempotent)


def refusals(stage, subject):
    refused(stage, subject, "without NET_ADMIN", ["setpriv", "--bounding-set=-net_admin", "--inh-caps=-net_admin"])
    refused(stage, subject, "as an ordinary user", USER.command())
    stage.plan.load(FOREIGN)
    refused(stage, subject, "beside a table that exempts a UID", [])
    stage.plan.load("delete table ip foreign\n")
    stage.plan.program()
    inspected(stage, subject)


def refused(stage, subject, words, before):
    rules = stage.plan.ruleset()
    done = subprocess.run(stage.plan.command(before=before), env=stage.plan.environment, capture_output=True, text=True, check=False)
    said = done.stderr.strip()
    subject.check(f"{words}: exit status 1", done.returncode == 1, (done.returncode, said))
    subject.check(f"{words}: one sentence", said and len(said.splitlines()) == 1, said)
    subject.check(f"{words}: no rule has changed", stage.plan.ruleset() == rules, stage.plan.ruleset())


def idempotent(stage, subject):
    rules = stage.plan.ruleset()
    stage.plan.program()
    subject.check("again: the same rules", counters_aside(stage.plan.ruleset()) == counters_aside(rules), stage.plan.ruleset())
    verified, said = stage.plan.verify()
    subject.check("--verify finds them", verified, said)
    stage.plan.remove()
    subject.check("--remove leaves none", "postern" not in stage.plan.ruleset().lower(), stage.plan.ruleset())
    verified, said = stage.plan.verify()
    subject.check("--verify misses them", not verified, said)
    stage.plan.program()
    inspected(stage, subject)


def counters_aside(rules):
    return [" ".join(word for word in line.split() if not word.isdigit()) for line in rules.splitlines()]
