//! Compiles a plan's rules into nf_tables expressions, the same that `nft` makes of its text.

use std::collections::BTreeSet;
use std::net::IpAddr;

use super::expression::{Address, Meta, NftExpression, PayloadBase, Set, Tracking, VerdictCode};
use crate::redirect::chains::ZONE;
use crate::redirect::rule::{
    IcmpError, LOOPBACK, PacketMatch, PacketVerdict, PlannedRule, TableFamily, Transport,
};

/// NFPROTO_IPV4, NFPROTO_IPV6.
const IPV4: u8 = 2;
const IPV6: u8 = 10;
/// IPPROTO_ICMPV6.
const ICMPV6: u8 = 58;
/// IFNAMSIZ: devices are compared with all of their name, padded with NULs.
const DEVICE_LENGTH: usize = 16;
/// SYN in the byte of TCP's flags (RFC 9293, section 3.1).
const SYN: u8 = 0x02;
/// NFT_CT_STATE_BIT of invalid, established and related, IPS_DST_NAT, IP_CT_DIR_ORIGINAL and IP_CT_DIR_REPLY.
const INVALID: u32 = 1;
const ESTABLISHED: u32 = 2;
const RELATED: u32 = 4;
const DESTINATION_REWRITTEN: u32 = 1 << 5;
const ORIGINAL: u8 = 0;
const REPLY: u8 = 1;
/// RTN_LOCAL: the type of the machine's own addresses.
const LOCAL: u32 = 2;
/// NFT_REJECT_ICMPX_UNREACH with its codes, which mean the same in both families.
const ICMPX: u32 = 2;
const PORT_UNREACHABLE: u8 = 1;
const ADMIN_PROHIBITED: u8 = 3;

/// Compiles a rule for a table of this family.
pub(super) fn expressions(rule: &PlannedRule, table: TableFamily) -> Vec<NftExpression> {
    let mut steps = Steps { table, made: Vec::new(), network: None, transport: None };
    rule.matches.iter().for_each(|condition| steps.condition(condition));
    if rule.counted {
        steps.made.push(NftExpression::Counter);
    }
    steps.verdict(rule.verdict);
    steps.made
}

/// The expressions so far, and the family and transport that they have already checked.
struct Steps {
    table: TableFamily,
    made: Vec<NftExpression>,
    network: Option<u8>,
    transport: Option<u8>,
}

impl Steps {
    fn condition(&mut self, condition: &PacketMatch) {
        match condition {
            PacketMatch::Owner(uid) => self.meta(Meta::SocketUid, true, &uid.to_ne_bytes()),
            PacketMatch::OtherOwner(uid) => self.meta(Meta::SocketUid, false, &uid.to_ne_bytes()),
            PacketMatch::FromLoopback => self.meta(Meta::InputDevice, true, &device()),
            PacketMatch::ToLoopback => self.meta(Meta::OutputDevice, true, &device()),
            PacketMatch::ToElsewhere => self.meta(Meta::OutputDevice, false, &device()),
            PacketMatch::Ipv6 => self.network(IPV6),
            PacketMatch::FromForeignAddress => self.own(Address::Source, false),
            PacketMatch::ToOwnAddress => self.own(Address::Destination, true),
            PacketMatch::To(net) => self.destination(net.addr(), net.prefix_len(), true),
            PacketMatch::NotTo(address) => {
                let length = if address.is_ipv4() { 32 } else { 128 };
                self.destination(*address, length, false);
            }
            PacketMatch::Transport(transport) => self.transport(transport.number()),
            PacketMatch::NotTransport(transport) => {
                self.meta(Meta::TransportProtocol, false, &[transport.number()]);
            }
            PacketMatch::SourcePort(transport, ports) => self.port(*transport, 0, ports),
            PacketMatch::DestinationPort(transport, ports) => self.port(*transport, 2, ports),
            PacketMatch::Syn => self.syn(SYN),
            PacketMatch::NoSyn => self.syn(0),
            PacketMatch::Invalid => self.bits(Tracking::State, INVALID),
            PacketMatch::Established => self.bits(Tracking::State, ESTABLISHED),
            PacketMatch::EstablishedOrRelated => self.bits(Tracking::State, ESTABLISHED | RELATED),
            PacketMatch::DestinationRewritten => self.bits(Tracking::Status, DESTINATION_REWRITTEN),
            PacketMatch::Reply => self.direction(REPLY),
            PacketMatch::Original => self.direction(ORIGINAL),
            PacketMatch::Discovery(messages) => {
                self.network(IPV6);
                self.transport(ICMPV6);
                self.payload(PayloadBase::Transport, 0, 1);
                self.one_of(messages.iter().map(|message| vec![message.number()]).collect());
            }
        }
    }

    fn verdict(&mut self, verdict: PacketVerdict) {
        let reject = |code| NftExpression::Reject { kind: ICMPX, code };
        match verdict {
            PacketVerdict::Accept => self.made.push(NftExpression::Verdict(VerdictCode::Accept)),
            PacketVerdict::Drop => self.made.push(NftExpression::Verdict(VerdictCode::Drop)),
            PacketVerdict::Reject(IcmpError::PortUnreachable) => self.made.push(reject(PORT_UNREACHABLE)),
            PacketVerdict::Reject(IcmpError::AdminProhibited) => self.made.push(reject(ADMIN_PROHIBITED)),
            PacketVerdict::Redirect(port) => {
                self.made.extend([NftExpression::Load(port.to_be_bytes()), NftExpression::Redirect]);
            }
            PacketVerdict::TrackApart => {
                self.made.extend([NftExpression::Load(ZONE.to_ne_bytes()), NftExpression::TrackInZone]);
            }
        }
    }

    /// Checks the family, unless the table or an earlier expression has.
    fn network(&mut self, family: u8) {
        let known = self.network.replace(family) == Some(family);
        if self.table == TableFamily::Inet && !known {
            self.meta(Meta::NetworkProtocol, true, &[family]);
        }
    }

    /// Checks the transport, unless an earlier expression has: ports and types mean nothing without it.
    fn transport(&mut self, protocol: u8) {
        if self.transport.replace(protocol) != Some(protocol) {
            self.meta(Meta::TransportProtocol, true, &[protocol]);
        }
    }

    /// Compares the bytes of the destination that a prefix covers; prefixes end at a byte.
    fn destination(&mut self, address: IpAddr, prefix: u8, equal: bool) {
        // The offset of the destination in the header: RFC 791, section 3.1; RFC 8200, section 3.
        let (family, offset, bytes) = match address {
            IpAddr::V4(address) => (IPV4, 16, address.octets().to_vec()),
            IpAddr::V6(address) => (IPV6, 24, address.octets().to_vec()),
        };
        self.network(family);
        let length = prefix / 8;
        self.payload(PayloadBase::Network, offset, length.into());
        self.compare(equal, bytes.get(..length.into()).unwrap_or(&bytes));
    }

    /// Compares the SYN bit of TCP's flags.
    fn syn(&mut self, is: u8) {
        self.transport(Transport::Tcp.number());
        // The flags are byte 13 of the header. Without the mask, a SYN with an ACK would not match.
        self.payload(PayloadBase::Transport, 13, 1);
        self.made.push(NftExpression::Mask(vec![SYN]));
        self.compare(true, &[is]);
    }

    fn port(&mut self, transport: Transport, offset: u32, ports: &BTreeSet<u16>) {
        self.transport(transport.number());
        self.payload(PayloadBase::Transport, offset, 2);
        self.one_of(ports.iter().map(|port| port.to_be_bytes().to_vec()).collect());
    }

    /// A set; of one element a comparison.
    fn one_of(&mut self, elements: BTreeSet<Vec<u8>>) {
        match elements.first() {
            Some(only) if elements.len() == 1 => self.compare(true, &only.clone()),
            _ => self.made.push(NftExpression::Lookup(Set::Elements(elements))),
        }
    }

    /// Checks whether any of these bits is set, in the machine's byte order.
    fn bits(&mut self, key: Tracking, mask: u32) {
        self.made.push(NftExpression::Tracking(key));
        self.made.push(NftExpression::Mask(mask.to_ne_bytes().to_vec()));
        // The state is a bit set: "any of these bits" is "not equal to 0" after the mask.
        self.compare(false, &[0; 4]);
    }

    fn direction(&mut self, direction: u8) {
        self.made.push(NftExpression::Tracking(Tracking::Direction));
        self.compare(true, &[direction]);
    }

    /// Checks whether an address of the packet is one of the machine's.
    fn own(&mut self, address: Address, equal: bool) {
        self.made.push(NftExpression::AddressType(address));
        self.compare(equal, &LOCAL.to_ne_bytes());
    }

    fn meta(&mut self, key: Meta, equal: bool, value: &[u8]) {
        self.made.push(NftExpression::Meta(key));
        self.compare(equal, value);
    }

    fn payload(&mut self, header: PayloadBase, offset: u32, length: u32) {
        self.made.push(NftExpression::Payload { header, offset, length });
    }

    fn compare(&mut self, equal: bool, with: &[u8]) {
        self.made.push(NftExpression::Compare { equal, with: with.to_vec() });
    }
}

/// The name of the loopback device, as the kernel compares it.
fn device() -> [u8; DEVICE_LENGTH] {
    let mut name = [0; DEVICE_LENGTH];
    name.iter_mut().zip(LOOPBACK.bytes()).for_each(|(byte, letter)| *byte = letter);
    name
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::redirect::plan::{GatewayPorts, RedirectPlan};

    fn steps(table: TableFamily, matches: Vec<PacketMatch>, verdict: PacketVerdict) -> Vec<NftExpression> {
        expressions(&PlannedRule { reason: "", matches, verdict, counted: false }, table)
    }

    #[test]
    fn a_family_and_a_transport_are_asked_for_once() {
        let syn = vec![PacketMatch::SourcePort(Transport::Tcp, [1, 2].into()), PacketMatch::Syn];
        let made = steps(TableFamily::Inet, syn, PacketVerdict::Drop);
        let asked = made.iter().filter(|step| **step == NftExpression::Meta(Meta::TransportProtocol));
        assert_eq!(asked.count(), 1, "{made:?}");
    }

    #[test]
    fn a_table_of_ipv4_asks_for_no_family() {
        let loopback = vec![PacketMatch::To("127.0.0.0/8".parse().unwrap())];
        let in_inet = steps(TableFamily::Inet, loopback.clone(), PacketVerdict::Accept);
        let in_ip = steps(TableFamily::Ip, loopback, PacketVerdict::Accept);
        assert_eq!(in_inet[2..], in_ip);
        assert_eq!(in_ip[0], NftExpression::Payload { header: PayloadBase::Network, offset: 16, length: 1 });
    }

    #[test]
    fn every_rule_of_a_plan_ends_in_a_verdict() {
        let plan = RedirectPlan::new(7, GatewayPorts::default(), &[8080]).unwrap();
        for chain in plan.chains() {
            for rule in &chain.rules {
                let last = expressions(rule, chain.table).pop().unwrap();
                let ends = matches!(
                    last,
                    NftExpression::Verdict(_) | NftExpression::Reject { .. } | NftExpression::Redirect
                ) || (last == NftExpression::TrackInZone
                    && rule.verdict == PacketVerdict::TrackApart);
                assert!(ends, "{rule:?}");
            }
        }
    }
}
