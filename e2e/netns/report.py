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

    def nothing_left(self, who, left, seen):
        """The check that every attack ends with; `left` are frames."""
        self.check(f"nothing of {who} gets out", not left, [*map(str, left[:5]), seen])

    def lines(self, verbose):
        failed = [check for check in self.checks if not check[1]]
        kept = len(self.checks) - len(failed)
        without = f"{self.without} {self.unit} without, " if self.without else ""
        told = f"  {without}{self.within} with" if self.counts else ""
        yield f"{'FAIL' if failed else 'ok  '}  {self.name}  {kept}/{len(self.checks)}{told}"
        yield from (f"      {note}" for note in self.notes)
        for expected, holds, saw in self.checks if verbose else failed:
            yield f"      {'ok:      ' if holds else 'expected:'} {expected}\n      saw:      {shortened(saw)}"


def table(runs):
    """The attacks that are counted, as Markdown; `runs` are pairs of a backend and its subjects."""
    yield "| attack | outside, without its rule | " + " | ".join(f"with it, {backend}" for backend, _ in runs) + " |"
    yield "|---" * (2 + len(runs)) + "|"
    names = dict.fromkeys(subject.name for _, subjects in runs for subject in subjects if subject.counts)
    for name in names:
        every = [next((each for each in subjects if each.name == name), None) for _, subjects in runs]
        without = next((f"{each.without} {each.unit}" for each in every if each and each.without), "")
        yield f"| {name} | {without} | " + " | ".join(str(each.within) if each else "" for each in every) + " |"


def shortened(saw):
    text = " ".join(str(saw).split())
    return text if len(text) <= 600 else f"{text[:300]} … {text[-300:]}"
