"""Jaeger all-in-one: built from its Go module into the cache, started, and asked for traces."""

import json
import shutil
import socket
import sys
import urllib.error
import urllib.request

from servers import BIN, CACHE, compile_to, imports

VERSION = "1.62.0"
MODULE = "github.com/jaegertracing/jaeger"
EXECUTABLE = BIN / "jaeger-all-in-one"
GRPC, HTTP, QUERY = 4317, 4318, 16686


def build():
    """Builds it where the cache lacks it."""
    if EXECUTABLE.exists():
        return
    if not shutil.which("go"):
        sys.exit("go cannot be found: install Go 1.24 or later, with which Jaeger is built")
    module, package = CACHE / "gomod-jaeger", f"{MODULE}/cmd/all-in-one"
    module.mkdir(parents=True, exist_ok=True)
    (module / "go.mod").write_text(f"module jaegerbuild\n\ngo 1.24\n\nrequire {MODULE} v{VERSION}\n")
    imports(module, [package])
    compile_to(EXECUTABLE, module, package, "-ldflags", "-s -w")


def command(address):
    """Takes OTLP at an address, and questions on loopback."""
    return [
        EXECUTABLE,
        f"--collector.otlp.grpc.host-port={address}:{GRPC}",
        f"--collector.otlp.http.host-port={address}:{HTTP}",
        f"--query.http-server.host-port=127.0.0.1:{QUERY}",
    ]


def is_ready(address):
    """Whether it answers questions, and takes spans by either protocol at an address."""
    try:
        for port in (GRPC, HTTP):
            socket.create_connection((address, port), timeout=5).close()
        return urllib.request.urlopen(f"http://127.0.0.1:{QUERY}/api/services", timeout=5).status == 200
    except OSError:
        return False


def trace(identity):
    """A trace as Jaeger has it, or None before it has any of it."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{QUERY}/api/traces/{identity}", timeout=5) as answer:
            return json.load(answer)["data"][0]
    except urllib.error.HTTPError:
        return None


def give(address, span):
    """Exports a span of the agent's own, as its SDK would, in OTLP's JSON."""
    named = {"attributes": [{"key": "service.name", "value": {"stringValue": "agent"}}]}
    body = json.dumps({"resourceSpans": [{"resource": named, "scopeSpans": [{"spans": [span]}]}]}).encode()
    request = urllib.request.Request(f"http://{address}:{HTTP}/v1/traces", body, {"content-type": "application/json"})
    urllib.request.urlopen(request, timeout=5).close()
