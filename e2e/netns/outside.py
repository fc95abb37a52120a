"""The servers outside the pod: the upstream's services, its resolver, and the accomplice's port."""

import socket
import ssl
import struct
import threading

from topology import ACCOMPLICE, BARE, FAMILIES, KINDS, PATIENCE, UPSTREAM

UPSTREAM_CA = "Stand-in Upstream CA"
INTACT = "as the upstream wrote it"
BARE_PORT, ACCOMPLICE_PORT = 7000, 6000
GREETING = "SSH-2.0-upstream\r\n"
SSL_REQUEST = bytes.fromhex("0000000804d2162f")


class Outside:
    """HTTPS, HTTP, an ssh-like and a PostgreSQL-like service, one without a name, and the gateway's resolver; at the
    accomplice one port that greets."""

    def __init__(self, topology, certificate, key):
        self.requests, self.questions, self.unnamed = [], [], []
        self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.tls.load_cert_chain(certificate, key)
        services = {443: self._https, 80: self._http, 22: greet, 5432: postgres}
        with topology.inside("upstream"):
            for family in (4, 6):
                for port, service in services.items():
                    serve(listener(UPSTREAM[family], port), service)
                for port in (BARE_PORT, 443, 7443):
                    serve(listener(BARE[family], port), self._bare)
                answer(datagrams(UPSTREAM[family], 53), self._resolve)
        with topology.inside("accomplice"):
            for family in (4, 6):
                serve(listener(ACCOMPLICE[family], ACCOMPLICE_PORT), greet)

    def _https(self, connection):
        with self.tls.wrap_socket(connection, server_side=True) as secured:
            self._http(secured, "https")

    def _http(self, connection, scheme="http"):
        while head := read_head(connection):
            first, *fields = head.split("\r\n")
            named = dict(field.lower().split(": ", 1) for field in fields if ": " in field)
            self.requests.append({"scheme": scheme, "line": first} | named)
            connection.sendall(f"HTTP/1.1 200 OK\r\nContent-Length: {len(INTACT)}\r\n\r\n{INTACT}".encode())

    def _bare(self, connection):
        """Speaks first and keeps what it hears."""
        connection.sendall(b"bare\r\n")
        while data := connection.recv(4096):
            self.unnamed.append(data)
            connection.sendall(data)

    def _resolve(self, question):
        """A and AAAA of what stands here; nothing for any other type (RFC 1035 section 4)."""
        name, at = read_name(question, 12)
        self.questions.append(name)
        kind, asked = int.from_bytes(question[at : at + 2], "big"), question[12 : at + 4]
        address = {1: packed(4), 28: packed(6)}.get(kind, b"")
        head = question[:2] + b"\x81\x80" + struct.pack("!HHHH", 1, bool(address), 0, 0)
        record = b"\xc0\x0c" + struct.pack("!HHIH", kind, 1, 5, len(address)) + address
        return head + asked + (record if address else b"")


def packed(family):
    return socket.inet_pton(FAMILIES[family], UPSTREAM[family])


def greet(connection):
    """The server speaks first, as ssh's does, then repeats one line."""
    connection.sendall(GREETING.encode())
    connection.sendall(connection.recv(4096))


def postgres(connection):
    """Declines TLS, then says that the startup message was taken (PostgreSQL protocol 3.0, message formats)."""
    if connection.recv(4096) == SSL_REQUEST:
        connection.sendall(b"N")
        connection.recv(4096)
    connection.sendall(b"R\x00\x00\x00\x08\x00\x00\x00\x00")


def listener(address, port):
    kept = socket.socket(family_of(address), KINDS["tcp"])
    kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if ":" in address:
        kept.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    kept.bind((address, port))
    kept.listen(512)
    return kept


def datagrams(address, port):
    kept = socket.socket(family_of(address), KINDS["udp"])
    kept.bind((address, port))
    return kept


def family_of(address):
    return FAMILIES[6 if ":" in address else 4]


def serve(kept, service):
    """Serves each connection of a listener in a thread of its own, until the run ends."""

    def one(connection):
        with connection:
            connection.settimeout(PATIENCE)
            try:
                service(connection)
            except OSError:
                return

    def accept():
        while True:
            connection, _ = kept.accept()
            threading.Thread(target=one, args=[connection], daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()


def answer(kept, reply):
    def loop():
        while True:
            question, sender = kept.recvfrom(4096)
            kept.sendto(reply(question), sender)

    threading.Thread(target=loop, daemon=True).start()


def read_head(connection):
    head = b""
    while b"\r\n\r\n" not in head:
        data = connection.recv(4096)
        if not data:
            return ""
        head += data
    return head.decode().split("\r\n\r\n")[0]


def read_name(message, at):
    """The name at an offset of a DNS message, and where it ends."""
    labels = []
    while length := message[at]:
        labels.append(message[at + 1 : at + 1 + length].decode(errors="replace").lower())
        at += 1 + length
    return ".".join(labels), at + 1
