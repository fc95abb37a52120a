"""Compares the gateway's translation between Messages and Chat Completions with that of two others, on the same inputs.

python3 e2e/run.py differential [--postern PATH] [--only WORD]… [--require] [--verbose] [--keep]

LiteLLM's adapter (PyPI) and @musistudio/llms (npm) are asked without their servers. Both are wrong at times: where they differ
from the gateway, a row of the table must say why the gateway is right, and no row may be left that nothing needs. Recordings
are in the directory that POSTERN_RECORDINGS names, or beside the repository; without them small inputs alone are compared.
"""

import sys
from collections import Counter
from functools import partial
from pathlib import Path

import answers_table
import inputs
import normal
import requests_table
from comparing import differences
from packages import TARGET, Packages
from rows import BOTH, Ledger
from runner import POSTERN, Suite, executable, run
from stage import Stage
from steps import Step

HERE = Path(__file__).resolve().parent
ROWS = requests_table.ROWS + answers_table.ROWS
KINDS = {
    "requests": lambda each: each.answer is None,
    "streams": lambda each: each.is_stream,
    "whole answers": lambda each: each.answer is not None and not each.is_stream,
}


class Trial:
    """What the gateway makes of each input, and how far each peer agrees."""

    def __init__(self, stage, is_complete):
        self.stage, self.is_complete = stage, is_complete
        self.ledger, self.ours = Ledger(ROWS), {}

    def steps(self):
        yield Step("the gateway translates as is written down, into valid streams", self.translate, needed=True)
        for peer in BOTH:
            for kind, belongs in KINDS.items():
                yield Step(f"{peer}: {kind}", partial(self.compare, peer, [each for each in self.stage.inputs if belongs(each)]))
        yield Step("every row of the table is needed", self.spare_nothing)

    def translate(self, stage, step):
        for each in stage.inputs:
            result = stage.ours(each)
            ours = self.ours[each.name] = read(each, result)
            step.check(f"{each.name}: its events are in order", not ours.get("wrong"), ours)
            if each.expected:
                step.check(f"{each.name}: the request is the one that is written down", result.get("request") == each.expected, result)

    def compare(self, peer, several, stage, step):
        counts = Counter()
        for each in several:
            question = {"request": each.request} | ({} if each.answer is None else {"answer": each.answer, "stream": each.is_stream})
            left, keys = self.ledger.explain(peer, each.name, differences(self.ours[each.name], read(each, stage.peers[peer].ask(question))))
            counts["unexplained" if left else "explained" if keys else "agreed"] += 1
            saw = "; ".join(map(str, left)) or f"explained by {', '.join(keys)}" if left or keys else "the same"
            step.check(f"{each.name}: {peer} says the same, or the table says why not (gateway | {peer})", not left, saw)
        step.notes.append(f"{len(several)} inputs: {counts['agreed']} agreed, {counts['explained']} explained, {counts['unexplained']} unexplained")

    def spare_nothing(self, _stage, step):
        keys = [row.key for row in ROWS]
        step.check("each key is of one row", len(keys) == len(set(keys)), [key for key, count in Counter(keys).items() if count > 1])
        idle = self.ledger.idle()
        for row in ROWS if self.is_complete else []:
            for peer in row.peers:
                step.check(f"{row.key} explains a difference to {peer}", (row.key, peer) not in idle, "nothing differs there any more")


def read(each, result):
    """The normal form of what a translator made of an input."""
    return normal.request(result) if each.answer is None else normal.answer(result, each.answer)


def stages(options):
    place = inputs.recordings()
    if place is None:
        sys.exit("FAIL  recordings absent") if options.require else print("recordings absent: small inputs alone")
    packages = Packages(HERE, TARGET / "differential")
    words = [word.lower() for word in options.only]
    chosen = [each for each in inputs.load(place) if not words or any(word in each.name.lower() for word in words)]
    is_complete = place is not None and not words
    yield "the gateway and two others", partial(Stage, options.postern, packages, chosen), lambda stage: Trial(stage, is_complete).steps()


run(Suite("differential", __doc__.splitlines()[0], stages, chooses_steps=False, options={
    "--postern": executable(POSTERN),
    "--require": {"action": "store_true", "help": "fail where the recordings are absent"},
}))
