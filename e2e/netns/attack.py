"""An attack on the plan: it gets out where its rule is missing, and not where the rule is there; its twin passes."""

from collections.abc import Callable
from dataclasses import dataclass

import twin
from agent import BOTH
from frames import SYN, TCP
from topology import BARE, UPSTREAM

FAMILIES = (4, 6)
OURS = {*UPSTREAM.values(), *BARE.values()}
# Seconds that a program waits for answers: none without the rule, where frames are the evidence; little where packets
# are dropped without a word; much where an answer is expected, which comes at once.
NONE, LITTLE, MUCH = 0.02, 0.2, 15


def elsewhere(frame):
    """What leaves for anywhere but the upstream, with which the gateway keeps connections of its own. Of TCP what opens
    a connection: the gateway's closed ones of before may still have something to send, or to refuse."""
    return frame.destination not in OURS and (frame.protocol != TCP or frame.payload[13] & SYN)


@dataclass(frozen=True)
class Attack:
    """`edits` make the plan without the `rule`; `arguments` gives the program's, by family."""

    threat: str
    name: str
    rule: str
    edits: tuple
    program: str
    arguments: Callable
    families: tuple = FAMILIES
    # Those whom the missing rule concerns; without the rule the others are not tried.
    bites: tuple = tuple(BOTH)
    counts: Callable = elsewhere
    # What the program must have seen where the plan holds: words, and a test of what it printed and of the family.
    refused: tuple = ()
    twin: Callable = twin.inspected

    def examine(self, stage, subject):
        if stage.backend.weakens:
            stage.plan.weaken(self.edits)
            self._without(stage, subject)
        stage.plan.program()
        self._with(stage, subject)
        self.twin(stage, subject)

    def _without(self, stage, subject):
        for identity, family in self._combinations(self.bites):
            seen, left = self._attempt(stage, identity, family, NONE)
            subject.without += len(left)
            subject.check(f"{identity.name} over IPv{family} gets out without {self.rule}", left, seen)

    def _with(self, stage, subject):
        for identity, family in self._combinations(BOTH):
            seen, left = self._attempt(stage, identity, family, MUCH if self.refused else LITTLE)
            subject.within += len(left)
            subject.nothing_left(f"{identity.name} over IPv{family}", left, seen)
            if self.refused:
                words, holds = self.refused
                subject.check(f"{identity.name} over IPv{family}: {words}", holds(seen, family), seen)

    def _combinations(self, identities):
        return [(identity, family) for identity in identities for family in self.families]

    def _attempt(self, stage, identity, family, patience):
        arguments = self.arguments(family)
        return stage.attempt(identity, self.program, *arguments, counts=self.counts, patience=patience)
