"""The shared part of the SDK programs: `check WORD` prints one JSON object, {"text": …, "tool": …} or {"error": …}."""

import json
import sys

BASES = {"unnamed": "https://unnamed.example.com", "forbidden": "https://forbidden.example.com"}


def run(scenarios, errors):
    """Runs the scenario in the arguments; `errors` are those that the SDK shows its user."""
    try:
        print(json.dumps(scenarios[sys.argv[1]]()))
    except errors as error:
        # OpenAI's message leaves out a body that is no JSON; the response that it carries has it.
        answer = getattr(error, "response", None)
        body = answer.text if answer is not None else repr(error.__cause__)
        print(json.dumps({"error": f"{type(error).__name__}: {error}: {body}"}))
