//! A plan in the syntax of `nft`: what `nft -f` loads and `--dry-run` prints.

use std::fmt::{Display, Write as _};
use std::net::IpAddr;

use ipnet::IpNet;

use super::chains::{TABLE, ZONE};
use super::plan::Plan;
use super::rule::{Chain, LOOPBACK, Match, Refusal, Rule, TableFamily, Verdict};

/// The plan as a file for `nft -f`, which replaces what stood before in one transaction.
pub fn text(plan: &Plan) -> String {
    let mut text = String::new();
    for family in TableFamily::ALL {
        // Added first, so that deleting it cannot fail.
        let _ = writeln!(text, "add table {} {TABLE}", family.word());
        let _ = writeln!(text, "delete table {} {TABLE}", family.word());
    }
    let chains = plan.chains();
    for family in TableFamily::ALL {
        let of_family = chains.iter().filter(|chain| chain.table == family);
        let bodies: Vec<String> = of_family.map(chain).collect();
        if !bodies.is_empty() {
            let _ = writeln!(text, "table {} {TABLE} {{\n{}}}", family.word(), bodies.join("\n"));
        }
    }
    text
}

fn chain(chain: &Chain) -> String {
    let Chain { name, kind, hook, priority, .. } = chain;
    let (kind, hook) = (kind.word(), hook.word());
    let mut text =
        format!("  chain {name} {{\n    type {kind} hook {hook} priority {priority}; policy accept;\n");
    let mut said = "";
    for each in &chain.rules {
        if each.reason != said {
            let _ = writeln!(text, "    # {}", each.reason);
            said = each.reason;
        }
        let _ = writeln!(text, "    {}", rule(each));
    }
    text + "  }\n"
}

/// One rule as `nft` writes it.
pub fn rule(rule: &Rule) -> String {
    let counter = rule.counted.then(|| "counter".to_owned());
    let words = rule.matches.iter().map(condition).chain(counter).chain([verdict(rule.verdict)]);
    words.collect::<Vec<_>>().join(" ")
}

fn condition(condition: &Match) -> String {
    match condition {
        Match::Owner(uid) => format!("meta skuid {uid}"),
        Match::OtherOwner(uid) => format!("meta skuid != {uid}"),
        Match::FromLoopback => format!("iifname \"{LOOPBACK}\""),
        Match::ToLoopback => format!("oifname \"{LOOPBACK}\""),
        Match::ToElsewhere => format!("oifname != \"{LOOPBACK}\""),
        Match::Ipv6 => "meta nfproto ipv6".to_owned(),
        Match::FromForeignAddress => "fib saddr type != local".to_owned(),
        Match::ToOwnAddress => "fib daddr type local".to_owned(),
        Match::To(net) => format!("{} daddr {}", network_header(net.addr()), range(*net)),
        Match::NotTo(address) => format!("{} daddr != {address}", network_header(*address)),
        Match::Transport(transport) => format!("meta l4proto {}", transport.word()),
        Match::NotTransport(transport) => format!("meta l4proto != {}", transport.word()),
        Match::SourcePort(transport, ports) => format!("{} sport {}", transport.word(), set(ports)),
        Match::DestinationPort(transport, ports) => format!("{} dport {}", transport.word(), set(ports)),
        Match::Syn => "tcp flags & syn == syn".to_owned(),
        Match::NoSyn => "tcp flags & syn == 0".to_owned(),
        Match::Invalid => "ct state invalid".to_owned(),
        Match::Established => "ct state established".to_owned(),
        Match::EstablishedOrRelated => "ct state established,related".to_owned(),
        Match::Reply => "ct direction reply".to_owned(),
        Match::Original => "ct direction original".to_owned(),
        Match::DestinationRewritten => "ct status dnat".to_owned(),
        Match::Discovery(types) => format!("icmpv6 type {}", set(types.iter().map(|one| one.word()))),
    }
}

fn verdict(verdict: Verdict) -> String {
    match verdict {
        Verdict::Accept => "accept".to_owned(),
        Verdict::Drop => "drop".to_owned(),
        Verdict::TrackApart => format!("ct original zone set {ZONE}"),
        Verdict::Reject(Refusal::PortUnreachable) => "reject with icmpx port-unreachable".to_owned(),
        Verdict::Reject(Refusal::AdminProhibited) => "reject with icmpx admin-prohibited".to_owned(),
        Verdict::Redirect(port) => format!("redirect to :{port}"),
    }
}

fn network_header(address: IpAddr) -> &'static str {
    if address.is_ipv4() { "ip" } else { "ip6" }
}

/// A range; of one address without its prefix length.
fn range(net: IpNet) -> String {
    if net.prefix_len() == net.max_prefix_len() { net.addr().to_string() } else { net.to_string() }
}

/// A set; of one element without braces.
fn set(elements: impl IntoIterator<Item = impl Display>) -> String {
    let all: Vec<String> = elements.into_iter().map(|element| element.to_string()).collect();
    match all.as_slice() {
        [one] => one.clone(),
        _ => format!("{{ {} }}", all.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::redirect::plan::{Ipv6, Ports};

    fn plan(inbound: &[u16]) -> Plan {
        Plan::new(61_234, Ports::default(), inbound).unwrap()
    }

    #[test]
    fn the_default_plan() {
        insta::assert_snapshot!(text(&plan(&[])));
    }

    #[test]
    fn declared_ports_and_reverse_listeners_join_their_sets() {
        let ports = Ports { reverse: vec![15_003], ..Ports::default() };
        let text = text(&Plan::new(61_234, ports, &[9_090, 8_080]).unwrap());
        assert!(text.contains("tcp dport { 8080, 9090, 15090 } accept"), "{text}");
        assert!(text.contains("tcp sport { 15001, 15002, 15003, 15053, 15090 } tcp flags"), "{text}");
    }

    #[test]
    fn a_plan_without_ipv6_nat() {
        insta::assert_snapshot!(text(&plan(&[8_080]).with_ipv6(Ipv6::Rejected)));
    }
}
