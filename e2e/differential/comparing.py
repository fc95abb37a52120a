"""Where two normal forms differ: a place, what the gateway says there, and what the peer says."""

import json
from dataclasses import dataclass
from difflib import SequenceMatcher

# What a side says where it says nothing.
ABSENT = "(absent)"
TRANSLATED = "(translated)"


@dataclass(frozen=True)
class Difference:
    """`place` is a path; elements of lists have their number in the gateway's list and a word for what they are."""

    place: str
    ours: str
    theirs: str

    def __str__(self):
        return f"{self.place}: {shortened(self.ours)} | {shortened(self.theirs)}"


def shortened(text):
    return text if len(text) <= 300 else f"{text[:200]} … {text[-60:]}"


def differences(ours, theirs):
    """Every difference, in order; a refusal to translate is one alone."""
    if ("error" in ours) != ("error" in theirs):
        return [Difference("error", ours.get("error", TRANSLATED), theirs.get("error", TRANSLATED))]
    return within(ours, theirs, "")


def within(ours, theirs, place):
    if is_same(ours, theirs):
        return []
    if isinstance(ours, dict) and isinstance(theirs, dict):
        keys = list(dict.fromkeys([*ours, *theirs]))
        values = [(below(place, key), ours.get(key, ABSENT), theirs.get(key, ABSENT)) for key in keys]
        return [each for at, left, right in values for each in within(left, right, at)]
    if isinstance(ours, list) and isinstance(theirs, list) and any(isinstance(each, dict) for each in ours + theirs):
        return in_lists(ours, theirs, place)
    return [Difference(place, text(ours), text(theirs))]


def is_same(ours, theirs):
    """JSON knows one kind of number, but truth is no number."""
    return json.dumps(ours, sort_keys=True) == json.dumps(theirs, sort_keys=True)


def in_lists(ours, theirs, place):
    """Elements that are the same thing stand opposite one another, whatever is missing between them."""
    things = [[thing(each) for each in several] for several in (ours, theirs)]
    differing = []
    for kind, start, end, other, other_end in SequenceMatcher(None, *things, autojunk=False).get_opcodes():
        if kind == "equal":
            for number, (left, right) in enumerate(zip(ours[start:end], theirs[other:other_end], strict=True), start):
                differing += within(left, right, below(place, f"{number}:{things[0][number]}"))
            continue
        for number in range(start, end):
            differing.append(Difference(below(place, f"{number}:{things[0][number]}"), text(ours[number]), ABSENT))
        for number in range(other, other_end):
            differing.append(Difference(below(place, f"{number}:{things[1][number]}"), ABSENT, text(theirs[number])))
    return differing


def thing(element):
    """A word for what an element of a list is: a role, a name, a type."""
    if not isinstance(element, dict):
        return "value"
    function = element.get("function")
    name = function.get("name") if isinstance(function, dict) else None
    return element.get("role") or name or element.get("type") or element.get("name") or "element"


def below(place, key):
    return f"{place}/{key}" if place else str(key)


def text(value):
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True, ensure_ascii=False)
