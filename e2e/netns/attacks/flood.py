"""Keeps trying to get anything out until its input ends: flood.py PORT ADDRESS..."""

import json
import selectors
import socket
import sys

from tried import tried


def datagram(family, to):
    with socket.socket(family, socket.SOCK_DGRAM) as datagrams:
        datagrams.sendto(b"secret", to)


def opening(family, to):
    with socket.socket(family, socket.SOCK_STREAM) as connection:
        connection.setblocking(False)
        connection.connect(to)


port, *addresses = sys.argv[1:]
seen = {}
with selectors.DefaultSelector() as ended:
    ended.register(sys.stdin, selectors.EVENT_READ)
    print(json.dumps("begun"), flush=True)
    while not ended.select(0):
        for address in addresses:
            family = socket.AF_INET6 if ":" in address else socket.AF_INET
            for act in (datagram, opening):
                answer = f"{act.__name__}: {tried(act, family, (address, int(port)))}"
                seen[answer] = seen.get(answer, 0) + 1
print(json.dumps(seen))
