"""Parses the parts of Ethernet frames that are evidence."""

import ipaddress
from dataclasses import dataclass

ICMP, IGMP, TCP, UDP, ROUTING, ICMP6, HOP_BY_HOP, UDPLITE = 1, 2, 6, 17, 43, 58, 0, 136
# In the byte of TCP's flags (RFC 9293 section 3.1).
SYN = 0x02
# Not a number of IP's: an ARP packet.
ARP = -1
NAMES = {ICMP: "icmp", IGMP: "igmp", TCP: "tcp", UDP: "udp", ICMP6: "icmpv6", UDPLITE: "udplite", ARP: "arp"}
# Solicitation and advertisement (RFC 4861 sections 4.3 and 4.4).
NEIGHBOUR_DISCOVERY = {b"\x87", b"\x88"}
MLD_REPORTS = {131, 132, 143}


@dataclass(frozen=True)
class Frame:
    """One IP or ARP packet; ports are None where there are none, `payload` is what follows the addresses."""

    family: int
    protocol: int
    source: str
    destination: str
    payload: bytes

    @property
    def ports(self):
        if self.protocol not in (TCP, UDP, UDPLITE) or len(self.payload) < 4:
            return None, None
        return int.from_bytes(self.payload[:2], "big"), int.from_bytes(self.payload[2:4], "big")

    def asks_only(self, addresses):
        """Whether it is the discovery of a neighbour, and one of these; an agent could choose any other."""
        if self.protocol == ICMP6 and self.payload[:1] in NEIGHBOUR_DISCOVERY:
            return str(ipaddress.IPv6Address(self.payload[8:24])) in addresses
        return self.protocol == ARP and self.destination in addresses

    def reports_only(self, groups):
        """Whether it is a multicast report of these groups and no other, as the kernel makes for its own addresses."""
        if self.protocol != ICMP6 or not self.payload or self.payload[0] not in MLD_REPORTS:
            return False
        return all(group in groups for group in self._groups())

    def _groups(self):
        """RFC 2710 section 3 and RFC 3810 section 5.2 (records without sources)."""
        if self.payload[0] != 143:
            return [self.payload[8:24]]
        count = int.from_bytes(self.payload[6:8], "big")
        return [self.payload[12 + 20 * each : 28 + 20 * each] for each in range(count)]

    def __str__(self):
        source, destination = self.ports
        ports = f" {source}>{destination}" if source is not None else ""
        return f"{NAMES.get(self.protocol, self.protocol)} {self.source} > {self.destination}{ports}"


def parse(raw):
    """Parses the payload of an Ethernet frame; None if it is neither IP nor ARP."""
    kind, packet = raw[12:14], raw[14:]
    if kind == b"\x08\x06" and len(packet) >= 28:
        source, target = [str(ipaddress.IPv4Address(packet[at : at + 4])) for at in (14, 24)]
        return Frame(4, ARP, source, target, packet[28:])
    if kind == b"\x08\x00" and len(packet) >= 20:
        addresses = [str(ipaddress.IPv4Address(packet[at : at + 4])) for at in (12, 16)]
        return Frame(4, packet[9], *addresses, packet[(packet[0] & 15) * 4 :])
    if kind == b"\x86\xdd" and len(packet) >= 40:
        addresses = [str(ipaddress.IPv6Address(packet[at : at + 16])) for at in (8, 24)]
        protocol, payload = packet[6], packet[40:]
        while protocol in (HOP_BY_HOP, ROUTING) and len(payload) >= 8:
            protocol, payload = payload[0], payload[8 + 8 * payload[1] :]
        return Frame(6, protocol, *addresses, payload)
    return None


def solicited_node(address):
    """The group that IPv6 joins by itself for an address (RFC 4291 section 2.7.1)."""
    return bytes.fromhex("ff0200000000000000000001ff") + ipaddress.IPv6Address(address).packed[13:]
