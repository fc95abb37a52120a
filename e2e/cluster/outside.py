"""The servers outside the cluster: every provider, the cluster's resolver, and addresses that nobody may reach.

python3 outside.py CERTIFICATE KEY LOG writes a JSON line for whatever reaches it.
"""

import json
import socket
import ssl
import struct
import sys
import threading
import time

import answers
from network import ELSEWHERE, METADATA, RESOLVER, UPSTREAM

INTACT = "as the upstream wrote it"
PATIENCE = 30
# Names of the cluster's own are not known here: it has no other resolver.
OWN = (".cluster.local",)
KINDS = {1: (socket.AF_INET, UPSTREAM[4]), 28: (socket.AF_INET6, UPSTREAM[6])}


class Log:
    """Lines of JSON, whole ones."""

    def __init__(self, path):
        self.file, self.lock = open(path, "a", buffering=1), threading.Lock()

    def __call__(self, **told):
        with self.lock:
            self.file.write(json.dumps({"time": time.time()} | told) + "\n")


class Outside:
    def __init__(self, certificate, key, log):
        self.log, self.tls = Log(log), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.tls.load_cert_chain(certificate, key)
        for address in UPSTREAM.values():
            self.listen(address, 443, self.https)
            self.listen(address, 80, self.http)
        # Whoever gets here has got out.
        for address in (*ELSEWHERE.values(), METADATA):
            for port in (80, 443):
                self.listen(address, port, self.reached)
        for address in (*UPSTREAM.values(), *ELSEWHERE.values()):
            for port in (53, 443, 9999):
                self.answer(address, port, "datagram", lambda data: data)
        self.answer(RESOLVER, 53, "question", resolve)

    def listen(self, address, port, serve):
        kept = socket.create_server((address, port), family=family(address), backlog=512)

        def one(connection, peer):
            with connection:
                connection.settimeout(PATIENCE)
                try:
                    serve(connection, {"address": address, "port": port, "peer": peer[0]})
                except OSError:
                    return

        def accept():
            while True:
                threading.Thread(target=one, args=kept.accept(), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()

    def answer(self, address, port, kind, reply):
        kept = socket.socket(family(address), socket.SOCK_DGRAM)
        kept.bind((address, port))

        def loop():
            while True:
                data, peer = kept.recvfrom(4096)
                output = read_name(data, 12)[0] if kind == "question" else len(data)
                self.log(kind=kind, address=address, port=port, peer=peer[0], said=output)
                kept.sendto(reply(data), peer)

        threading.Thread(target=loop, daemon=True).start()

    def https(self, connection, where):
        with self.tls.wrap_socket(connection, server_side=True) as secured:
            self.http(secured, where)

    def http(self, connection, where):
        file = connection.makefile("rb")
        while first := file.readline().decode().strip():
            headers = {}
            while line := file.readline().decode().strip():
                name, _, value = line.partition(":")
                headers[name.lower()] = value.strip()
            body = file.read(int(headers.get("content-length", 0)))
            self.log(kind="request", line=first, headers=headers, body=body.decode(errors="replace")[:2000], **where)
            method, path, _ = first.split()
            connection.sendall(answers.answer(path, body) if method == "POST" else whole(INTACT))

    def reached(self, connection, where):
        self.log(kind="reached", **where)
        connection.sendall(whole("nobody may read this"))


def whole(text):
    return f"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {len(text)}\r\n\r\n{text}".encode()


def resolve(question):
    """A and AAAA of every name but the cluster's own (RFC 1035 section 4)."""
    name, at = read_name(question, 12)
    kind, asked = int.from_bytes(question[at : at + 2], "big"), question[12 : at + 4]
    known = not name.endswith(OWN)
    of_family, text = KINDS.get(kind, (None, None))
    address = socket.inet_pton(of_family, text) if text and known else b""
    head = question[:2] + (b"\x81\x80" if known else b"\x81\x83") + struct.pack("!HHHH", 1, bool(address), 0, 0)
    return head + asked + (b"\xc0\x0c" + struct.pack("!HHIH", kind, 1, 5, len(address)) + address if address else b"")


def read_name(message, at):
    """The name at an offset of a DNS message, and where it ends."""
    labels = []
    while length := message[at]:
        labels.append(message[at + 1 : at + 1 + length].decode(errors="replace").lower())
        at += 1 + length
    return ".".join(labels), at + 1


def family(address):
    return socket.AF_INET6 if ":" in address else socket.AF_INET


if __name__ == "__main__":
    Outside(*sys.argv[1:])
    print("ready", flush=True)
    threading.Event().wait()
