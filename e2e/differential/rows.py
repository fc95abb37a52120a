"""What a row of the table is, and which row explains a difference."""

import re
from dataclasses import dataclass

LITELLM, LLMS = "litellm", "llms"
BOTH = (LITELLM, LLMS)


@dataclass(frozen=True)
class At:
    """Where two translators differ, and what each says there. `*` is anything; `<theirs>` and `<ours>` are the other side."""

    place: str
    ours: str = "*"
    theirs: str = "*"

    def takes(self, difference):
        ours, theirs = difference.ours, difference.theirs
        return (
            is_like(self.place, difference.place)
            and is_like(self.ours, ours, {"<theirs>": theirs})
            and is_like(self.theirs, theirs, {"<ours>": ours})
        )


@dataclass(frozen=True)
class Row:
    """Differences to some peers for one reason: why the gateway's side is right. `inputs` are names, with `*`."""

    key: str
    peers: tuple
    reason: str
    at: tuple
    inputs: tuple = ("*",)

    def takes(self, peer, name, difference):
        return peer in self.peers and any(is_like(each, name) for each in self.inputs) and any(at.takes(difference) for at in self.at)


def is_like(pattern, text, other=None):
    """Whether a text is what a pattern says."""
    words = {"*": ".*"} | {word: re.escape(value) for word, value in (other or {}).items()}
    pieces = re.split(f"({'|'.join(map(re.escape, words))})", pattern)
    return re.fullmatch("".join(words.get(piece, re.escape(piece)) for piece in pieces), text, re.DOTALL) is not None


class Ledger:
    """Which rows were needed, by which peer."""

    def __init__(self, rows):
        self.rows, self.needed = rows, set()

    def explain(self, peer, name, differences):
        """The differences that no row explains, and the keys of the rows that explain the others."""
        left, keys = [], []
        for each in differences:
            row = next((row for row in self.rows if row.takes(peer, name, each)), None)
            if row is None:
                left.append(each)
            else:
                self.needed.add((row.key, peer))
                keys.append(row.key)
        return left, list(dict.fromkeys(keys))

    def idle(self):
        """Keys and peers of rows that explained nothing."""
        return [(row.key, peer) for row in self.rows for peer in row.peers if (row.key, peer) not in self.needed]
