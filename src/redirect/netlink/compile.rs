//! A plan's rules as the steps that the kernel takes, the same that `nft` would make of its text.

use std::collections::BTreeSet;
use std::net::IpAddr;

use super::expression::{Address, Code, Expression, Header, Meta, Set, Tracking};
use crate::redirect::chains::ZONE;
use crate::redirect::rule::{LOOPBACK, Match, Refusal, Rule, TableFamily, Transport, Verdict};

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

/// The steps of a rule in a table of this family.
pub(super) fn expressions(rule: &Rule, table: TableFamily) -> Vec<Expression> {
    let mut steps = Steps { table, made: Vec::new(), network: None, transport: None };
    rule.matches.iter().for_each(|condition| steps.condition(condition));
    if rule.counted {
        steps.made.push(Expression::Counter);
    }
    steps.verdict(rule.verdict);
    steps.made
}

/// Steps, and what those that were made know of the packet.
struct Steps {
    table: TableFamily,
    made: Vec<Expression>,
    network: Option<u8>,
    transport: Option<u8>,
}

impl Steps {
    fn condition(&mut self, condition: &Match) {
        match condition {
            Match::Owner(uid) => self.meta(Meta::SocketUid, true, &uid.to_ne_bytes()),
            Match::OtherOwner(uid) => self.meta(Meta::SocketUid, false, &uid.to_ne_bytes()),
            Match::FromLoopback => self.meta(Meta::InputDevice, true, &device()),
            Match::ToLoopback => self.meta(Meta::OutputDevice, true, &device()),
            Match::ToElsewhere => self.meta(Meta::OutputDevice, false, &device()),
            Match::Ipv6 => self.network(IPV6),
            Match::FromForeignAddress => self.own(Address::Source, false),
            Match::ToOwnAddress => self.own(Address::Destination, true),
            Match::To(net) => self.destination(net.addr(), net.prefix_len(), true),
            Match::NotTo(address) => {
                let length = if address.is_ipv4() { 32 } else { 128 };
                self.destination(*address, length, false);
            }
            Match::Transport(transport) => self.transport(transport.number()),
            Match::NotTransport(transport) => {
                self.meta(Meta::TransportProtocol, false, &[transport.number()]);
            }
            Match::SourcePort(transport, ports) => self.port(*transport, 0, ports),
            Match::DestinationPort(transport, ports) => self.port(*transport, 2, ports),
            Match::Syn => self.syn(SYN),
            Match::NoSyn => self.syn(0),
            Match::Invalid => self.bits(Tracking::State, INVALID),
            Match::Established => self.bits(Tracking::State, ESTABLISHED),
            Match::EstablishedOrRelated => self.bits(Tracking::State, ESTABLISHED | RELATED),
            Match::DestinationRewritten => self.bits(Tracking::Status, DESTINATION_REWRITTEN),
            Match::Reply => self.direction(REPLY),
            Match::Original => self.direction(ORIGINAL),
            Match::Discovery(messages) => {
                self.network(IPV6);
                self.transport(ICMPV6);
                self.payload(Header::Transport, 0, 1);
                self.one_of(messages.iter().map(|message| vec![message.number()]).collect());
            }
        }
    }

    fn verdict(&mut self, verdict: Verdict) {
        let reject = |code| Expression::Reject { kind: ICMPX, code };
        match verdict {
            Verdict::Accept => self.made.push(Expression::Verdict(Code::Accept)),
            Verdict::Drop => self.made.push(Expression::Verdict(Code::Drop)),
            Verdict::Reject(Refusal::PortUnreachable) => self.made.push(reject(PORT_UNREACHABLE)),
            Verdict::Reject(Refusal::AdminProhibited) => self.made.push(reject(ADMIN_PROHIBITED)),
            Verdict::Redirect(port) => {
                self.made.extend([Expression::Load(port.to_be_bytes()), Expression::Redirect]);
            }
            Verdict::TrackApart => {
                self.made.extend([Expression::Load(ZONE.to_ne_bytes()), Expression::TrackInZone]);
            }
        }
    }

    /// Asks for the family, where neither the table nor an earlier step has.
    fn network(&mut self, family: u8) {
        let known = self.network.replace(family) == Some(family);
        if self.table == TableFamily::Inet && !known {
            self.meta(Meta::NetworkProtocol, true, &[family]);
        }
    }

    /// Asks for the transport, where no earlier step has: ports and types mean nothing without.
    fn transport(&mut self, protocol: u8) {
        if self.transport.replace(protocol) != Some(protocol) {
            self.meta(Meta::TransportProtocol, true, &[protocol]);
        }
    }

    /// Compares the bytes of the destination that a prefix covers; prefixes end at a byte.
    fn destination(&mut self, address: IpAddr, prefix: u8, equal: bool) {
        let (family, offset, bytes) = match address {
            IpAddr::V4(address) => (IPV4, 16, address.octets().to_vec()),
            IpAddr::V6(address) => (IPV6, 24, address.octets().to_vec()),
        };
        self.network(family);
        let length = prefix / 8;
        self.payload(Header::Network, offset, length.into());
        self.compare(equal, bytes.get(..length.into()).unwrap_or(&bytes));
    }

    /// Compares the SYN bit of TCP's flags.
    fn syn(&mut self, is: u8) {
        self.transport(Transport::Tcp.number());
        self.payload(Header::Transport, 13, 1);
        self.made.push(Expression::Mask(vec![SYN]));
        self.compare(true, &[is]);
    }

    fn port(&mut self, transport: Transport, offset: u32, ports: &BTreeSet<u16>) {
        self.transport(transport.number());
        self.payload(Header::Transport, offset, 2);
        self.one_of(ports.iter().map(|port| port.to_be_bytes().to_vec()).collect());
    }

    /// A set; of one element a comparison.
    fn one_of(&mut self, elements: BTreeSet<Vec<u8>>) {
        match elements.first() {
            Some(only) if elements.len() == 1 => self.compare(true, &only.clone()),
            _ => self.made.push(Expression::Lookup(Set::Elements(elements))),
        }
    }

    /// Whether any of these bits is set, in the machine's order.
    fn bits(&mut self, key: Tracking, mask: u32) {
        self.made.push(Expression::Tracking(key));
        self.made.push(Expression::Mask(mask.to_ne_bytes().to_vec()));
        self.compare(false, &[0; 4]);
    }

    fn direction(&mut self, direction: u8) {
        self.made.push(Expression::Tracking(Tracking::Direction));
        self.compare(true, &[direction]);
    }

    /// Asks whether an address of the packet is one of the machine's.
    fn own(&mut self, address: Address, equal: bool) {
        self.made.push(Expression::AddressType(address));
        self.compare(equal, &LOCAL.to_ne_bytes());
    }

    fn meta(&mut self, key: Meta, equal: bool, value: &[u8]) {
        self.made.push(Expression::Meta(key));
        self.compare(equal, value);
    }

    fn payload(&mut self, header: Header, offset: u32, length: u32) {
        self.made.push(Expression::Payload { header, offset, length });
    }

    fn compare(&mut self, equal: bool, with: &[u8]) {
        self.made.push(Expression::Compare { equal, with: with.to_vec() });
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
    use crate::redirect::plan::{Plan, Ports};

    fn steps(table: TableFamily, matches: Vec<Match>, verdict: Verdict) -> Vec<Expression> {
        expressions(&Rule { reason: "", matches, verdict, counted: false }, table)
    }

    #[test]
    fn a_family_and_a_transport_are_asked_for_once() {
        let syn = vec![Match::SourcePort(Transport::Tcp, [1, 2].into()), Match::Syn];
        let made = steps(TableFamily::Inet, syn, Verdict::Drop);
        let asked = made.iter().filter(|step| **step == Expression::Meta(Meta::TransportProtocol));
        assert_eq!(asked.count(), 1, "{made:?}");
    }

    #[test]
    fn a_table_of_ipv4_asks_for_no_family() {
        let loopback = vec![Match::To("127.0.0.0/8".parse().unwrap())];
        let in_inet = steps(TableFamily::Inet, loopback.clone(), Verdict::Accept);
        let in_ip = steps(TableFamily::Ip, loopback, Verdict::Accept);
        assert_eq!(in_inet[2..], in_ip);
        assert_eq!(in_ip[0], Expression::Payload { header: Header::Network, offset: 16, length: 1 });
    }

    #[test]
    fn every_rule_of_a_plan_ends_in_a_verdict() {
        let plan = Plan::new(7, Ports::default(), &[8080]).unwrap();
        for chain in plan.chains() {
            for rule in &chain.rules {
                let last = expressions(rule, chain.table).pop().unwrap();
                let ends =
                    matches!(last, Expression::Verdict(_) | Expression::Reject { .. } | Expression::Redirect)
                        || (last == Expression::TrackInZone && rule.verdict == Verdict::TrackApart);
                assert!(ends, "{rule:?}");
            }
        }
    }
}
