//! The rules that leave a network namespace one door, each with its reason.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net};

use super::plan::{Ipv6, RedirectPlan};
use super::rule::{
    ChainKind, Discovery, Hook, IcmpError, PacketMatch, PacketVerdict, PlannedChain, PlannedRule,
    TableFamily, Transport,
};
use crate::canary::{CANARY_V4, CANARY_V6};

/// The name of our tables in nf_tables.
pub const TABLE: &str = "postern";
/// The chain that tracks the gateway's flows apart from the agent's.
pub const RAW_OUTPUT: &str = "raw_output";
/// The chain that sends flows to the gateway.
pub const NAT_OUTPUT: &str = "nat_output";
/// The chain that lets out the gateway alone.
pub const FILTER_OUTPUT: &str = "filter_output";
/// The chain that lets in what was declared.
pub const FILTER_INPUT: &str = "filter_input";
/// The chain that keeps loopback addresses inside.
pub const POSTROUTING: &str = "postrouting";

/// The tracking zone of the flows that the gateway begins; those of others are in the default one, 0.
pub const ZONE: u16 = 1;

/// NF_IP_PRI_RAW: before connection tracking.
const PRIORITY_RAW: i32 = -300;
/// NF_IP_PRI_NAT_DST: where destinations are rewritten.
const PRIORITY_DSTNAT: i32 = -100;
/// NF_IP_PRI_FILTER. In the output hook it comes after the rewriting of destinations, which its rules rely on.
const PRIORITY_FILTER: i32 = 0;

const DNS: u16 = 53;

impl RedirectPlan {
    /// Returns the chains in the order in which an outgoing packet meets them, then the one for incoming packets.
    pub fn chains(&self) -> Vec<PlannedChain> {
        let chain = |name, kind, hook, priority, rules| PlannedChain {
            name,
            table: TableFamily::Inet,
            kind,
            hook,
            priority,
            rules,
        };
        let nat = chain(NAT_OUTPUT, ChainKind::Nat, Hook::Output, PRIORITY_DSTNAT, self.nat_output());
        // An inet table has nat for both families or none, so a kernel without IPv6 nat needs one of IPv4 alone.
        let table = match self.ipv6 {
            Ipv6::Redirected => TableFamily::Inet,
            Ipv6::Rejected => TableFamily::Ip,
        };
        vec![
            chain(RAW_OUTPUT, ChainKind::Filter, Hook::Output, PRIORITY_RAW, self.raw_output()),
            PlannedChain { table, ..nat },
            chain(FILTER_OUTPUT, ChainKind::Filter, Hook::Output, PRIORITY_FILTER, self.filter_output()),
            chain(POSTROUTING, ChainKind::Filter, Hook::Postrouting, PRIORITY_FILTER, postrouting()),
            chain(FILTER_INPUT, ChainKind::Filter, Hook::Input, PRIORITY_FILTER, self.filter_input()),
        ]
    }

    /// Tracks the gateway's datagrams in a zone of their own. An agent's redirected flow leaves a NAT entry in the
    /// tracking table; where the gateway's resolver then asks the same server from the same port, it would inherit the
    /// entry and ask itself, and an agent could cause that for every port. The zone holds for the direction in which a
    /// flow begins, so answers are still found. TCP has none: each flow begins anew, and packets of closed sockets have
    /// no owner, so they would be looked up in the wrong zone.
    fn raw_output(&self) -> Vec<PlannedRule> {
        vec![
            rule(
                "Questions that come to the gateway were begun by others, and are tracked with theirs.",
                vec![PacketMatch::SourcePort(Transport::Udp, [self.ports.dns].into())],
                PacketVerdict::Accept,
            ),
            rule(
                "The gateway's datagrams inherit no entry that an agent left, nor an agent's one of theirs (threat A21).",
                vec![self.owner(), PacketMatch::Transport(Transport::Udp)],
                PacketVerdict::TrackApart,
            ),
        ]
    }

    /// Redirects every TCP port to the gateway, and DNS to its resolver, whatever server is addressed. The kernel asks
    /// this chain about the first packet of a flow alone, and rewrites the others alike.
    fn nat_output(&self) -> Vec<PlannedRule> {
        let mut rules = self.exempt();
        let inside =
            "Loopback is the pod's own affair; its addresses on another device are not (threat A26).";
        rules.extend(self.loopbacks().into_iter().map(|net| {
            rule(inside, vec![PacketMatch::ToLoopback, PacketMatch::To(net)], PacketVerdict::Accept)
        }));
        let dns = "DNS to any server is answered by the gateway, which asks nobody for it (threats A6, A7).";
        for transport in [Transport::Udp, Transport::Tcp] {
            let to_dns = vec![PacketMatch::DestinationPort(transport, [DNS].into())];
            rules.push(rule(dns, to_dns, PacketVerdict::Redirect(self.ports.dns)));
        }
        rules.push(rule(
            "Every port of TCP, not only those that are usual (threats A1, A2).",
            vec![PacketMatch::Transport(Transport::Tcp)],
            PacketVerdict::Redirect(self.ports.transparent),
        ));
        rules
    }

    /// Decides who may send what. No rule accepts a plain `established`: nat sees the first packet of a flow alone, so
    /// an agent that binds the source port of one of the gateway's flows would inherit it (threat A21).
    fn filter_output(&self) -> Vec<PlannedRule> {
        let mut rules = Vec::new();
        if self.ipv6 == Ipv6::Rejected {
            rules.push(rule(
                "IPv6 cannot be redirected here, so nobody sends it, the gateway neither (threat A3).",
                vec![PacketMatch::ToElsewhere, PacketMatch::Ipv6],
                PacketVerdict::Reject(IcmpError::AdminProhibited),
            ));
        }
        rules.extend(self.answers_from_our_ports());
        // UDP is left to the exemption below: the gateway's datagram to a canary must reach the last rule.
        rules.push(rule(
            "The gateway gets out; nobody else does, root neither (threat A11).",
            vec![self.owner(), PacketMatch::NotTransport(Transport::Udp)],
            PacketVerdict::Accept,
        ));
        rules.extend(self.exempt());
        rules.push(rule(
            "What tracking cannot place belongs to no flow that a rule below could mean.",
            vec![PacketMatch::Invalid],
            PacketVerdict::Drop,
        ));
        if self.ipv6 == Ipv6::Redirected {
            // Before sources are judged: a host without an address yet asks from the unspecified one.
            rules.push(discovery(&[
                Discovery::RouterSolicit,
                Discovery::NeighbourSolicit,
                Discovery::NeighbourAdvert,
            ]));
        }
        rules.extend(stays_inside());
        // A redirected packet already has the loopback address as its destination, and not yet `lo` as its device.
        let rewritten = "What was redirected to the gateway, and is on its way there.";
        rules.extend(self.loopback_addresses().into_iter().map(|address| {
            rule(
                rewritten,
                vec![PacketMatch::DestinationRewritten, PacketMatch::To(address)],
                PacketVerdict::Accept,
            )
        }));
        rules.push(rule(
            "Answers on flows that came in through a declared port; filter_input admits no others (threat A22).",
            vec![PacketMatch::Reply, PacketMatch::Established],
            PacketVerdict::Accept,
        ));
        rules.extend(self.closed_sockets());
        rules.push(
            rule(
                "All else: QUIC, so that clients fall back at once, other UDP, ICMP, multicast (threats A4, A5).",
                Vec::new(),
                PacketVerdict::Reject(IcmpError::PortUnreachable),
            )
            .counted(),
        );
        rules
    }

    /// Lets out what closed sockets still have to send (data, a FIN, an acknowledgement), though they have no owner any
    /// more. Everybody else's TCP was redirected, so a flow that was not is the gateway's. Nobody who owns a socket can
    /// send on it (threat A21), and no packet without an owner opens one: the kernel's own sockets for further paths of
    /// MPTCP have none either.
    fn closed_sockets(&self) -> [PlannedRule; 2] {
        [
            rule(
                "Nobody else sends on a connection that the gateway began (threat A21).",
                vec![
                    PacketMatch::OtherOwner(self.uid),
                    PacketMatch::Transport(Transport::Tcp),
                    PacketMatch::Original,
                    PacketMatch::Established,
                ],
                PacketVerdict::Reject(IcmpError::PortUnreachable),
            ),
            rule(
                "What the gateway's sockets still had to send when they were closed.",
                vec![PacketMatch::NoSyn, PacketMatch::Original, PacketMatch::Established],
                PacketVerdict::Accept,
            ),
        ]
    }

    /// Drops answers from the gateway's ports that are not the gateway's, on either loopback and also when it is dead:
    /// a squatter would read other containers' plaintext, forge their DNS, and report the gateway as ready (threat
    /// A24). Every SYN counts, not only one with an ACK: answering a SYN by a SYN opens the connection too (RFC 9293,
    /// section 3.5).
    fn answers_from_our_ports(&self) -> [PlannedRule; 4] {
        let syn = vec![PacketMatch::SourcePort(Transport::Tcp, self.ports.all()), PacketMatch::Syn];
        let dns = vec![PacketMatch::SourcePort(Transport::Udp, [self.ports.dns].into())];
        let ours = |matches: &Vec<PacketMatch>| [matches.clone(), vec![self.owner()]].concat();
        let gateway = "The gateway's ports answer where the gateway owns the socket.";
        let squatter = "Nobody else answers there, also when the gateway is dead (threat A24).";
        [
            rule(gateway, ours(&syn), PacketVerdict::Accept),
            rule(squatter, syn, PacketVerdict::Drop),
            rule(gateway, ours(&dns), PacketVerdict::Accept),
            rule(squatter, dns, PacketVerdict::Drop),
        ]
    }

    /// Decides what may come in. An agent that listens while an accomplice dials has an exit (threat A22).
    fn filter_input(&self) -> Vec<PlannedRule> {
        let mut rules =
            vec![rule("What stays inside.", vec![PacketMatch::FromLoopback], PacketVerdict::Accept)];
        let discovery =
            discovery(&[Discovery::RouterAdvert, Discovery::NeighbourSolicit, Discovery::NeighbourAdvert]);
        if self.ipv6 == Ipv6::Rejected {
            rules.push(discovery.clone());
            rules.push(rule("No answer could be sent.", vec![PacketMatch::Ipv6], PacketVerdict::Drop));
        }
        rules.push(rule(
            "Answers to the gateway, and the rest of flows that were admitted.",
            vec![PacketMatch::EstablishedOrRelated],
            PacketVerdict::Accept,
        ));
        rules.push(rule(
            "The gateway's admin port, for the kubelet's probes, and the ports that the pod declares.",
            vec![PacketMatch::DestinationPort(Transport::Tcp, self.open_ports())],
            PacketVerdict::Accept,
        ));
        if self.ipv6 == Ipv6::Redirected {
            rules.push(discovery);
        }
        rules.push(rule("All else.", Vec::new(), PacketVerdict::Drop).counted());
        rules
    }

    /// Accepts the gateway's own packets, one rule a family, except those to the canary: they meet the rules that an
    /// agent's packets meet (the proof of interception). The owner is matched, never negated: packets without a socket
    /// have none (threat A27).
    fn exempt(&self) -> Vec<PlannedRule> {
        let reason = "The gateway gets out, but for the canaries of its proof, which go the agent's way.";
        self.canaries()
            .into_iter()
            .map(|canary| rule(reason, vec![self.owner(), PacketMatch::NotTo(canary)], PacketVerdict::Accept))
            .collect()
    }

    fn owner(&self) -> PacketMatch {
        PacketMatch::Owner(self.uid)
    }

    fn canaries(&self) -> Vec<IpAddr> {
        self.redirected(CANARY_V4.into(), CANARY_V6.into())
    }

    fn loopbacks(&self) -> Vec<IpNet> {
        self.redirected(loopback_v4(), host(Ipv6Addr::LOCALHOST))
    }

    /// The addresses that the kernel redirects to.
    fn loopback_addresses(&self) -> Vec<IpNet> {
        self.redirected(host(Ipv4Addr::LOCALHOST), host(Ipv6Addr::LOCALHOST))
    }

    /// Returns the values of the families that are redirected.
    fn redirected<T>(&self, v4: T, v6: T) -> Vec<T> {
        match self.ipv6 {
            Ipv6::Redirected => vec![v4, v6],
            Ipv6::Rejected => vec![v4],
        }
    }
}

/// Accepts the messages that IPv6 needs to work. Multicast reports are not among them: their sender chooses what they
/// carry (threat A27).
fn discovery(messages: &[Discovery]) -> PlannedRule {
    let messages = PacketMatch::Discovery(messages.iter().copied().collect());
    rule("IPv6 does not work without neighbour discovery.", vec![messages], PacketVerdict::Accept)
}

/// Accepts packets between two addresses of the pod. In IPv6 any user may send from a foreign address (IPV6_FREEBIND),
/// and to one over a socket that is bound to the loopback device; a flow that began so would make packets on other
/// devices look like its answers: outgoing ones in the first case, incoming ones in the second.
fn stays_inside() -> [PlannedRule; 2] {
    [
        rule(
            "A packet that says to come from outside would have its answer leave (IPV6_FREEBIND).",
            vec![PacketMatch::FromForeignAddress],
            PacketVerdict::Drop,
        ),
        rule(
            "What stays inside.",
            vec![PacketMatch::ToLoopback, PacketMatch::ToOwnAddress],
            PacketVerdict::Accept,
        ),
    ]
}

/// Drops loopback addresses that would leave on another device, to which a socket can be bound (threat A26).
fn postrouting() -> Vec<PlannedRule> {
    let reason = "A socket that is bound to a device carries loopback addresses out by it (threat A26).";
    [loopback_v4(), host(Ipv6Addr::LOCALHOST)]
        .into_iter()
        .map(|net| {
            rule(reason, vec![PacketMatch::ToElsewhere, PacketMatch::To(net)], PacketVerdict::Drop).counted()
        })
        .collect()
}

fn rule(reason: &'static str, matches: Vec<PacketMatch>, verdict: PacketVerdict) -> PlannedRule {
    PlannedRule { reason, matches, verdict, counted: false }
}

fn loopback_v4() -> IpNet {
    Ipv4Net::new_assert(Ipv4Addr::new(127, 0, 0, 0), 8).into()
}

/// The range of one address.
fn host(address: impl Into<IpAddr>) -> IpNet {
    address.into().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::redirect::plan::GatewayPorts;
    use crate::redirect::rule::IpFamily;

    fn plan(inbound: &[u16]) -> RedirectPlan {
        RedirectPlan::new(61_234, GatewayPorts::default(), inbound).unwrap()
    }

    fn rules(plan: &RedirectPlan) -> Vec<PlannedRule> {
        plan.chains().into_iter().flat_map(|chain| chain.rules).collect()
    }

    #[test]
    fn no_rule_that_lets_out_asks_for_a_plain_established() {
        let outgoing = |chain: &PlannedChain| chain.hook == Hook::Output;
        let chains = plan(&[8080]).chains();
        for rule in chains.iter().filter(|chain| outgoing(chain)).flat_map(|chain| &chain.rules) {
            assert!(!rule.matches.contains(&PacketMatch::EstablishedOrRelated), "{rule:?}");
            let established = rule.matches.contains(&PacketMatch::Established);
            let directed =
                [PacketMatch::Reply, PacketMatch::Original].iter().any(|one| rule.matches.contains(one));
            assert!(!established || directed, "{rule:?}");
        }
    }

    #[test]
    fn a_foreign_source_begins_no_flow_and_what_stays_inside_has_two_own_addresses() {
        let filter = plan(&[8080]).filter_output();
        let foreign =
            filter.iter().position(|rule| rule.matches == [PacketMatch::FromForeignAddress]).unwrap();
        assert_eq!(filter[foreign].verdict, PacketVerdict::Drop);
        for rule in filter.iter().take(foreign).filter(|rule| rule.verdict == PacketVerdict::Accept) {
            let asks = |one: &PacketMatch| matches!(one, PacketMatch::Owner(_) | PacketMatch::Discovery(_));
            assert!(rule.matches.iter().any(asks), "nobody but the gateway passes before: {rule:?}");
        }
        let mut inside = filter.iter().filter(|rule| rule.matches.contains(&PacketMatch::ToLoopback));
        assert!(inside.all(|rule| rule.matches.contains(&PacketMatch::ToOwnAddress)));
    }

    #[test]
    fn nobody_takes_part_in_the_opening_of_a_connection_with_the_gateways_ports() {
        let opening =
            vec![PacketMatch::SourcePort(Transport::Tcp, GatewayPorts::default().all()), PacketMatch::Syn];
        let filter = plan(&[]).filter_output();
        let (gateway, squatter) = (&filter[0], &filter[1]);
        assert_eq!(gateway.matches, [opening.clone(), vec![PacketMatch::Owner(61_234)]].concat());
        assert_eq!((&squatter.matches, squatter.verdict), (&opening, PacketVerdict::Drop));
    }

    #[test]
    fn what_a_closed_socket_left_passes_only_behind_a_refusal_for_everybody_with_a_socket() {
        let filter = plan(&[]).filter_output();
        let left = [PacketMatch::NoSyn, PacketMatch::Original, PacketMatch::Established];
        let passes = filter.iter().position(|rule| rule.matches == left).unwrap();
        assert_eq!(filter[passes].verdict, PacketVerdict::Accept);
        let refusal = &filter[passes - 1];
        assert_eq!(refusal.verdict, PacketVerdict::Reject(IcmpError::PortUnreachable));
        let begun = [PacketMatch::Transport(Transport::Tcp), PacketMatch::Original, PacketMatch::Established];
        assert_eq!(refusal.matches, [&[PacketMatch::OtherOwner(61_234)], &begun[..]].concat());
    }

    #[test]
    fn an_own_udp_packet_to_a_canary_reaches_the_final_reject() {
        let filter = plan(&[]).filter_output();
        let exempt = filter.iter().filter(|rule| rule.matches.first() == Some(&PacketMatch::Owner(61_234)));
        for rule in exempt {
            let udp = rule.matches.contains(&PacketMatch::NotTransport(Transport::Udp));
            let canary = rule.matches.iter().any(|one| matches!(one, PacketMatch::NotTo(_)));
            assert!(udp || canary, "{rule:?}");
        }
        assert_eq!(filter.last().unwrap().verdict, PacketVerdict::Reject(IcmpError::PortUnreachable));
    }

    #[test]
    fn where_ipv6_has_no_nat_it_is_refused_before_the_gateway_is_exempted() {
        let plan = plan(&[]).with_ipv6(Ipv6::Rejected);
        let chains = plan.chains();
        assert_eq!((chains[1].name, chains[1].table), (NAT_OUTPUT, TableFamily::Ip));
        assert!(chains[1].rules.iter().all(|rule| rule.family() != Some(IpFamily::V6)));
        assert_eq!(chains[2].rules[0].verdict, PacketVerdict::Reject(IcmpError::AdminProhibited));
        assert!(
            rules(&plan).iter().all(|rule| !rule.matches.contains(&PacketMatch::NotTo(CANARY_V6.into())))
        );
    }
}
