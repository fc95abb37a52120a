"""What the stand-in does in a task: it runs a command, looks for the line that it needs, fetches what was left out, and goes on."""

import re
import shlex

from dialects import Call

# The line of a cut text that says where all of it is.
MARKER = re.compile(r"^\[postern\] .* left out\b.*\. All of it: (\S+)$", re.MULTILINE)
# Where an agent itself put what it left out: Claude Code, the Gemini CLI.
OWN_FILE = re.compile(r"[Ff]ull output (?:saved to|see): (\S+)")


class Script:
    """The script of one run. It is a function of the results so far, so that a request that is sent twice is answered alike."""

    def __init__(self, task, between=None):
        """`between` are commands that follow those of turns, by the turns' numbers."""
        self.task, self.between = task, between or {}

    def next(self, results):
        """The call behind these results; none at the end."""
        calls = []
        for count in range(len(results) + 1):
            calls.append(self._decide(calls, results[:count]))
        return calls[-1]

    def played(self, results):
        """All calls that led to these results."""
        return [self.next(results[:count]) for count in range(len(results))]

    def _decide(self, calls, results):
        if not calls:
            return Call("shell", self.task.command)
        if not self.has_needed(results):
            untried = [way for way in self._ways(results[0]) if way not in calls]
            if untried:
                return untried[0]
        followed = sum(call is not None and call.argument.startswith("echo turn-") for call in calls)
        turn = followed + 1
        return Call("shell", f"echo turn-{turn}{self.between.get(turn, '')}") if followed < self.task.turns else None

    def has_needed(self, results):
        """Whether the line that the task is about stands in a result."""
        return self.task.needs is None or any(self.task.needs in text for text in results)

    def _ways(self, first):
        """What a model may do to see what was left out of the first result, in this order."""
        searched = shlex.quote(self.task.search or self.task.needs)
        for path in [*evidence(first), *OWN_FILE.findall(first)]:
            if path.startswith("http:"):
                search, read = (Call("shell", f"curl -sS -G {path}{query}") for query in (f" --data-urlencode match={searched}", ""))
                yield from (search, read) if self.task.searches else (read, search)
                continue
            search, read = Call("shell", f"grep -n -e {searched} {path}"), Call("read", path)
            yield from (search, read) if self.task.searches else (read, search)
        yield Call("shell", f"{{ {self.task.command}; }} 2>&1 | grep -n -e {searched}")


def evidence(text):
    """Where a cut text says that all of it is."""
    return MARKER.findall(text)
