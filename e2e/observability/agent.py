"""The agent in the pod: what it asks for over the redirect, or by the proxy of another gateway."""

import http.client
import json
import os
import socket
import ssl
import struct
from functools import cached_property

from namespaces import inside
from pod import BESIDE, NAME, NAMESPACES

# No packet gets there: the redirect brings questions and connections to the gateway.
RESOLVER, ANYWHERE = "192.0.2.53", "203.0.113.7"
PATIENCE = 10
PROMPT = "canary-of-a-prompt"
MODEL = "claude-sonnet-4-5"
TOOLS = [
    {"name": "Bash", "description": "Runs a command.", "input_schema": {"type": "object", "properties": {"command": {"type": "string"}}}},
    {"type": "web_search_20250305", "name": "web_search"},
]  # fmt: skip


class Agent:
    """Trusts the roots that its gateway wrote; `proxy` is an explicit one, where it has no redirect."""

    def __init__(self, roots, proxy=None):
        self.roots, self.proxy = roots, proxy

    @cached_property
    def trust(self):
        return ssl.create_default_context(cafile=self.roots)

    def chat(self, parent=None, padding=0):
        """Status and text of a turn with two calls of Bash; `parent` is the span it belongs to."""
        output = {"role": "user", "content": PROMPT + " " * padding}
        asked = {"model": MODEL, "max_tokens": 64, "stream": True, "messages": [output], "tools": TOOLS}
        headers = {"content-type": "application/json", "anthropic-version": "2023-06-01", "x-api-key": "postern:anthropic"}
        if parent:
            headers["traceparent"] = parent
        return self.ask("api.anthropic.com", "POST", "/v1/messages", json.dumps(asked), headers)

    def ask(self, host, method, path, body=None, headers=None):
        """Status and text of an exchange."""
        connection = http.client.HTTPSConnection(host, timeout=PATIENCE)
        connection.sock = self.trust.wrap_socket(self.reach(host), server_hostname=host)
        connection.request(method, path, body, headers or {})
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer.status, text

    def reach(self, host):
        """A TCP connection to a name as the gateway has it."""
        if self.proxy is None:
            address = resolve(host)[0]
            with inside(NAMESPACES[NAME]):
                return socket.create_connection((address, 443), timeout=PATIENCE)
        with inside(NAMESPACES[BESIDE]):
            reached = socket.create_connection(self.proxy, timeout=PATIENCE)
        reached.sendall(f"CONNECT {host}:443 HTTP/1.1\r\nHost: {host}:443\r\n\r\n".encode())
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            if not (more := reached.recv(1)):
                raise ConnectionError(f"the proxy hung up on CONNECT {host}")
            head += more
        return reached

    def distrusts(self, host):
        """Whether a client without Postern's root sees no server that it trusts, and says so to it."""
        try:
            ssl.create_default_context().wrap_socket(self.reach(host), server_hostname=host)
        except ssl.SSLCertVerificationError:
            return True
        return False

    def is_reset(self):
        """Whether a connection that names no host comes to nothing."""
        with inside(NAMESPACES[NAME]):
            connection = socket.create_connection((ANYWHERE, 443), timeout=PATIENCE)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        try:
            context.wrap_socket(connection)
        except OSError:
            return True
        return False


def resolve(name):
    """The addresses of a name, asked of a resolver that the redirect stands before (RFC 1035 section 4)."""
    labels = b"".join(bytes([len(label)]) + label.encode() for label in name.split("."))
    question = os.urandom(2) + struct.pack("!HHHHH", 0x100, 1, 0, 0, 0) + labels + struct.pack("!BHH", 0, 1, 1)
    with inside(NAMESPACES[NAME]), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        asking.settimeout(PATIENCE)
        asking.sendto(question, (RESOLVER, 53))
        answer = asking.recv(512)
    return [socket.inet_ntoa(answer[-4:])] if int.from_bytes(answer[6:8], "big") else []
