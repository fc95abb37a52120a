"""Asks for what would lead packets past the rules, and says what the kernel answers."""

import json
import socket

from tried import tried

SO_MARK, SO_PRIORITY, IP_TRANSPARENT, IPV6_TRANSPARENT, IP_FREEBIND = 36, 12, 19, 75, 15
LOOSE_SOURCE_ROUTE = bytes([131, 7, 4, 10, 77, 0, 66, 0])
ETH_P_ALL = 3


def option(family, level, name, value):
    with socket.socket(family, socket.SOCK_STREAM) as connection:
        connection.setsockopt(level, name, value)


def opened(family, kind, protocol):
    socket.socket(family, kind, protocol).close()


INET, INET6 = socket.AF_INET, socket.AF_INET6
seen = {
    "loose source route": tried(option, INET, socket.IPPROTO_IP, socket.IP_OPTIONS, LOOSE_SOURCE_ROUTE),
    "SO_MARK": tried(option, INET, socket.SOL_SOCKET, SO_MARK, 0x1337),
    "IP_TRANSPARENT": tried(option, INET, socket.IPPROTO_IP, IP_TRANSPARENT, 1),
    "IPV6_TRANSPARENT": tried(option, INET6, socket.IPPROTO_IPV6, IPV6_TRANSPARENT, 1),
    "raw ICMP": tried(opened, INET, socket.SOCK_RAW, socket.IPPROTO_ICMP),
    "raw IP": tried(opened, INET, socket.SOCK_RAW, socket.IPPROTO_RAW),
    "raw IPv6": tried(opened, INET6, socket.SOCK_RAW, socket.IPPROTO_RAW),
    "AF_PACKET": tried(opened, socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL)),
    "AF_PACKET, cooked": tried(opened, socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(ETH_P_ALL)),
}
print(json.dumps(seen))
