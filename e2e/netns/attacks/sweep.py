"""Sends to one destination from every source port: sweep.py udp|tcp|mptcp FAMILY ADDRESS PORT FIRST LAST."""

import json
import socket
import struct
import sys

from tried import FAMILIES, destination, tried

QUESTION = b"\x51\x51\x01\x00\x00\x01" + bytes(6) + b"\x05swept\x04evil\x07example\x00" + struct.pack("!HH", 16, 1)
KINDS = {"udp": socket.SOCK_DGRAM, "tcp": socket.SOCK_STREAM, "mptcp": socket.SOCK_STREAM}
MPTCP = 262
ANY = {"4": "0.0.0.0", "6": "::"}


def attempt(kind, family, to, port):
    with socket.socket(FAMILIES[family], KINDS[kind], MPTCP if kind == "mptcp" else 0) as swept:
        swept.setblocking(False)
        swept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        swept.bind((ANY[family], port))
        swept.connect(to)
        if kind == "udp":
            swept.send(QUESTION)


kind, family, address, port, first, last = sys.argv[1:]
to, seen = destination(family, address, int(port)), {}
for source in range(int(first), int(last) + 1):
    answer = tried(attempt, kind, family, to, source)
    seen[answer] = seen.get(answer, 0) + 1
print(json.dumps(seen))
