"""A run of a real gateway whose events a collector receives: a model's answers, denied calls, hosts that nobody allows."""

import http.server
import json
import ssl
import threading

from authority import Authority
from commands import tried
from gateway_process import GatewayProcess

SESSION, NAMESPACE, MODEL = "01a2008d-747b-7101-8101-010101010101", "agents", "claude-sonnet-5-5"
TURNS = 6
TOKENS = (TURNS * 120, TURNS * 8)
POLICY = """\
apiVersion: postern.dev/v1alpha1
kind: EgressPolicy
metadata: {name: coders, namespace: agents}
spec:
  destinations:
    - {name: anthropic, hosts: [api.anthropic.com], action: Inspect}
  tools:
    - {name: no-rm, tools: [Bash], action: Deny}
"""


class Answering(http.server.BaseHTTPRequestHandler):
    """Keeps the bodies that it gets, and answers each with the same."""

    protocol_version = "HTTP/1.1"
    answer, kind = b"", "application/x-protobuf"

    def do_POST(self):  # noqa: N802
        self.server.bodies.append(self.rfile.read(int(self.headers["content-length"])))
        self.send_response(200)
        self.send_header("content-type", self.kind)
        self.send_header("content-length", str(len(self.answer)))
        self.end_headers()
        self.wfile.write(self.answer)

    def log_message(self, *_):
        pass


class Model(Answering):
    """A model that always calls the same tool."""

    kind = "application/json"
    answer = json.dumps(
        {
            **{"id": "msg_1", "type": "message", "role": "assistant", "model": MODEL, "stop_reason": "tool_use", "stop_sequence": None},
            "content": [{"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "rm -rf /"}}],
            "usage": {"input_tokens": 120, "output_tokens": 8},
        }
    ).encode()


def serve(handler, context=None):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.bodies = []
    if context:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def run(postern, directory):
    """The events of standard output, and the exports that the collector got, each a message of OTLP."""
    authority = Authority(directory, "upstream", "Upstreams of the log suite")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*authority.issue("model", "/CN=model", ["DNS:api.anthropic.com"]))
    model, collector = serve(Model, context), serve(Answering)
    endpoint = f"http://127.0.0.1:{collector.server_address[1]}/v1/logs"
    gateway = GatewayProcess(postern, directory, keys={"OTEL_EXPORTER_OTLP_LOGS_ENDPOINT": endpoint})
    upstream = {"hosts": {"api.anthropic.com": f"127.0.0.1:{model.server_address[1]}"}, "allowAddresses": ["127.0.0.0/8"]}
    gateway.configure(POLICY, {"explicit": {"address": "127.0.0.1:0"}}, upstream)
    settings = json.loads(gateway.settings.read_text())
    settings["policy"]["workload"] = {"namespace": NAMESPACE, "pod": "coder-0", "node": "n1"}
    gateway.settings.write_text(json.dumps(settings))
    gateway.start()
    try:
        for _ in range(TURNS):
            ask(gateway, "https://api.anthropic.com/v1/messages")
        ask(gateway, "https://evil.example/")
        ask(gateway, "https://api.anthropic.com/v1/files")
    finally:
        gateway.stop()
    events = [json.loads(line) for line in gateway.events.read_text().splitlines()]
    return events, collector.bodies


def ask(gateway, url):
    body = json.dumps({"model": MODEL, "max_tokens": 16, "messages": [{"role": "user", "content": "hello"}]})
    headers = ["content-type: application/json", "anthropic-version: 2023-06-01", "x-api-key: k", f"x-postern-session: {SESSION}"]
    fields = [part for header in headers for part in ("--header", header)]
    options = ["--silent", "--proxy", f"http://{gateway.address}", "--cacert", gateway.directory / "ca/ca-cert.pem"]
    tried("curl", *options, *fields, "--data", body, url)
