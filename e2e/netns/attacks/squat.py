"""Holds the gateway's ports on every address, answers in its place, and tells what it heard: squat.py DNS PORT..."""

import json
import selectors
import socket
import sys

from tried import tried

# A datagram's answer must come from the address that it went to; connections are taken on every address.
LOOPBACKS = {"127.0.0.1": socket.AF_INET, "::1": socket.AF_INET6}
EVERYWHERE = {"0.0.0.0": socket.AF_INET, "::": socket.AF_INET6}
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged"


def hold(ready, family, kind, to):
    kept = socket.socket(family, kind)
    kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if family == socket.AF_INET6:
        kept.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    kept.bind(to)
    if kind == socket.SOCK_STREAM:
        kept.listen()
    ready.register(kept, selectors.EVENT_READ)


def forge(kept):
    """Answers whoever speaks; what came of it."""
    if kept.type == socket.SOCK_DGRAM:
        question, sender = kept.recvfrom(4096)
        answered = tried(kept.sendto, question[:2] + b"\x81\x83" + question[4:], sender)
        return ["DNS", "refused" if answered == "EPERM" else "answered"]
    connection, _ = kept.accept()
    with connection:
        connection.settimeout(1)
        answer = tried(connection.recv, 4096)
        connection.sendall(ANSWER)
    return ["TCP", answer]


dns, *ports = [int(port) for port in sys.argv[1:]]
heard, held = [], {}
with selectors.DefaultSelector() as ready:
    for address, family in EVERYWHERE.items():
        for port in ports:
            held[f"{address} {port}"] = tried(hold, ready, family, socket.SOCK_STREAM, (address, port))
    for address, family in LOOPBACKS.items():
        held[f"{address} {dns}/udp"] = tried(hold, ready, family, socket.SOCK_DGRAM, (address, dns))
    print(json.dumps(held), flush=True)
    ready.register(sys.stdin, selectors.EVENT_READ)
    # What was said before the input's end is answered before it.
    while (chosen := [key.fileobj for key, _ in ready.select()]) != [sys.stdin]:
        heard += [forge(kept) for kept in chosen if kept is not sys.stdin]
print(json.dumps(heard))
