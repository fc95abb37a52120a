"""Tries which sockets the agent can open, also by options and in a user namespace (threats A5, A25)."""

from agent import BOTH
from attack import elsewhere
from gateway import UID
from subject import Subject
from topology import ACCOMPLICE
from twin import between_containers

# Families that leave no host by themselves, or whose packets the plan's rules see.
INSIDE = {"UNIX", "NETLINK", "ALG", "INET", "INET6", "KCM", "KEY", "UDP-Lite", "MPTCP", "SCTP", "DCCP", "L2TP", "SMC"}
# No hook of netfilter sees it: seccomp must refuse it.
RESIDUE = {"VSOCK"}
DENIED = {"EPERM", "EACCES"}


def subjects():
    yield Subject("A25 socket families", families)
    yield Subject("A5 raw and packet sockets, source routes, marks, transparency", options)


def families(stage, subject):
    for identity in BOTH:
        seen, left = stage.attempt(identity, "families", UID, ACCOMPLICE[4], counts=elsewhere)
        opened, who = set(seen["opens"]), identity.name
        listed = [" ".join([name, *kinds]) for name, kinds in seen["opens"].items()]
        subject.notes.append(f"{who} opens: {', '.join(listed)}")
        unseen = opened - INSIDE - RESIDUE
        subject.check(f"{who}: nothing opens that the plan does not see", not unseen, unseen)
        gained = seen["user namespace"]
        denied = all(answer.split(",")[0] in DENIED for answer in gained.values())
        subject.check(f"{who}: a user namespace gives nothing, not even by the gateway's UID", denied, gained)
        subject.nothing_left(who, left, seen)
    between_containers(stage, subject)


def options(stage, subject):
    for identity in BOTH:
        seen, left = stage.attempt(identity, "options", counts=elsewhere)
        allowed = {name: answer for name, answer in seen.items() if answer not in DENIED}
        subject.check(f"{identity.name}: the kernel denies each", not allowed, seen)
        subject.nothing_left(identity.name, left, seen)
    between_containers(stage, subject)
