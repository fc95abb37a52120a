"""An attack or a promise as a step whose escapes are counted, and the table of all attacks."""

from steps import Step


class Subject(Step):
    """`counts` says that the table has a row for it: what got out without its rule, and with it."""

    def __init__(self, name, examine, counts=False):
        super().__init__(name, examine)
        self.counts, self.without, self.within, self.unit = counts, 0, 0, "packets"

    def nothing_left(self, who, left, seen):
        """The check that every attack ends with; `left` are frames."""
        self.check(f"nothing of {who} gets out", not left, [*map(str, left[:5]), seen])

    def figures(self):
        without = f"{self.without} {self.unit} without, " if self.without else ""
        return f"  {without}{self.within} with" if self.counts else ""


def table(runs):
    """The attacks that are counted, as Markdown, by backend."""
    yield "| attack | outside, without its rule | " + " | ".join(f"with it, {run.title}" for run in runs) + " |"
    yield "|---" * (2 + len(runs)) + "|"
    names = dict.fromkeys(subject.name for run in runs for subject in run.steps if subject.counts)
    for name in names:
        every = [next((each for each in run.steps if each.name == name), None) for run in runs]
        without = next((f"{each.without} {each.unit}" for each in every if each and each.without), "")
        yield f"| {name} | {without} | " + " | ".join(str(each.within) if each else "" for each in every) + " |"
