"""What stands outside the pod: the upstream's services, its resolver, and whatever the accomplice holds open."""

import socket
import ssl
import threading

from topology import ACCOMPLICE, BARE, UPSTREAM

UPSTREAM_CA = "Stand-in Upstream CA"
INTACT = "as the upstream wrote it"
BARE_PORT, ACCOMPLICE_PORT = 7000, 6000
GREETING = "SSH-2.0-upstream\r\n"
SSL_REQUEST = bytes.fromhex("0000000804d2162f")
FAMILIES = {4: socket.AF_INET, 6: socket.AF_INET6}
PATIENCE = 10


class Outside:
    """HTTPS, HTTP, an ssh-like and a PostgreSQL-like service, one without a name, and the resolver that the gateway asks;
    and one port where the accomplice greets."""

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
        kind = int.from_bytes(question[at : at + 2], "big")
        self.questions.append(name)
        address = {1: socket.inet_pton(socket.AF_INET, UPSTREAM[4]), 28: socket.inet_pton(socket.AF_INET6, UPSTREAM[6])}.get(kind)
        head = question[:2] + b"\x81\x80\x00\x01" + (b"\x00\x01" if address else b"\x00\x00") + b"\x00\x00\x00\x00"
        record = b"\xc0\x0c" + question[at : at + 4] + b"\x00\x00\x00\x05" + len(address).to_bytes(2, "big") + address if address else b""
        return head + question[12 : at + 4] + record


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
    kept = socket.socket(FAMILIES[6 if ":" in address else 4], socket.SOCK_STREAM)
    kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if ":" in address:
        kept.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    kept.bind((address, port))
    kept.listen(512)
    return kept


def datagrams(address, port):
    kept = socket.socket(FAMILIES[6 if ":" in address else 4], socket.SOCK_DGRAM)
    kept.bind((address, port))
    return kept


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
