"""What the SDK programs have in common: `check WORD` prints one JSON object, {"text": …, "tool": …} or {"error": …}."""

import json
import sys

BASES = {"unnamed": "https://unnamed.example.com", "forbidden": "https://forbidden.example.com"}


def run(scenarios, errors):
    """Runs the scenario in the arguments; `errors` are those that the SDK shows its user."""
    try:
        print(json.dumps(scenarios[sys.argv[1]]()))
    except errors as error:
        print(json.dumps({"error": f"{type(error).__name__}: {error}: {error.__cause__!r}"}))
