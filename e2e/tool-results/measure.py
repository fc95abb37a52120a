"""What is counted of a run: tokens of all turns and of results, what was cut, fetched back, and never reached."""

from dataclasses import asdict, dataclass

from prefixes import cost, misses
from script import MARKER, Script, evidence
from standin import DIALECTS

# A token is four bytes, as in a policy.
BYTES = 4


@dataclass
class Measure:
    """One run of one task. Tokens are those of all turns together; `result` is the first result as it was sent."""

    agent: str
    task: str
    kind: str
    way: str
    turns: int
    tokens: int
    # The same with a cache of prompts, in tokens at the full price.
    cost: int
    result: int
    # How the agent itself shortened the result, if it did.
    own: str
    cut: bool
    # How the model got what it needed: "first" (it stood in the first result), "read" or "searched" (the evidence), "own" (a
    # file of the agent's), "again" (by the command), "never"; or "" where it needs nothing.
    reached: str
    misses: int
    ended: bool

    def as_dict(self):
        return asdict(self)


def measured(agent, task, way, status, seen):
    """What a run was; `seen` has the body of each turn with its bytes."""
    dialect = DIALECTS[agent.host]
    asked = [body for body, _ in seen]
    results = dialect.results(asked[-1]) if asked else []
    script = Script(task)
    first = results[0] if results else ""
    return Measure(
        agent=agent.name, task=task.name, kind=task.kind, way=way, turns=len(seen), tokens=sum(size for _, size in seen) // BYTES,
        cost=cost(dialect, asked), result=len(first.encode()) // BYTES, own=own(first), cut=bool(MARKER.search(first)), reached=reached(task, script, results),
        misses=misses(dialect, asked), ended=status == 0 and bool(results) and script.next(results) is None,
    )


def reached(task, script, results):
    if task.needs is None:
        return ""
    for place, (call, text) in enumerate(zip(script.played(results), results, strict=True)):
        if task.needs in text:
            return "first" if place == 0 else way_of(call, evidence(results[0]))
    return "never"


def way_of(call, places):
    """How a call fetches what was left out; `places` are those of the evidence."""
    if any(place in call.argument for place in places):
        is_search = call.argument.startswith("grep ") or " match=" in call.argument
        return "searched" if is_search else "read"
    return "own" if call.kind == "read" or call.argument.startswith("grep ") else "again"


def own(text):
    """How an agent shortens a result by itself, as it says so in the result."""
    for words in ("persisted-output", "Output too large", "truncated output", "characters truncated"):
        if words in text:
            return words
    return ""
