"""The policies that recordings are judged under, and which recordings can share one that denies every other call."""

import json
from dataclasses import dataclass

# Every call is held until its input is complete, and none is denied.
HELD = {"name": "held", "tools": ["*"], "action": "Deny", "when": {"param": "$", "operator": "Contains", "values": ["no call of a recording says this"]}}
DENIED = {"name": "denied", "tools": ["*"], "action": "Deny", "reason": "Judged by SDKs"}


def policy(*rules, **more):
    """The text of a policy with these rules about calls, and whatever else it says."""
    return json.dumps({  # JSON is YAML.
        "apiVersion": "postern.dev/v1alpha1",
        "kind": "EgressPolicy",
        "metadata": {"name": "sdks", "namespace": "e2e"},
        "spec": {
            "podSelector": {},
            "destinations": [{"name": "llm", "hosts": ["**"], "action": "Inspect"}],
            "hostedTools": {"action": "Allow"},
        } | ({"tools": list(rules)} if rules else {}) | more,
    })


@dataclass(frozen=True)
class Rule:
    """Denies calls of a name with these parameters; without parameters, all of that name."""

    name: str
    given: tuple

    def denies(self, call):
        if call.name.casefold() != self.name.casefold():
            return False
        arguments = call.arguments()
        if self.given and self.given[0][0] == "$":
            return arguments is None and call.given == self.given[0][1]
        return all(self.equals((arguments or {}).get(key), value) for key, value in self.given)

    @staticmethod
    def equals(found, value):
        """As conditions of Deny rules compare: any element of an array will do."""
        several = found if isinstance(found, list) else [found]
        return any(type(one) is type(value) and one == value for one in several)

    def document(self, number):
        tests = [{"param": key, "operator": "Equals", "values": [value]} for key, value in self.given]
        rule = {"name": f"other-{number}", "tools": [self.name], "action": "Deny", "reason": "Every other call"}
        return rule | ({"when": {"all": tests}} if tests else {})


def against(call):
    """The rule that denies this call by its input, as far as it has one."""
    arguments = call.arguments()
    if arguments is None:
        return Rule(call.name, (("$", call.given),) if call.given not in ("null", "") else ())
    plain = [
        (key, value)
        for key, value in arguments.items()
        if key and "." not in key and (isinstance(value, bool | int) or (isinstance(value, str) and len(value) < 200))
    ]
    return Rule(call.name, tuple(sorted(plain)))


class Batch:
    """Recordings that are judged under the same rules, since no rule made for one denies more of another."""

    def __init__(self):
        self.rules, self.members = [], {}

    def takes(self, name, calls, rules):
        """Takes a recording in, unless its rules and those of the others disturb each other."""
        together = list(dict.fromkeys(self.rules + rules))
        everyone = self.members | {name: (calls, rules)}
        if any(denied(calls, together) != denied(calls, owned) for calls, owned in everyone.values()):
            return False
        self.rules, self.members = together, everyone
        return True

    def policy(self, **more):
        return policy(*(rule.document(number) for number, rule in enumerate(self.rules, 1)), **more)

    def kept(self, name):
        calls, rules = self.members[name]
        return [call for call in calls if call not in denied(calls, rules)]


def denied(calls, rules):
    return [call for call in calls if any(rule.denies(call) for rule in rules)]


def batches(recordings):
    """Batches in which every other call of each recording is denied, the first included; `recordings` are calls by name."""
    found = []
    for name, calls in recordings.items():
        rules = [against(call) for call in calls[::2]]
        if not any(batch.takes(name, calls, rules) for batch in found):
            found.append(Batch())
            found[-1].takes(name, calls, rules)
    return found
