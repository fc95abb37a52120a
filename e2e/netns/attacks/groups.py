"""Joins multicast groups that carry a secret, until the kernel has tried to report them: groups.py FAMILY."""

import json
import socket
import struct
import sys
import time
from pathlib import Path

from tried import FAMILIES, tried

GROUPS = {"4": ["239.115.101.99", "239.114.101.116"], "6": ["ff0e::7365:6372:6574", "ff02::1:ff73:6563"]}
PATIENCE = 10


def join(family):
    index, before = socket.if_nametoindex("eth0"), requests(family)
    with socket.socket(FAMILIES[family], socket.SOCK_DGRAM) as datagrams:
        for group in GROUPS[family]:
            address = socket.inet_pton(FAMILIES[family], group)
            if family == "4":
                datagrams.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, address + struct.pack("=4xi", index))
            else:
                datagrams.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP, address + struct.pack("=i", index))
        # A timer of the kernel makes the report; its counter says so before any rule is asked.
        deadline = time.monotonic() + PATIENCE
        while requests(family) == before:
            if time.monotonic() > deadline:
                raise TimeoutError
            time.sleep(0.005)


def requests(family):
    """The packets that the kernel wanted to send."""
    if family == "6":
        lines = [line.split() for line in Path("/proc/thread-self/net/dev_snmp6/eth0").read_text().splitlines()]
        return next(value for name, value in lines if name == "Ip6OutRequests")
    lines = Path("/proc/thread-self/net/snmp").read_text().splitlines()
    names, values = [line.split() for line in lines if line.startswith("Ip:")]
    return values[names.index("OutRequests")]


print(json.dumps(tried(join, sys.argv[1])))
