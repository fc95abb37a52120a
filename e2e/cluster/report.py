"""What was expected and what was seen: every step with its evidence, and the times that were measured."""

import time


class Step:
    """One promise; `examine` is called with the stage and the step to make its checks. One that is `needed` always runs."""

    def __init__(self, name, examine, needed=False):
        self.name, self.examine, self.needed = name, examine, needed
        self.checks, self.started = [], None

    def begin(self):
        self.started = time.monotonic()
        print(f"--- {self.name}", flush=True)

    def end(self):
        print(f"    {time.monotonic() - self.started:.1f} s", flush=True)

    def check(self, expected, holds, saw):
        """`expected` in words; `saw` is the evidence."""
        self.checks.append(bool(holds))
        print(
            f"{'ok  ' if holds else 'FAIL'}  {expected}\n        saw: {shortened(saw, 300 if holds else 1500)}",
            flush=True,
        )
        return holds


class Times:
    """Seconds by what took them, some with a bar that they must stay under."""

    def __init__(self):
        self.taken = {}

    def record(self, step, what, seconds, bar=None):
        self.taken[what] = (seconds, bar)
        if bar is not None:
            step.check(f"{what}: under {bar} s", seconds is not None and seconds < bar, shown(seconds))

    def lines(self):
        yield "| | seconds | bar |"
        yield "|---|---|---|"
        for what, (seconds, bar) in self.taken.items():
            yield f"| {what} | {shown(seconds)} | {bar or ''} |"


def shown(seconds):
    return "never" if seconds is None else f"{seconds:.1f}"


def shortened(saw, most):
    text = " ".join(str(saw).split())
    return text if len(text) <= most else f"{text[: most // 2]} … {text[-most // 2 :]}"
