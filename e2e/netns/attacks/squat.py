"""Holds the gateway's ports, answers in its place, and tells what it heard: squat.py DNS PORT..."""

import json
import selectors
import socket
import sys

from tried import tried

ADDRESSES = {"127.0.0.1": socket.AF_INET, "::1": socket.AF_INET6, "0.0.0.0": socket.AF_INET, "::": socket.AF_INET6}
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged"


def hold(ready, address, port, kind):
    kept = socket.socket(ADDRESSES[address], kind)
    kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if ADDRESSES[address] == socket.AF_INET6:
        kept.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    kept.bind((address, port))
    if kind == socket.SOCK_STREAM:
        kept.listen()
    ready.register(kept, selectors.EVENT_READ)


def forge(kept):
    """Answers whoever speaks; what they said."""
    if kept.type == socket.SOCK_DGRAM:
        question, sender = kept.recvfrom(4096)
        # The sender does not learn that the answer was dropped.
        tried(kept.sendto, question[:2] + b"\x81\x83" + question[4:], sender)
        return "dns"
    connection, _ = kept.accept()
    with connection:
        connection.settimeout(1)
        said = tried(connection.recv, 4096)
        connection.sendall(ANSWER)
    return said


dns, *ports = [int(port) for port in sys.argv[1:]]
heard, held = [], {}
with selectors.DefaultSelector() as ready:
    for address in ADDRESSES:
        for port in ports:
            held[f"{address}:{port}"] = tried(hold, ready, address, port, socket.SOCK_STREAM)
        held[f"{address}:{dns}/udp"] = tried(hold, ready, address, dns, socket.SOCK_DGRAM)
    print(json.dumps(held), flush=True)
    ready.register(sys.stdin, selectors.EVENT_READ)
    while sys.stdin not in (chosen := [key.fileobj for key, _ in ready.select()]):
        heard += [tried(forge, kept) for kept in chosen]
print(json.dumps(heard))
