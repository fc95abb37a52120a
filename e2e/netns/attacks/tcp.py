"""Dials every port and sends a line: tcp.py plain|mptcp|fast-open|device FAMILY ADDRESS PORT..."""

import json
import socket
import sys

from tried import DEVICE, FAMILIES, PATIENCE, destination, tried

MPTCP = 262
LINE = b"\x00secret\r\n"


def dial(kind, family, to):
    protocol = MPTCP if kind == "mptcp" else 0
    with socket.socket(FAMILIES[family], socket.SOCK_STREAM, protocol) as connection:
        connection.settimeout(PATIENCE)
        if kind == "device":
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, DEVICE)
        if kind == "fast-open":
            connection.sendto(LINE, socket.MSG_FASTOPEN, to)
        else:
            connection.connect(to)
            connection.sendall(LINE)
        return connection.recv(64)


kind, family, address, *ports = sys.argv[1:]
print(json.dumps({port: tried(dial, kind, family, destination(family, address, int(port))) for port in ports}))
