//! A plan in the syntax of `iptables-restore` and `ip6tables-restore`: our own chains, each jumped to by the first rule of a built-in one.
//!
//! Where the plan accepts, our chains return, so that what others forbid after us stays forbidden.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::net::IpAddr;

use super::chains::{FILTER_INPUT, FILTER_OUTPUT, NAT_OUTPUT, POSTROUTING, RAW_OUTPUT, ZONE};
use super::plan::RedirectPlan;
use super::rule::{IcmpError, IpFamily, LOOPBACK, PacketMatch, PacketVerdict, PlannedRule, Transport};

/// What the names of our chains begin with.
pub const CHAIN_PREFIX: &str = "POSTERN_";

/// The most ports that one `multiport` takes.
const MULTIPORT: usize = 15;

/// The table and chain of iptables that hold a chain of the plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChainPlace {
    /// The chain's name in the plan.
    pub planned: &'static str,
    pub table: &'static str,
    pub chain: &'static str,
    /// The built-in chain that jumps to it.
    pub built_in: &'static str,
}

/// All of them, in the order in which their tables are committed. Each table is committed by itself: with the filter
/// first, nothing leaves before it is redirected. The filter table has no POSTROUTING; mangle's also runs before
/// sources are rewritten.
pub const PLACES: [ChainPlace; 5] = [
    ChainPlace { planned: FILTER_OUTPUT, table: "filter", chain: "POSTERN_OUTPUT", built_in: "OUTPUT" },
    ChainPlace { planned: FILTER_INPUT, table: "filter", chain: "POSTERN_INPUT", built_in: "INPUT" },
    ChainPlace {
        planned: POSTROUTING,
        table: "mangle",
        chain: "POSTERN_POSTROUTING",
        built_in: "POSTROUTING",
    },
    ChainPlace { planned: RAW_OUTPUT, table: "raw", chain: "POSTERN_OUTPUT", built_in: "OUTPUT" },
    ChainPlace { planned: NAT_OUTPUT, table: "nat", chain: "POSTERN_OUTPUT", built_in: "OUTPUT" },
];

/// One of our chains, as a plan has it in one address family.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IptablesChain {
    pub place: ChainPlace,
    /// Each rule without its `-A CHAIN`, behind its reason.
    pub rules: Vec<(&'static str, String)>,
}

/// The chains of a plan in one family. IPv6 without nat has no nat chain.
pub fn chains(plan: &RedirectPlan, family: IpFamily) -> Vec<IptablesChain> {
    let planned = plan.chains();
    let of_place = |place: ChainPlace| {
        let chain = planned.iter().find(|chain| chain.name == place.planned)?;
        let has_family = chain.table == super::rule::TableFamily::Inet || family == IpFamily::V4;
        let in_family = chain.rules.iter().filter(|rule| rule.family().is_none_or(|its| its == family));
        let rules = in_family
            .flat_map(|rule| lines(rule, family).into_iter().map(|line| (rule.reason, line)))
            .collect();
        has_family.then_some(IptablesChain { place, rules })
    };
    PLACES.into_iter().filter_map(of_place).collect()
}

/// The input that replaces our rules by a plan, with `--noflush`; `jumps` are the jumps to our chains that exist now.
pub fn text(plan: &RedirectPlan, family: IpFamily, jumps: &[ChainPlace]) -> String {
    let chains = chains(plan, family);
    tables(&chains.iter().map(|chain| chain.place).collect::<Vec<_>>(), jumps, |place| {
        let mut text = String::new();
        let rules = chains.iter().filter(|chain| chain.place == *place).flat_map(|chain| &chain.rules);
        let mut last_reason = "";
        for (reason, rule) in rules {
            if *reason != last_reason {
                let _ = writeln!(text, "# {reason}");
                last_reason = reason;
            }
            let _ = writeln!(text, "-A {} {rule}", place.chain);
        }
        let _ = writeln!(text, "-I {} 1 -j {}", place.built_in, place.chain);
        text
    })
}

/// The input that removes these chains of ours and all jumps to them.
pub fn removal(places: &[ChainPlace], jumps: &[ChainPlace]) -> String {
    tables(places, jumps, |place| format!("-X {}\n", place.chain))
}

/// Writes each table: its chains emptied, the former jumps removed, then `body` for each chain.
fn tables(places: &[ChainPlace], jumps: &[ChainPlace], body: impl Fn(&ChainPlace) -> String) -> String {
    let mut text = String::new();
    for table in ["filter", "mangle", "raw", "nat"] {
        let here: Vec<&ChainPlace> = places.iter().filter(|place| place.table == table).collect();
        if here.is_empty() {
            continue;
        }
        let _ = writeln!(text, "*{table}");
        for place in &here {
            // With --noflush this creates the chain, or empties it where it exists.
            let _ = writeln!(text, ":{} - [0:0]", place.chain);
        }
        for jump in jumps.iter().filter(|jump| here.contains(jump)) {
            let _ = writeln!(text, "-D {} -j {}", jump.built_in, jump.chain);
        }
        here.iter().for_each(|place| text.push_str(&body(place)));
        text.push_str("COMMIT\n");
    }
    text
}

/// A rule as lines, one for each combination of alternatives: iptables has no sets, and bounds the ports of one line.
fn lines(rule: &PlannedRule, family: IpFamily) -> Vec<String> {
    let mut lines = vec![String::new()];
    for condition in &rule.matches {
        let alternatives = options(condition);
        lines =
            lines.iter().flat_map(|line| alternatives.iter().map(move |part| joined(line, part))).collect();
    }
    lines.iter().map(|line| joined(line, &target(rule.verdict, family))).collect()
}

/// Joins two parts of a line. iptables refuses a second `-p`.
fn joined(line: &str, part: &str) -> String {
    let part = match part.strip_prefix("-p tcp ") {
        Some(rest) if line.starts_with("-p tcp ") => rest,
        _ => part,
    };
    [line, part].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
}

/// A match as options; several where it needs several lines.
fn options(condition: &PacketMatch) -> Vec<String> {
    let single = |text: &str| vec![text.to_owned()];
    match condition {
        PacketMatch::Owner(uid) => vec![format!("-m owner --uid-owner {uid}")],
        PacketMatch::OtherOwner(uid) => vec![format!("-m owner ! --uid-owner {uid} --socket-exists")],
        PacketMatch::FromLoopback => vec![format!("-i {LOOPBACK}")],
        PacketMatch::ToLoopback => vec![format!("-o {LOOPBACK}")],
        PacketMatch::ToElsewhere => vec![format!("! -o {LOOPBACK}")],
        // Such a rule is only written for ip6tables.
        PacketMatch::Ipv6 => single(""),
        PacketMatch::FromForeignAddress => single("-m addrtype ! --src-type LOCAL"),
        PacketMatch::ToOwnAddress => single("-m addrtype --dst-type LOCAL"),
        PacketMatch::To(net) => vec![format!("-d {net}")],
        PacketMatch::NotTo(address @ IpAddr::V4(_)) => vec![format!("! -d {address}/32")],
        PacketMatch::NotTo(address @ IpAddr::V6(_)) => vec![format!("! -d {address}/128")],
        PacketMatch::Transport(transport) => vec![format!("-p {}", transport.word())],
        PacketMatch::NotTransport(transport) => vec![format!("! -p {}", transport.word())],
        PacketMatch::SourcePort(transport, ports) => of_ports(*transport, "sport", ports),
        PacketMatch::DestinationPort(transport, ports) => of_ports(*transport, "dport", ports),
        PacketMatch::Syn => single("-p tcp -m tcp --tcp-flags SYN SYN"),
        PacketMatch::NoSyn => single("-p tcp -m tcp --tcp-flags SYN NONE"),
        PacketMatch::Invalid => single("-m conntrack --ctstate INVALID"),
        PacketMatch::Established => single("-m conntrack --ctstate ESTABLISHED"),
        PacketMatch::EstablishedOrRelated => single("-m conntrack --ctstate RELATED,ESTABLISHED"),
        PacketMatch::Reply => single("-m conntrack --ctdir REPLY"),
        PacketMatch::Original => single("-m conntrack --ctdir ORIGINAL"),
        PacketMatch::DestinationRewritten => single("-m conntrack --ctstate DNAT"),
        PacketMatch::Discovery(messages) => messages
            .iter()
            .map(|message| format!("-p ipv6-icmp -m icmp6 --icmpv6-type {}", message.number()))
            .collect(),
    }
}

fn of_ports(transport: Transport, word: &str, ports: &BTreeSet<u16>) -> Vec<String> {
    let transport = transport.word();
    let ports: Vec<String> = ports.iter().map(ToString::to_string).collect();
    match ports.as_slice() {
        [only] => vec![format!("-p {transport} -m {transport} --{word} {only}")],
        _ => ports
            .chunks(MULTIPORT)
            .map(|chunk| format!("-p {transport} -m multiport --{word}s {}", chunk.join(",")))
            .collect(),
    }
}

fn target(verdict: PacketVerdict, family: IpFamily) -> String {
    let target = match (verdict, family) {
        (PacketVerdict::Accept, _) => "RETURN",
        (PacketVerdict::Drop, _) => "DROP",
        (PacketVerdict::TrackApart, _) => return format!("-j CT --zone-orig {ZONE}"),
        (PacketVerdict::Reject(IcmpError::PortUnreachable), IpFamily::V4) => {
            "REJECT --reject-with icmp-port-unreachable"
        }
        (PacketVerdict::Reject(IcmpError::PortUnreachable), IpFamily::V6) => {
            "REJECT --reject-with icmp6-port-unreachable"
        }
        (PacketVerdict::Reject(IcmpError::AdminProhibited), IpFamily::V4) => {
            "REJECT --reject-with icmp-admin-prohibited"
        }
        (PacketVerdict::Reject(IcmpError::AdminProhibited), IpFamily::V6) => {
            "REJECT --reject-with icmp6-adm-prohibited"
        }
        (PacketVerdict::Redirect(port), _) => return format!("-j REDIRECT --to-ports {port}"),
    };
    format!("-j {target}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::redirect::plan::{GatewayPorts, Ipv6};

    fn plan(inbound: &[u16]) -> RedirectPlan {
        RedirectPlan::new(61_234, GatewayPorts::default(), inbound).unwrap()
    }

    #[test]
    fn the_default_plan_of_ipv4() {
        insta::assert_snapshot!(text(&plan(&[]), IpFamily::V4, &[]));
    }

    #[test]
    fn the_plan_of_ipv6_with_inbound_ports() {
        insta::assert_snapshot!(text(&plan(&[8080, 9090]), IpFamily::V6, &[]));
    }

    #[test]
    fn a_plan_of_ipv6_without_nat() {
        insta::assert_snapshot!(text(&plan(&[]).with_ipv6(Ipv6::Rejected), IpFamily::V6, &[]));
    }

    #[test]
    fn ports_beyond_what_one_line_takes_are_said_in_several() {
        let inbound: Vec<u16> = (8_000..8_030).collect();
        let text = text(&plan(&inbound), IpFamily::V4, &[]);
        let lines: Vec<&str> = text.lines().filter(|line| line.contains("--dport")).collect();
        let of_input = lines.iter().filter(|line| line.starts_with("-A POSTERN_INPUT"));
        let listed: Vec<usize> =
            of_input.map(|line| line.split("--dport").nth(1).unwrap().split(',').count()).collect();
        assert_eq!(listed, [15, 15, 1], "{lines:?}");
    }

    #[test]
    fn the_jumps_of_before_are_removed_before_the_new_ones_are_inserted() {
        let [filter_output, ..] = PLACES;
        let text = text(&plan(&[]), IpFamily::V4, &[filter_output, filter_output]);
        let at = |needle: &str| text.find(needle).unwrap_or(usize::MAX);
        assert_eq!(text.matches("-D OUTPUT -j POSTERN_OUTPUT").count(), 2);
        assert!(at("-D OUTPUT") < at("-I OUTPUT 1 -j POSTERN_OUTPUT"));
        assert!(at("*filter") < at("*mangle") && at("*mangle") < at("*nat"));
    }
}
