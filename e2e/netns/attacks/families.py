"""Tries every socket family in every type, and what a user namespace gives: families.py UID ADDRESS."""

import ctypes
import errno
import json
import os
import socket
import sys
from pathlib import Path

from tried import tried

# By number, from 1 on (linux/socket.h).
NAMES = """
UNIX INET AX25 IPX APPLETALK NETROM BRIDGE ATMPVC X25 INET6 ROSE DECnet NETBEUI SECURITY KEY NETLINK PACKET ASH ECONET
ATMSVC RDS SNA IRDA PPPOX WANPIPE LLC IB MPLS CAN TIPC BLUETOOTH IUCV RXRPC ISDN PHONET IEEE802154 CAIF ALG NFC VSOCK
KCM QIPCRTR SMC XDP MCTP
""".split()
TYPES = {1: "STREAM", 2: "DGRAM", 3: "RAW", 5: "SEQPACKET"}
# What goes over IP but is neither TCP nor UDP.
PROTOCOLS = {"SCTP": 132, "DCCP": 33, "L2TP": 115, "UDP-Lite": 136, "MPTCP": 262}
CLONE_NEWUSER = 0x10000000


def opened(*arguments):
    socket.socket(*arguments).close()


def opens(*arguments):
    return tried(opened, *arguments) == "done"


def in_user_namespace(uid, act, *arguments):
    """Tries the same in a user namespace, as `uid`, in the pod's network."""
    reader, writer = os.pipe()
    if os.fork() == 0:
        own = os.getuid()
        libc = ctypes.CDLL(None, use_errno=True)
        failed = libc.unshare(CLONE_NEWUSER)
        answer = errno.errorcode[ctypes.get_errno()] if failed else tried(act_as, uid, own, act, *arguments)
        os.write(writer, answer.encode())
        os._exit(0)
    os.wait()
    return os.read(reader, 64).decode()


def act_as(uid, own, act, *arguments):
    # Root without SETFCAP may map no user of its own; it acts as nobody then.
    mapped = tried(Path("/proc/self/uid_map").write_text, f"{uid} {own} 1")
    return f"{tried(act, *arguments)}, mapped: {mapped}"


def send(address):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
        datagrams.sendto(b"secret", (address, 443))


seen = {name: [TYPES[kind] for kind in TYPES if opens(family, kind, 0)] for family, name in enumerate(NAMES, 1)}
for name, number in PROTOCOLS.items():
    seen[name] = [TYPES[kind] for kind in TYPES if opens(socket.AF_INET, kind, number)]
raw = (socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
packet = (socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
uid, address = sys.argv[1:]
user_namespace = {
    "raw": in_user_namespace(0, opened, *raw),
    "packet": in_user_namespace(0, opened, *packet),
    "the gateway's UID": in_user_namespace(uid, send, address),
}
print(json.dumps({"opens": {name: kinds for name, kinds in seen.items() if kinds}, "user namespace": user_namespace}))
