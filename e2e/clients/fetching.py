"""General clients: one program each, which makes the request in its arguments and prints what it saw."""

import hashlib
import re
from functools import partial

from commands import output
from stage import KEYS, UPSTREAM_CA
from steps import Step

INTACT = "as the upstream wrote it"
KEY, PLACEHOLDER = KEYS["API_KEY"], "authorization:Bearer postern:api"
SIZE = 1 << 20


def clients(tools):
    """Name, version, command and the HTTP version in which its requests reach the upstream."""
    programs = tools.programs
    java = ["java", "-Djdk.http.auth.tunneling.disabledSchemes=", "-Djavax.net.ssl.trustStorePassword=changeit"]
    curl = version("curl", "--version")
    yield "curl --http1.1", curl, [tools.python, programs / "with_curl.py", "--http1.1"], "1.1"
    yield "curl --http2", curl, [tools.python, programs / "with_curl.py", "--http2"], "2.0"
    yield "requests", tools.python_version("requests"), [tools.python, programs / "with_requests.py"], "1.1"
    yield "httpx h2 strict", tools.python_version("httpx"), [tools.python, programs / "with_httpx.py"], "2.0"
    yield "Node fetch", version(tools.node, "--version"), [tools.node, programs / "with_fetch.mjs"], "1.1"
    yield "Go net/http", version("go", "version"), [programs / "with_go"], "2.0"
    yield "Java java.net.http", version("java", "-version"), [*java, "-cp", programs, "WithJava"], "2.0"


def steps(tools, stage):
    for name, number, command, http in clients(tools):
        yield Step(f"{name} {number}", partial(examine, command, http))


def examine(command, http, stage, client):
    """An allowed destination in all its ways, then each way to be refused."""
    fetch = Fetch(stage, command)
    seen = fetch("https://packages.example.com/public/data")
    fits = seen.status == 200 and INTACT in seen.text and seen.issuer.startswith("Postern")
    client.check("inspected: answer intact, issuer is Postern", fits, seen)
    versions = [request["http"] for request in seen.upstream]
    client.check(f"HTTP/{http} upstream", versions == [http], versions)
    seen = fetch("https://packages.example.com/public/large")
    client.check("1 MiB received intact", seen.status == 200 and seen.sha256 == LARGE, seen)

    seen = fetch("https://api.example.com/upload", "POST", SIZE, PLACEHOLDER)
    sent = hashlib.sha256(b"x" * SIZE).hexdigest()
    client.check("1 MiB sent intact", [request["sha256"] for request in seen.upstream] == [sent] and sent in seen.text, seen)
    seen = fetch("https://api.example.com/public/data", "GET", 0, PLACEHOLDER)
    keys = [request["headers"].get("authorization") for request in seen.upstream]
    client.check("key swapped upstream", keys == [f"Bearer {KEY}"], keys)
    client.check("key scrubbed from the answer", INTACT in seen.text and KEY not in seen.text, seen)
    seen = fetch("http://plain.example.com/public/data")
    client.check("plain HTTP", seen.status == 200 and INTACT in seen.text, seen)
    seen = fetch("https://tunnel.example.com/public/data", trusts="upstream")
    client.check("tunnelled: issuer is the upstream's", seen.issuer == UPSTREAM_CA and INTACT in seen.text, seen)

    seen = fetch("https://unnamed.example.com/public/data")
    what, words = stage.way.UNNAMED
    client.check(what, words.search(seen.error) and not seen.upstream, seen)
    seen = fetch("https://forbidden.example.com/public/data")
    client.check("denied host: reason shown", denied(seen, "e2e/clients/forbidden"), seen)
    seen = fetch("https://packages.example.com/private")
    client.check("denied endpoint: reason shown", denied(seen, "postern/builtin/endpoint"), seen)
    seen = fetch("https://packages.example.com/public/data", "GET", 0, PLACEHOLDER)
    client.check("placeholder elsewhere: reason shown", denied(seen, "postern/builtin/placeholder"), seen)
    seen = fetch("https://api.example.com/public/data", "GET", 0, "authorization:Bearer another-key")
    client.check("another key: reason shown", denied(seen, "postern/builtin/credential"), seen)


def denied(seen, rule):
    return seen.status == 403 and f"Rule: {rule}\n" in seen.text and "Reason: " in seen.text and not seen.upstream


class Fetch:
    """Makes requests by one program."""

    def __init__(self, stage, command):
        self.stage, self.command = stage, command

    def __call__(self, url, method="GET", size=0, *headers, trusts="postern"):
        command = list(self.command)
        if command[0] == "java":
            command.insert(1, f"-Djavax.net.ssl.trustStore={self.stage.roots(trusts, 'p12')}")
        mark = self.stage.mark()
        environment = self.stage.environment(trusts)
        _, printed, errors = self.stage.output([*command, method, url, size, *headers], environment)
        return Seen(printed, errors, self.stage.seen_since(mark))


class Seen:
    """A client's output, and the requests that reached the upstream meanwhile."""

    def __init__(self, printed, errors, upstream):
        head, _, body = printed.partition(b"\n\n")
        lines = dict(line.split(" ", 1) for line in head.decode().splitlines() if " " in line)
        self.status, self.issuer = int(lines.get("status", 0)), lines.get("issuer", "")
        self.error = lines.get("error", "" if self.status else errors or "nothing was printed")
        self.text, self.sha256 = body[:4096].decode(errors="replace"), hashlib.sha256(body).hexdigest()
        self.upstream = upstream

    def __str__(self):
        requests = [f"{request['method']} {request['path']}" for request in self.upstream]
        return f"{self.status or self.error} issuer={self.issuer!r} body={self.text!r} upstream={requests}"


def version(*command):
    _, printed, errors = output(command)
    return re.search(r"\d+\.\d+(\.\d+)*", printed.decode() + errors)[0]


TEXT = "The quick brown fox jumps over the lazy dog. \0\r\n\xff".encode("latin-1")
LARGE = hashlib.sha256((TEXT * (SIZE // len(TEXT) + 1))[:SIZE]).hexdigest()
