"""What was expected and what was seen; one line a subject, one more for each difference, and the table of attacks."""


class Subject:
    """One attack or promise; `examine` is called with the stage and the subject to make its checks."""

    def __init__(self, name, examine, counts=False):
        self.name, self.examine, self.counts = name, examine, counts
        self.checks, self.notes = [], []
        self.without, self.within, self.unit = 0, 0, "packets"

    def check(self, expected, holds, saw):
        """`expected` in words; `saw` is anything that explains a difference."""
        self.checks.append((expected, bool(holds), saw))

    def lines(self, verbose):
        failed = [check for check in self.checks if not check[1]]
        kept = len(self.checks) - len(failed)
        told = f"  {self.without} {self.unit} without, {self.within} with" if self.counts else ""
        yield f"{'FAIL' if failed else 'ok  '}  {self.name}  {kept}/{len(self.checks)}{told}"
        yield from (f"      {note}" for note in self.notes)
        for expected, holds, saw in self.checks if verbose else failed:
            yield f"      {'ok:      ' if holds else 'expected:'} {expected}\n      saw:      {shortened(saw)}"


def table(subjects):
    """The attacks that are counted, as Markdown."""
    yield "| attack | outside, without its rule | with it |"
    yield "|---|---|---|"
    for subject in subjects:
        if subject.counts:
            yield f"| {subject.name} | {subject.without} {subject.unit} | {subject.within} |"


def shortened(saw):
    text = " ".join(str(saw).split())
    return text if len(text) <= 600 else f"{text[:300]} … {text[-300:]}"
