"""The times that were measured, as a table."""


class Times:
    """Seconds by what took them, told as a table. How long something takes is the machine's affair as much as Postern's: what
    never comes fails, and nothing else. Beside the seconds stands how many times a reference step of the same run they are,
    which a busy machine changes little, and how many seconds they are meant to be on an idle machine of two cores."""

    REFERENCE = "reference: a pod that is not injected is Ready"

    def __init__(self):
        self.taken = {}

    def record(self, step, what, seconds, meant=None):
        """`seconds` is None for what did not come within a generous deadline."""
        self.taken[what] = (seconds, meant)
        step.check(f"{what}: comes", seconds is not None, shown(seconds))

    def note(self, what, seconds):
        """Records a time that no step promises."""
        self.taken[what] = (seconds, None)

    def lines(self):
        reference, _ = self.taken.get(self.REFERENCE, (None, None))
        yield "| | seconds | times the reference | meant, idle | |"
        yield "|---|---|---|---|---|"
        for what, (seconds, meant) in self.taken.items():
            ratio = f"{seconds / reference:.1f}" if reference and seconds is not None else ""
            slow = "slower" if meant and seconds is not None and seconds >= meant else ""
            yield f"| {what} | {shown(seconds)} | {ratio} | {f'< {meant}' if meant else ''} | {slow} |"


def shown(seconds):
    return "never" if seconds is None else f"{seconds:.1f}"
