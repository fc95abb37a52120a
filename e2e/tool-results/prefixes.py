"""What a provider caches of a turn: whether it still begins the next one, and what the turns cost then."""


def misses(dialect, turns):
    """How many turns do not begin with what the turn before had up to its last mark.

    Anthropic caches up to the blocks that the agent marks; the others cache the whole of what was asked before.
    """
    count, cached = 0, None
    for asked in turns:
        parts, marks = dialect.parts(asked)
        if cached is not None and parts[: len(cached)] != cached:
            count += 1
        cached = parts[: marks[-1]] if marks else []
    return count


# Prices of Anthropic's prompt cache, in those of a token that is not cached: of what is read, and of what is written.
READ, WRITTEN = 0.1, 1.25
BYTES = 4


def cost(dialect, turns):
    """What the turns cost with a cache, in tokens at the full price."""
    total, before = 0.0, []
    for asked in turns:
        parts, _ = dialect.parts(asked)
        same = next((place for place, (one, other) in enumerate(zip(parts, before)) if one != other), min(len(parts), len(before)))
        total += READ * size(parts[:same]) + WRITTEN * size(parts[same:])
        before = parts
    return round(total / BYTES)


def size(parts):
    return sum(len(part.encode()) for part in parts)
