"""The gateway's own output, once every client is done with it."""

import json

from report import Client, output
from stage import KEYS


def run(tools, stage):
    _, version, _ = output([tools.postern, "--version"])
    yield Client("postern gateway", version.decode().split()[1], lambda client: examine(stage, client))


def examine(stage, client):
    status = stage.status()
    client.check("ready to the end", status["ready"], status)
    status = stage.stop_gateway()
    client.check("SIGTERM ends it with status 0", status == 0, status)
    text = stage.events.read_text()
    events = [json.loads(line) for line in text.splitlines()]
    numbers = [event["sequence"] for event in events]
    client.check("events are numbered without gaps", numbers == list(range(numbers[0], numbers[0] + len(numbers))), numbers[:9])
    denials = {event["decision"]["rule"] for event in events if event["decision"]["verdict"] == "Deny"}
    client.check("denials are events", denials, denials)
    said = text + stage.gateway_log.read_text()
    leaked = [name for name, key in KEYS.items() if key in said]
    client.check("no key in events or log", not leaked, leaked)
