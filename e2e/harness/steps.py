"""One step of a suite and its checks: what is expected, whether it holds, and the evidence."""

import time


class Step:
    """A promise, an attack or a client; `examine` is called with the stage and the step. A `needed` step always
    runs, and where it fails it is the last one."""

    def __init__(self, name, examine, needed=False):
        self.name, self.examine, self.needed = name, examine, needed
        self.checks, self.notes, self.is_verbose, self.started = [], [], False, time.monotonic()

    def begin(self, is_verbose):
        self.is_verbose, self.started = is_verbose, time.monotonic()

    def check(self, expected, holds, saw=""):
        """Records a check, and prints it if it fails or everything is asked for; `expected` in words, `saw` the evidence."""
        self.checks.append(bool(holds))
        if self.is_verbose or not holds:
            print(f"      {'ok  ' if holds else 'FAIL'}  {expected}\n            saw: {shortened(saw)}", flush=True)
        return holds

    def summary(self):
        """The step's one line, and a line for each of its notes."""
        kept, count = self.checks.count(True), len(self.checks)
        yield f"{'ok  ' if kept == count else 'FAIL'}  {self.name}  {kept}/{count}{self.figures()}  {time.monotonic() - self.started:.1f} s"
        yield from (f"      {note}" for note in self.notes)

    def figures(self):
        """Returns more text for the summary."""
        return ""


def shortened(saw):
    text = " ".join(str(saw).split())
    return text if len(text) <= 1500 else f"{text[:750]} … {text[-750:]}"
