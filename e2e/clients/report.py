"""What was expected of a client and what was seen; one line a client, one more for each difference."""

import subprocess


class Client:
    """One client's checks; `examine` is called with the client to make them."""

    def __init__(self, name, version, examine):
        self.name, self.version, self.examine, self.checks, self.notes = name, version, examine, [], []

    def check(self, expected, holds, saw):
        """`expected` in words; `saw` is anything that explains a difference."""
        self.checks.append((expected, bool(holds), saw))

    def lines(self, verbose):
        failed = [check for check in self.checks if not check[1]]
        kept = len(self.checks) - len(failed)
        seen = "; ".join(expected for expected, holds, _ in self.checks if holds)
        yield f"{'FAIL' if failed else 'ok  '}  {self.name} {self.version}  {kept}/{len(self.checks)}  {seen}"
        yield from (f"      {note}" for note in self.notes)
        for expected, holds, saw in self.checks if verbose else failed:
            yield f"      {'ok:      ' if holds else 'expected:'} {expected}\n      saw:      {shortened(saw)}"


def shortened(saw):
    text = " ".join(str(saw).split())
    return text if len(text) <= 600 else f"{text[:300]} … {text[-300:]}"


def output(command, **options):
    """Both outputs of a command and its status; one that hangs is ended and says so. Without `input` it reads nothing."""
    if "input" not in options:
        options["stdin"] = subprocess.DEVNULL
    try:
        done = subprocess.run(list(map(str, command)), capture_output=True, check=False, timeout=180, **options)
        return done.returncode, done.stdout, done.stderr.decode(errors="replace")
    except subprocess.TimeoutExpired as error:
        return None, error.stdout or b"", f"no end within {error.timeout} s: {(error.stderr or b'').decode(errors='replace')}"
