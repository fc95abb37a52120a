"""What sockets the agent has at all: families, privileged options, and what it gains by a user namespace (threats A5, A25)."""

from agent import BOTH
from attack import elsewhere
from gateway import UID
from report import Subject
from topology import ACCOMPLICE
from twin import between_containers

# Families that leave no host by themselves, or whose packets the plan's rules see.
INSIDE = {"UNIX", "NETLINK", "ALG", "INET", "INET6", "KCM", "KEY", "UDP-Lite", "MPTCP", "SCTP", "DCCP", "L2TP", "SMC"}
# No hook of netfilter sees it; seccomp's RuntimeDefault and the runtime must, and docs/threat-model.md says so.
RESIDUE = {"VSOCK"}
DENIED = {"EPERM", "EACCES"}


def subjects():
    yield Subject("A25 socket families", families)
    yield Subject("A5 raw and packet sockets, source routes, marks, transparency", options)


def families(stage, subject):
    for identity in BOTH:
        seen, left = stage.capture.during(lambda: stage.agents.run(identity, "attacks/families", UID, ACCOMPLICE[4]), elsewhere)
        opened = set(seen["opens"])
        listed = ", ".join(" ".join([name, *kinds]) for name, kinds in sorted(seen["opens"].items()))
        subject.notes.append(f"{identity.name} opens: {listed}")
        subject.check(f"{identity.name}: nothing opens that the plan does not see", opened <= INSIDE | RESIDUE, opened - INSIDE - RESIDUE)
        subject.check(f"{identity.name}: no packet socket", "PACKET" not in opened, opened)
        privileged = seen["user namespace"]
        denied = all(said.split(",")[0] in DENIED for said in privileged.values())
        subject.check(f"{identity.name}: a user namespace gives nothing, not even by the gateway's UID", denied, privileged)
        subject.check(f"{identity.name}: nothing left", not left, list(map(str, left)))
    between_containers(stage, subject)


def options(stage, subject):
    for identity in BOTH:
        seen, left = stage.capture.during(lambda: stage.agents.run(identity, "attacks/options"), elsewhere)
        allowed = {name: said for name, said in seen.items() if said not in DENIED}
        subject.check(f"{identity.name}: each is denied by the kernel", not allowed, allowed)
        subject.check(f"{identity.name}: nothing left", not left, list(map(str, left)))
    between_containers(stage, subject)
