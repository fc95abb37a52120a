"""The providers' SDKs, Python and Node: an answer, a streamed tool turn, and each way to be refused."""

import json
from functools import partial

from stage import KEYS
from steps import Step

DONE, COMMAND = "The tool has run.", "echo postern-tool-ran"
ANTHROPIC = {"ANTHROPIC_API_KEY": "sk-ant-postern-anthropic"}
OPENAI = {"OPENAI_API_KEY": "sk-postern-openai"}


def steps(tools, stage):
    python, node = partial(program, tools.python, tools), partial(program, tools.node, tools)
    anthropic, openai = partial(examine, ANTHROPIC), partial(examine, OPENAI)
    yield Step(f"anthropic (Python) {tools.python_version('anthropic')}", partial(anthropic, python("anthropic_sdk.py")))
    yield Step(f"openai (Python) {tools.python_version('openai')}", partial(openai, python("openai_sdk.py")))
    name = "@anthropic-ai/sdk"
    yield Step(f"{name} (Node) {tools.node_version(name)}", partial(anthropic, node("anthropic_sdk.mjs")))
    yield Step(f"openai (Node) {tools.node_version('openai')}", partial(openai, node("openai_sdk.mjs")))


def program(interpreter, tools, name):
    return [interpreter, tools.programs / name]


def examine(placeholder, command, stage, client):
    """`placeholder` is the one variable that the SDK takes its key from."""
    mark = stage.mark()

    def ask(scenario):
        _, printed, errors = stage.output([*command, scenario], stage.environment() | placeholder)
        return json.loads(printed) if printed else {"error": errors}

    answer = ask("answer")
    client.check("answer intact", answer.get("text") == DONE, answer)
    answer = ask("stream")
    client.check("streamed tool turn", answer.get("text") == DONE and COMMAND in "".join(answer.get("tool", [])), answer)
    (variable,) = placeholder
    requests = stage.seen_since(mark)
    keys = {carried(request["headers"]) for request in requests}
    client.check("key swapped upstream", keys == {KEYS[variable]} and len(requests) == 3, keys)

    mark = stage.mark()
    refusals = {
        "batches": ("denied endpoint", "Rule: postern/builtin/endpoint"),
        "another": ("another key", "Rule: postern/builtin/credential"),
        "forbidden": ("denied host", "Rule: "),
    }
    for scenario, (what, shown) in refusals.items():
        answer = ask(scenario)
        client.check(f"{what}: reason shown", shown in answer.get("error", ""), answer)
    answer = ask("unnamed")
    what, words = stage.way.UNNAMED
    client.check(what, words.search(answer.get("error", "")), answer)
    client.check("nothing refused was sent upstream", not stage.seen_since(mark), stage.seen_since(mark))


def carried(headers):
    """The key of a request, in whichever header the SDK writes it."""
    return headers.get("x-api-key") or headers.get("x-goog-api-key") or headers.get("authorization", "").removeprefix("Bearer ")
