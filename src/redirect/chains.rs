//! The rules that leave a network namespace one door, each with its reason.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net};

use super::plan::{Ipv6, Plan};
use super::rule::{Chain, Discovery, Hook, Kind, Match, Refusal, Rule, TableFamily, Transport, Verdict};
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

impl Plan {
    /// The chains, in the order in which an outgoing packet meets them, then the incoming one.
    pub fn chains(&self) -> Vec<Chain> {
        let chain = |name, kind, hook, priority, rules| Chain {
            name,
            table: TableFamily::Inet,
            kind,
            hook,
            priority,
            rules,
        };
        let nat = chain(NAT_OUTPUT, Kind::Nat, Hook::Output, PRIORITY_DSTNAT, self.nat_output());
        // An inet table has nat for both families or none, so a kernel without IPv6 nat needs one of IPv4 alone.
        let table = match self.ipv6 {
            Ipv6::Redirected => TableFamily::Inet,
            Ipv6::Rejected => TableFamily::Ip,
        };
        vec![
            chain(RAW_OUTPUT, Kind::Filter, Hook::Output, PRIORITY_RAW, self.raw_output()),
            Chain { table, ..nat },
            chain(FILTER_OUTPUT, Kind::Filter, Hook::Output, PRIORITY_FILTER, self.filter_output()),
            chain(POSTROUTING, Kind::Filter, Hook::Postrouting, PRIORITY_FILTER, postrouting()),
            chain(FILTER_INPUT, Kind::Filter, Hook::Input, PRIORITY_FILTER, self.filter_input()),
        ]
    }

    /// An agent's flow leaves an entry in the tracking table by which it was rewritten. Where the gateway's resolver
    /// then asks the same server from the same port, it would inherit the entry, and ask the gateway itself: an agent
    /// could bring that about for every port. So the gateway's datagrams have a zone of their own, by the direction in
    /// which their flow begins; answers are found as before. TCP begins its flows anew, and what a closed socket still
    /// has to send has no owner, so that it would be looked for in the wrong zone.
    fn raw_output(&self) -> Vec<Rule> {
        vec![
            rule(
                "Questions that come to the gateway were begun by others, and are tracked with theirs.",
                vec![Match::SourcePort(Transport::Udp, [self.ports.dns].into())],
                Verdict::Accept,
            ),
            rule(
                "The gateway's datagrams inherit no entry that an agent left, nor an agent's one of theirs (threat A21).",
                vec![self.owner(), Match::Transport(Transport::Udp)],
                Verdict::TrackApart,
            ),
        ]
    }

    /// Every port of TCP goes to the gateway, and DNS to its resolver, whatever server is meant. The kernel asks this
    /// chain about the first packet of a flow alone and does the same to the rest.
    fn nat_output(&self) -> Vec<Rule> {
        let mut rules = self.exempt();
        let inside =
            "Loopback is the pod's own affair; its addresses on another device are not (threat A26).";
        rules.extend(
            self.loopbacks()
                .into_iter()
                .map(|net| rule(inside, vec![Match::ToLoopback, Match::To(net)], Verdict::Accept)),
        );
        let dns = "DNS to any server is answered by the gateway, which asks nobody for it (threats A6, A7).";
        for transport in [Transport::Udp, Transport::Tcp] {
            let to_dns = vec![Match::DestinationPort(transport, [DNS].into())];
            rules.push(rule(dns, to_dns, Verdict::Redirect(self.ports.dns)));
        }
        rules.push(rule(
            "Every port of TCP, not only those that are usual (threats A1, A2).",
            vec![Match::Transport(Transport::Tcp)],
            Verdict::Redirect(self.ports.transparent),
        ));
        rules
    }

    /// Who may send what. It never says a plain `established`: nat sees the first packet of a flow alone, so an agent
    /// that binds the source port of one of the gateway's flows would inherit it (threat A21).
    fn filter_output(&self) -> Vec<Rule> {
        let mut rules = Vec::new();
        if self.ipv6 == Ipv6::Rejected {
            rules.push(rule(
                "IPv6 cannot be redirected here, so nobody sends it, the gateway neither (threat A3).",
                vec![Match::ToElsewhere, Match::Ipv6],
                Verdict::Reject(Refusal::AdminProhibited),
            ));
        }
        rules.extend(self.answers_from_our_ports());
        rules.push(rule(
            "The gateway gets out; nobody else does, root neither (threat A11).",
            vec![self.owner(), Match::NotTransport(Transport::Udp)],
            Verdict::Accept,
        ));
        rules.extend(self.exempt());
        rules.push(rule(
            "What tracking cannot place belongs to no flow that a rule below could mean.",
            vec![Match::Invalid],
            Verdict::Drop,
        ));
        if self.ipv6 == Ipv6::Redirected {
            // Before sources are looked at: who has no address yet asks from the unspecified one.
            rules.push(discovery(&[
                Discovery::RouterSolicit,
                Discovery::NeighbourSolicit,
                Discovery::NeighbourAdvert,
            ]));
        }
        rules.extend(stays_inside());
        let rewritten = "What was redirected to the gateway, and is on its way there.";
        rules.extend(self.loopback_addresses().into_iter().map(|address| {
            rule(rewritten, vec![Match::DestinationRewritten, Match::To(address)], Verdict::Accept)
        }));
        rules.push(rule(
            "Answers on flows that came in through a declared port; filter_input admits no others (threat A22).",
            vec![Match::Reply, Match::Established],
            Verdict::Accept,
        ));
        rules.extend(self.what_a_closed_socket_left());
        rules.push(
            rule(
                "All else: QUIC, so that clients fall back at once, other UDP, ICMP, multicast (threats A4, A5).",
                Vec::new(),
                Verdict::Reject(Refusal::PortUnreachable),
            )
            .counted(),
        );
        rules
    }

    /// A socket that was closed has no owner any more, and may have data, its FIN or an acknowledgement still to send.
    /// Everybody else's TCP was redirected, so that a flow that was not is one of the gateway's; who has a socket can
    /// send nothing on it (threat A21), and nothing without an owner opens one: so are sockets that the kernel makes for
    /// itself, for the further paths of MPTCP.
    fn what_a_closed_socket_left(&self) -> [Rule; 2] {
        [
            rule(
                "Nobody else sends on a connection that the gateway began (threat A21).",
                vec![
                    Match::OtherOwner(self.uid),
                    Match::Transport(Transport::Tcp),
                    Match::Original,
                    Match::Established,
                ],
                Verdict::Reject(Refusal::PortUnreachable),
            ),
            rule(
                "What the gateway's sockets still had to send when they were closed.",
                vec![Match::NoSyn, Match::Original, Match::Established],
                Verdict::Accept,
            ),
        ]
    }

    /// Nobody answers in the gateway's place, on either loopback, also when it is dead: a squatter would read other
    /// containers' plaintext, forge their DNS, and say that the gateway is ready (threat A24).
    /// Every SYN counts, not only one with an ACK: who answers a SYN by a SYN of his own has opened the connection
    /// just as well (RFC 9293, section 3.5).
    fn answers_from_our_ports(&self) -> [Rule; 4] {
        let syn = vec![Match::SourcePort(Transport::Tcp, self.ports.all()), Match::Syn];
        let dns = vec![Match::SourcePort(Transport::Udp, [self.ports.dns].into())];
        let ours = |matches: &Vec<Match>| [matches.clone(), vec![self.owner()]].concat();
        let gateway = "The gateway's ports answer where the gateway owns the socket.";
        let squatter = "Nobody else answers there, also when the gateway is dead (threat A24).";
        [
            rule(gateway, ours(&syn), Verdict::Accept),
            rule(squatter, syn, Verdict::Drop),
            rule(gateway, ours(&dns), Verdict::Accept),
            rule(squatter, dns, Verdict::Drop),
        ]
    }

    /// Who may come in. An agent that listens while an accomplice dials has an exit (threat A22).
    fn filter_input(&self) -> Vec<Rule> {
        let mut rules = vec![rule("What stays inside.", vec![Match::FromLoopback], Verdict::Accept)];
        let discovery =
            discovery(&[Discovery::RouterAdvert, Discovery::NeighbourSolicit, Discovery::NeighbourAdvert]);
        if self.ipv6 == Ipv6::Rejected {
            rules.push(discovery.clone());
            rules.push(rule("No answer could be sent.", vec![Match::Ipv6], Verdict::Drop));
        }
        rules.push(rule(
            "Answers to the gateway, and the rest of flows that were admitted.",
            vec![Match::EstablishedOrRelated],
            Verdict::Accept,
        ));
        rules.push(rule(
            "The gateway's admin port, for the kubelet's probes, and the ports that the pod declares.",
            vec![Match::DestinationPort(Transport::Tcp, self.open_ports())],
            Verdict::Accept,
        ));
        if self.ipv6 == Ipv6::Redirected {
            rules.push(discovery);
        }
        rules.push(rule("All else.", Vec::new(), Verdict::Drop).counted());
        rules
    }

    /// The gateway's own packets pass, one rule a family, but for the canary, which meets the very rules that an
    /// agent's packets meet (the proof of interception). The owner is asked for, never "not the owner": packets
    /// without a socket have none (threat A27).
    fn exempt(&self) -> Vec<Rule> {
        let reason = "The gateway gets out, but for the canaries of its proof, which go the agent's way.";
        self.canaries()
            .into_iter()
            .map(|canary| rule(reason, vec![self.owner(), Match::NotTo(canary)], Verdict::Accept))
            .collect()
    }

    fn owner(&self) -> Match {
        Match::Owner(self.uid)
    }

    fn canaries(&self) -> Vec<IpAddr> {
        self.redirected(CANARY_V4.into(), CANARY_V6.into())
    }

    fn loopbacks(&self) -> Vec<IpNet> {
        self.redirected(loopback_v4(), host(Ipv6Addr::LOCALHOST))
    }

    /// Where the kernel redirects to.
    fn loopback_addresses(&self) -> Vec<IpNet> {
        self.redirected(host(Ipv4Addr::LOCALHOST), host(Ipv6Addr::LOCALHOST))
    }

    /// What is said of the families that are redirected.
    fn redirected<T>(&self, v4: T, v6: T) -> Vec<T> {
        match self.ipv6 {
            Ipv6::Redirected => vec![v4, v6],
            Ipv6::Rejected => vec![v4],
        }
    }
}

/// IPv6 does not work without these messages. Reports of multicast groups are none of them: they carry what their
/// sender chooses (threat A27).
fn discovery(messages: &[Discovery]) -> Rule {
    let messages = Match::Discovery(messages.iter().copied().collect());
    rule("IPv6 does not work without neighbour discovery.", vec![messages], Verdict::Accept)
}

/// What stays inside is between two addresses of the pod's. Any user may send from a foreign address in IPv6
/// (IPV6_FREEBIND), and to one by a socket that is bound to the loopback device; a flow that began so would make
/// packets on other devices look like its answers, outgoing ones in the first case and incoming ones in the second.
fn stays_inside() -> [Rule; 2] {
    [
        rule(
            "A packet that says to come from outside would have its answer leave (IPV6_FREEBIND).",
            vec![Match::FromForeignAddress],
            Verdict::Drop,
        ),
        rule("What stays inside.", vec![Match::ToLoopback, Match::ToOwnAddress], Verdict::Accept),
    ]
}

/// Loopback addresses never leave on another device, to which a socket can be bound (threat A26).
fn postrouting() -> Vec<Rule> {
    let reason = "A socket that is bound to a device carries loopback addresses out by it (threat A26).";
    [loopback_v4(), host(Ipv6Addr::LOCALHOST)]
        .into_iter()
        .map(|net| rule(reason, vec![Match::ToElsewhere, Match::To(net)], Verdict::Drop).counted())
        .collect()
}

fn rule(reason: &'static str, matches: Vec<Match>, verdict: Verdict) -> Rule {
    Rule { reason, matches, verdict, counted: false }
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
    use crate::redirect::plan::Ports;
    use crate::redirect::rule::Family;

    fn plan(inbound: &[u16]) -> Plan {
        Plan::new(61_234, Ports::default(), inbound).unwrap()
    }

    fn rules(plan: &Plan) -> Vec<Rule> {
        plan.chains().into_iter().flat_map(|chain| chain.rules).collect()
    }

    #[test]
    fn no_rule_that_lets_out_asks_for_a_plain_established() {
        let outgoing = |chain: &Chain| chain.hook == Hook::Output;
        let chains = plan(&[8080]).chains();
        for rule in chains.iter().filter(|chain| outgoing(chain)).flat_map(|chain| &chain.rules) {
            assert!(!rule.matches.contains(&Match::EstablishedOrRelated), "{rule:?}");
            let established = rule.matches.contains(&Match::Established);
            let directed = [Match::Reply, Match::Original].iter().any(|one| rule.matches.contains(one));
            assert!(!established || directed, "{rule:?}");
        }
    }

    #[test]
    fn a_foreign_source_begins_no_flow_and_what_stays_inside_has_two_own_addresses() {
        let filter = plan(&[8080]).filter_output();
        let foreign = filter.iter().position(|rule| rule.matches == [Match::FromForeignAddress]).unwrap();
        assert_eq!(filter[foreign].verdict, Verdict::Drop);
        for rule in filter.iter().take(foreign).filter(|rule| rule.verdict == Verdict::Accept) {
            let asks = |one: &Match| matches!(one, Match::Owner(_) | Match::Discovery(_));
            assert!(rule.matches.iter().any(asks), "nobody but the gateway passes before: {rule:?}");
        }
        let mut inside = filter.iter().filter(|rule| rule.matches.contains(&Match::ToLoopback));
        assert!(inside.all(|rule| rule.matches.contains(&Match::ToOwnAddress)));
    }

    #[test]
    fn nobody_takes_part_in_the_opening_of_a_connection_with_the_gateways_ports() {
        let opening = vec![Match::SourcePort(Transport::Tcp, Ports::default().all()), Match::Syn];
        let filter = plan(&[]).filter_output();
        let (gateway, squatter) = (&filter[0], &filter[1]);
        assert_eq!(gateway.matches, [opening.clone(), vec![Match::Owner(61_234)]].concat());
        assert_eq!((&squatter.matches, squatter.verdict), (&opening, Verdict::Drop));
    }

    #[test]
    fn what_a_closed_socket_left_passes_only_behind_a_refusal_for_everybody_with_a_socket() {
        let filter = plan(&[]).filter_output();
        let left = [Match::NoSyn, Match::Original, Match::Established];
        let passes = filter.iter().position(|rule| rule.matches == left).unwrap();
        assert_eq!(filter[passes].verdict, Verdict::Accept);
        let refusal = &filter[passes - 1];
        assert_eq!(refusal.verdict, Verdict::Reject(Refusal::PortUnreachable));
        let begun = [Match::Transport(Transport::Tcp), Match::Original, Match::Established];
        assert_eq!(refusal.matches, [&[Match::OtherOwner(61_234)], &begun[..]].concat());
    }

    #[test]
    fn an_own_udp_packet_to_a_canary_reaches_the_final_reject() {
        let filter = plan(&[]).filter_output();
        let exempt = filter.iter().filter(|rule| rule.matches.first() == Some(&Match::Owner(61_234)));
        for rule in exempt {
            let udp = rule.matches.contains(&Match::NotTransport(Transport::Udp));
            let canary = rule.matches.iter().any(|one| matches!(one, Match::NotTo(_)));
            assert!(udp || canary, "{rule:?}");
        }
        assert_eq!(filter.last().unwrap().verdict, Verdict::Reject(Refusal::PortUnreachable));
    }

    #[test]
    fn where_ipv6_has_no_nat_it_is_refused_before_the_gateway_is_exempted() {
        let plan = plan(&[]).with_ipv6(Ipv6::Rejected);
        let chains = plan.chains();
        assert_eq!((chains[1].name, chains[1].table), (NAT_OUTPUT, TableFamily::Ip));
        assert!(chains[1].rules.iter().all(|rule| rule.family() != Some(Family::V6)));
        assert_eq!(chains[2].rules[0].verdict, Verdict::Reject(Refusal::AdminProhibited));
        assert!(rules(&plan).iter().all(|rule| !rule.matches.contains(&Match::NotTo(CANARY_V6.into()))));
    }
}
