"""Waits for somebody outside and hands out a secret: listen.py tcp|udp FAMILY PORT. It ends when its input does."""

import json
import selectors
import socket
import sys

from tried import FAMILIES

KINDS = {"udp": socket.SOCK_DGRAM, "tcp": socket.SOCK_STREAM}
ANY = {"4": "0.0.0.0", "6": "::"}
SECRET = b"secret" * 8


def serve(kept, kind):
    if kind == "udp":
        _, sender = kept.recvfrom(64)
        kept.sendto(SECRET, sender)
    else:
        connection, _ = kept.accept()
        with connection:
            connection.sendall(SECRET)


kind, family, port = sys.argv[1:]
with socket.socket(FAMILIES[family], KINDS[kind]) as kept, selectors.DefaultSelector() as ready:
    kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    kept.bind((ANY[family], int(port)))
    if kind == "tcp":
        kept.listen()
    print(json.dumps("listening"), flush=True)
    ready.register(kept, selectors.EVENT_READ)
    ready.register(sys.stdin, selectors.EVENT_READ)
    served = 0
    while not any(key.fileobj is sys.stdin for key, _ in ready.select()):
        serve(kept, kind)
        served += 1
    print(json.dumps(served))
