"""Sends an echo request with a payload through a ping socket: ping.py FAMILY ADDRESS."""

import json
import socket
import sys

from tried import FAMILIES, destination, tried

PROTOCOLS = {"4": (socket.IPPROTO_ICMP, 8), "6": (socket.IPPROTO_ICMPV6, 128)}


def ping(family, to):
    protocol, request = PROTOCOLS[family]
    with socket.socket(FAMILIES[family], socket.SOCK_DGRAM, protocol) as echo:
        echo.sendto(bytes([request, 0, 0, 0, 0, 1, 0, 1]) + b"secret", to)


family, address = sys.argv[1:]
print(json.dumps(tried(ping, family, destination(family, address, 0))))
