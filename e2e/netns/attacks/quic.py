"""A client that prefers QUIC: how soon it learns that it must use TCP: quic.py FAMILY ADDRESS."""

import json
import os
import socket
import sys
import time

from tried import FAMILIES, PATIENCE, destination, tried

# A long header with version 1 and padding to the least size of an Initial (RFC 9000 sections 14.1 and 17.2).
INITIAL = b"\xc0\x00\x00\x00\x01\x08" + os.urandom(8) + b"\x00\x00\x44\xd0" + bytes(1182)


def initial(family, to):
    with socket.socket(FAMILIES[family], socket.SOCK_DGRAM) as datagrams:
        datagrams.settimeout(PATIENCE)
        datagrams.connect(to)
        datagrams.send(INITIAL)
        return datagrams.recv(2048)


family, address = sys.argv[1:]
started = time.monotonic()
answer = tried(initial, family, destination(family, address, 443))
print(json.dumps({"answer": answer, "seconds": time.monotonic() - started}))
