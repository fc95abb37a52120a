"""The roots that the gateway writes for agents: each file, by a client that reads it."""

from functools import partial

from commands import output
from fetching import INTACT, Seen, clients, version
from stage import UPSTREAM_CA
from steps import Step

INSPECTED, TUNNELLED = "https://packages.example.com/public/data", "https://tunnel.example.com/public/data"


def steps(tools, stage):
    yield Step(f"roots for agents {version('java', '-version')}", partial(examine, tools))


def examine(tools, stage, client):
    """A container's own roots are in the files of that container alone: there the tunnelled server is trusted too."""
    trust = stage.gateway.state / "trust"
    for name in ("java.jks", "agent/java.jks"):
        status, listed, errors = output(["keytool", "-list", "-keystore", trust / name, "-storepass", "changeit"])
        client.check(f"keytool reads {name}", status == 0 and b"trustedCertEntry" in listed, errors or listed[:200])
    commands = {name: command for name, _, command, _ in clients(tools)}

    def fetch(name, url, java="java.jks", **variables):
        command = list(commands[name])
        if command[0] == "java":
            command.insert(1, f"-Djavax.net.ssl.trustStore={trust / java}")
        mark, environment = stage.mark(), stage.environment(**variables)
        _, printed, errors = stage.output([*command, "GET", url, 0], environment)
        return Seen(printed, errors, stage.seen_since(mark))

    seen = [
        fetch("Java java.net.http", INSPECTED),
        fetch("requests", INSPECTED, REQUESTS_CA_BUNDLE=str(trust / "ca-bundle.pem")),
        fetch("Node fetch", INSPECTED, NODE_EXTRA_CA_CERTS=str(trust / "ca.pem")),
    ]
    fits = all(one.status == 200 and INTACT in one.text and one.issuer.startswith("Postern") for one in seen)
    client.check("Java, requests and Node trust Postern", fits, list(map(str, seen)))
    seen = fetch("Java java.net.http", TUNNELLED)
    client.check("Java does not trust what nobody brought", "PKIX" in seen.error and not seen.upstream, seen)
    seen = [
        fetch("Java java.net.http", TUNNELLED, "agent/java.jks"),
        fetch("requests", TUNNELLED, REQUESTS_CA_BUNDLE=str(trust / "agent/ca-bundle.pem")),
        fetch("Node fetch", TUNNELLED, NODE_EXTRA_CA_CERTS=str(trust / "agent/ca.pem")),
    ]
    fits = all(one.status == 200 and one.issuer == UPSTREAM_CA for one in seen)
    client.check("with a container's own roots they trust those too", fits, list(map(str, seen)))
