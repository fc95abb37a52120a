//! A plan in the syntax of `nft`: what `nft -f` loads and `--dry-run` prints.

use std::fmt::{Display, Write as _};
use std::net::IpAddr;

use ipnet::IpNet;

use super::chains::{TABLE, ZONE};
use super::plan::RedirectPlan;
use super::rule::{IcmpError, LOOPBACK, PacketMatch, PacketVerdict, PlannedChain, PlannedRule, TableFamily};

/// The plan as a file for `nft -f`, which replaces our tables in one transaction.
pub fn text(plan: &RedirectPlan) -> String {
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

fn chain(chain: &PlannedChain) -> String {
    let PlannedChain { name, kind, hook, priority, .. } = chain;
    let (kind, hook) = (kind.word(), hook.word());
    let mut text =
        format!("  chain {name} {{\n    type {kind} hook {hook} priority {priority}; policy accept;\n");
    let mut last_reason = "";
    for planned in &chain.rules {
        if planned.reason != last_reason {
            let _ = writeln!(text, "    # {}", planned.reason);
            last_reason = planned.reason;
        }
        let _ = writeln!(text, "    {}", rule(planned));
    }
    text + "  }\n"
}

/// One rule as `nft` writes it.
pub fn rule(rule: &PlannedRule) -> String {
    let counter = rule.counted.then(|| "counter".to_owned());
    let words = rule.matches.iter().map(condition).chain(counter).chain([verdict(rule.verdict)]);
    words.collect::<Vec<_>>().join(" ")
}

fn condition(condition: &PacketMatch) -> String {
    match condition {
        PacketMatch::Owner(uid) => format!("meta skuid {uid}"),
        PacketMatch::OtherOwner(uid) => format!("meta skuid != {uid}"),
        PacketMatch::FromLoopback => format!("iifname \"{LOOPBACK}\""),
        PacketMatch::ToLoopback => format!("oifname \"{LOOPBACK}\""),
        PacketMatch::ToElsewhere => format!("oifname != \"{LOOPBACK}\""),
        PacketMatch::Ipv6 => "meta nfproto ipv6".to_owned(),
        PacketMatch::FromForeignAddress => "fib saddr type != local".to_owned(),
        PacketMatch::ToOwnAddress => "fib daddr type local".to_owned(),
        PacketMatch::To(net) => format!("{} daddr {}", network_header(net.addr()), range(*net)),
        PacketMatch::NotTo(address) => format!("{} daddr != {address}", network_header(*address)),
        PacketMatch::Transport(transport) => format!("meta l4proto {}", transport.word()),
        PacketMatch::NotTransport(transport) => format!("meta l4proto != {}", transport.word()),
        PacketMatch::SourcePort(transport, ports) => format!("{} sport {}", transport.word(), set(ports)),
        PacketMatch::DestinationPort(transport, ports) => {
            format!("{} dport {}", transport.word(), set(ports))
        }
        PacketMatch::Syn => "tcp flags & syn == syn".to_owned(),
        PacketMatch::NoSyn => "tcp flags & syn == 0".to_owned(),
        PacketMatch::Invalid => "ct state invalid".to_owned(),
        PacketMatch::Established => "ct state established".to_owned(),
        PacketMatch::EstablishedOrRelated => "ct state established,related".to_owned(),
        PacketMatch::Reply => "ct direction reply".to_owned(),
        PacketMatch::Original => "ct direction original".to_owned(),
        PacketMatch::DestinationRewritten => "ct status dnat".to_owned(),
        PacketMatch::Discovery(types) => format!("icmpv6 type {}", set(types.iter().map(|one| one.word()))),
    }
}

fn verdict(verdict: PacketVerdict) -> String {
    match verdict {
        PacketVerdict::Accept => "accept".to_owned(),
        PacketVerdict::Drop => "drop".to_owned(),
        PacketVerdict::TrackApart => format!("ct original zone set {ZONE}"),
        PacketVerdict::Reject(IcmpError::PortUnreachable) => "reject with icmpx port-unreachable".to_owned(),
        PacketVerdict::Reject(IcmpError::AdminProhibited) => "reject with icmpx admin-prohibited".to_owned(),
        PacketVerdict::Redirect(port) => format!("redirect to :{port}"),
    }
}

fn network_header(address: IpAddr) -> &'static str {
    if address.is_ipv4() { "ip" } else { "ip6" }
}

/// A range; a single address without its prefix length.
fn range(net: IpNet) -> String {
    if net.prefix_len() == net.max_prefix_len() { net.addr().to_string() } else { net.to_string() }
}

/// A set; a single element without braces.
fn set(elements: impl IntoIterator<Item = impl Display>) -> String {
    let elements: Vec<String> = elements.into_iter().map(|element| element.to_string()).collect();
    match elements.as_slice() {
        [single] => single.clone(),
        _ => format!("{{ {} }}", elements.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::redirect::plan::{GatewayPorts, Ipv6};

    fn plan(inbound: &[u16]) -> RedirectPlan {
        RedirectPlan::new(61_234, GatewayPorts::default(), inbound).unwrap()
    }

    #[test]
    fn the_default_plan() {
        insta::assert_snapshot!(text(&plan(&[])));
    }

    #[test]
    fn declared_ports_and_reverse_listeners_join_their_sets() {
        let ports = GatewayPorts { reverse: vec![15_003], ..GatewayPorts::default() };
        let text = text(&RedirectPlan::new(61_234, ports, &[9_090, 8_080]).unwrap());
        assert!(text.contains("tcp dport { 8080, 9090, 15090 } accept"), "{text}");
        assert!(text.contains("tcp sport { 15001, 15002, 15003, 15053, 15090 } tcp flags"), "{text}");
    }

    #[test]
    fn a_plan_without_ipv6_nat() {
        insta::assert_snapshot!(text(&plan(&[8_080]).with_ipv6(Ipv6::Rejected)));
    }
}
