"""The general clients behind `postern run`: what it sets in their environment is all that they are told."""

from functools import partial

import fetching
from report import Client, output
from stage import HERE, KEYS


def run(tools, stage):
    door = Door(tools, stage, HERE / "policy.yaml", {"API_KEY": KEYS["API_KEY"]})
    for name, number, command, _ in fetching.clients(tools):
        # Java reads roots from no variable that is its own alone.
        if not name.startswith("Java"):
            yield Client(f"postern run -- {name}", number, partial(examine, stage, door, command))


def examine(stage, door, command, client):
    mark = stage.mark()
    url, key = "https://api.example.com/public/data", fetching.PLACEHOLDER
    code, printed, errors = door(*command, "GET", url, 0, key)
    seen = fetching.Seen(printed, errors, stage.seen_since(mark))
    fits = code == 0 and fetching.INTACT in seen.text and seen.issuer.startswith("Postern")
    client.check("inspected: answer intact, issuer is Postern", fits, seen)
    keys = [request["headers"].get("authorization") for request in seen.upstream]
    client.check("key swapped upstream", keys == [f"Bearer {fetching.KEY}"], keys)


class Door:
    """`postern run` for a user who has `keys`, and the stand-in as the proxy and the authority of their network."""

    def __init__(self, tools, stage, policy, keys):
        self.command = [tools.postern, "run", "--policy", policy, "--"]
        way = {"HTTPS_PROXY": stage.upstream_proxy, "SSL_CERT_FILE": str(stage.roots("upstream"))}
        self.environment = stage.bare() | way | keys

    def __call__(self, *command):
        """Status, standard output and standard error of a command behind the door."""
        return output([*self.command, *command], env=self.environment, cwd=self.environment["HOME"])
