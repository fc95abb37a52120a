"""The general clients behind `postern run`: what it sets in their environment is all that they are told."""

from functools import partial

import fetching
from explicit import PosternRun
from stage import KEYS, POLICY
from steps import Step


def steps(tools, stage):
    wrapped = PosternRun(stage, POLICY, {"API_KEY": KEYS["API_KEY"]})
    yield Step(f"postern run -- env {fetching.version('env', '--version')}", partial(environment, wrapped))
    for name, number, command, _ in fetching.clients(tools):
        # Java reads roots from no variable that is its own alone.
        if not name.startswith("Java"):
            yield Step(f"postern run -- {name} {number}", partial(examine, wrapped, command))


def environment(wrapped, _stage, client):
    code, printed, _ = wrapped("env")
    client.check("no key in its environment", code == 0 and fetching.KEY.encode() not in printed, printed.decode())


def examine(wrapped, command, stage, client):
    mark = stage.mark()
    url, key = "https://api.example.com/public/data", fetching.PLACEHOLDER
    code, printed, errors = wrapped(*command, "GET", url, 0, key)
    seen = fetching.Seen(printed, errors, stage.seen_since(mark))
    fits = code == 0 and fetching.INTACT in seen.text and seen.issuer.startswith("Postern")
    client.check("inspected: answer intact, issuer is Postern", fits, seen)
    keys = [request["headers"].get("authorization") for request in seen.upstream]
    client.check("key swapped upstream", keys == [f"Bearer {fetching.KEY}"], keys)
