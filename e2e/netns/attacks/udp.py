"""Sends one datagram and waits for its refusal: udp.py KIND FAMILY ADDRESS PORT."""

import json
import os
import socket
import struct
import sys

from tried import DEVICE, FAMILIES, PATIENCE, destination, tried

UDPLITE, IP_PKTINFO, IP_UNICAST_IF, IPV6_UNICAST_IF, IPV6_RTHDR = 136, 8, 50, 76, 57
SECRET, LARGE = b"secret" * 8, 200


def send(kind, family, to):
    protocol = UDPLITE if kind == "udplite" else 0
    with socket.socket(FAMILIES[family], socket.SOCK_DGRAM, protocol) as datagrams:
        datagrams.settimeout(PATIENCE)
        ancillary = prepare(datagrams, kind, family, to)
        if ancillary:
            datagrams.sendmsg([SECRET], ancillary, 0, to)
        else:
            datagrams.connect(to)
            datagrams.send(SECRET * LARGE if kind == "large" else SECRET)
        # Where the refusal is an ICMP message, it is the next thing that is read.
        return datagrams.recv(64)


def prepare(datagrams, kind, family, to):
    """Sets what the kind asks for; ancillary data for sendmsg, or nothing."""
    index = socket.if_nametoindex("eth0")
    if kind == "broadcast":
        datagrams.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
    if kind == "device":
        datagrams.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, DEVICE)
    if kind == "unicast-if" and family == "4":
        datagrams.setsockopt(socket.IPPROTO_IP, IP_UNICAST_IF, struct.pack("!I", index))
    if kind == "unicast-if" and family == "6":
        datagrams.setsockopt(socket.IPPROTO_IPV6, IPV6_UNICAST_IF, struct.pack("!I", index))
    if kind == "pktinfo" and family == "4":
        return [(socket.IPPROTO_IP, IP_PKTINFO, struct.pack("i8x", index))]
    if kind == "pktinfo" and family == "6":
        return [(socket.IPPROTO_IPV6, socket.IPV6_PKTINFO, struct.pack("16si", b"", index))]
    if kind == "routing":
        datagrams.setsockopt(socket.IPPROTO_IPV6, IPV6_RTHDR, segments(sys.argv[5]))
    return []


def segments(via):
    """A segment routing header (RFC 8754 section 2) with one stop before the destination."""
    stops = bytes(16) + socket.inet_pton(socket.AF_INET6, via)
    return struct.pack("!BBBBBBH", 0, len(stops) // 8, 4, 1, 1, 0, 0) + stops


kind, family, address, port = sys.argv[1:5]
if kind == "neighbour":
    # Each user asks for another: the kernel asks but once for one that does not answer.
    address = address.format(115 + bool(os.getuid()))
print(json.dumps(tried(send, kind, family, destination(family, address, int(port)))))
