"""Every frame that leaves the pod, seen on the wire outside; nothing waits for time to pass."""

import ipaddress
import os
import socket
import time
from pathlib import Path

import frames
from topology import ADDRESSES, HOSTS, POD, UPSTREAM

SOL_PACKET, PACKET_STATISTICS, PACKET_OUTGOING, ETH_P_ALL = 263, 6, 4, 3
SO_RCVBUFFORCE = 33
BUFFER = 256 << 20
MARKER_PORT = 9
PATIENCE = 60


class Capture:
    """Brackets what is done in the pod by markers, which only the gateway's UID may send."""

    def __init__(self, topology, uid):
        with topology.inside("wire"):
            self.packets = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
            self.packets.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, BUFFER)
            self.packets.bind(("pod", 0))
        self.marker = topology.socket("pod", 4, socket.SOCK_DGRAM, owner=uid)
        self.own_groups = {frames.solicited_node(address) for address in (POD[6], *link_locals(topology, "pod"))}
        known = [address for host in HOSTS for address in (*ADDRESSES[host], *link_locals(topology, host))]
        self.neighbours = set(known)
        self.packets.settimeout(0.2)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.packets.close()
        self.marker.close()

    def during(self, act, counts):
        """Returns the result of `act`, and the frames that left the pod meanwhile and satisfy `counts`."""
        self.upto_marker()
        given = act()
        left = [frame for frame in self.upto_marker() if counts(frame)]
        return given, left

    def upto_marker(self):
        """The frames that left the pod before a marker sent now."""
        nonce = b"postern-marker-" + os.urandom(12).hex().encode()
        self.marker.sendto(nonce, (UPSTREAM[4], MARKER_PORT))
        left, deadline = [], time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            frame = self._next()
            if frame and frame.payload.endswith(nonce):
                self._demand_all_seen()
                return left
            if frame and not self._is_machinery(frame):
                left.append(frame)
        raise RuntimeError("a marker of the gateway's UID did not leave the pod")

    def _next(self):
        try:
            raw, (_, _, kind, _, _) = self.packets.recvfrom(1 << 16)
        except TimeoutError:
            return None
        return None if kind == PACKET_OUTGOING else frames.parse(raw)

    def _is_machinery(self, frame):
        owned = frame.asks_only(self.neighbours) or frame.reports_only(self.own_groups)
        return owned or frame.payload[8:].startswith(b"postern-marker-")

    def _demand_all_seen(self):
        statistics = self.packets.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8)
        if int.from_bytes(statistics[4:], "little"):
            raise RuntimeError("the capture lost frames: it proves nothing")


def link_locals(topology, host):
    with topology.inside(host):
        lines = [line.split() for line in Path("/proc/thread-self/net/if_inet6").read_text().splitlines()]
    return [str(ipaddress.IPv6Address(int(number, 16))) for number, *_ in lines if number.startswith("fe80")]
