"""The gateway's own output, once every client is done with it."""

import json

from commands import output
from stage import KEYS
from steps import Step


def steps(tools, stage):
    _, version, _ = output([tools.postern, "--version"])
    yield Step(f"postern gateway {version.decode().split()[1]}", examine)


def examine(stage, client):
    status = stage.gateway.status()
    client.check("ready to the end", status["ready"], status)
    status = stage.gateway.stop()
    client.check("SIGTERM ends it with status 0", status == 0, status)
    text = stage.gateway.events.read_text()
    events = [json.loads(line) for line in text.splitlines()]
    numbers = [event["sequence"] for event in events]
    client.check("events are numbered without gaps", numbers == list(range(numbers[0], numbers[0] + len(numbers))), numbers[:9])
    denials = {event["decision"]["rule"] for event in events if event["decision"]["verdict"] == "Deny"}
    client.check("denials are events", denials, denials)
    written = text + stage.gateway.log.read_text()
    leaked = [name for name, key in KEYS.items() if key in written]
    client.check("no key in events or log", not leaked, leaked)
