//! A plan in the syntax of `iptables-restore` and `ip6tables-restore`: our own chains, and jumps to them from the first place of the built-in ones.
//!
//! Where the plan accepts, our chains return: what others forbid after us stays forbidden.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::net::IpAddr;

use super::chains::{FILTER_INPUT, FILTER_OUTPUT, NAT_OUTPUT, POSTROUTING, RAW_OUTPUT, ZONE};
use super::plan::Plan;
use super::rule::{Family, LOOPBACK, Match, Refusal, Rule, Transport, Verdict};

/// What the names of our chains begin with.
pub const CHAIN_PREFIX: &str = "POSTERN_";

/// The most ports that one `multiport` takes.
const MULTIPORT: usize = 15;

/// Where a chain of the plan is in iptables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The chain's name in the plan.
    pub planned: &'static str,
    pub table: &'static str,
    pub chain: &'static str,
    /// The built-in chain that jumps to it.
    pub built_in: &'static str,
}

/// All of them, in the order in which their tables are committed: each is committed by itself, and with the filter
/// first nothing passes that is not redirected yet. The filter table has no POSTROUTING; mangle's is before any
/// rewriting of sources too.
pub const PLACES: [Place; 5] = [
    Place { planned: FILTER_OUTPUT, table: "filter", chain: "POSTERN_OUTPUT", built_in: "OUTPUT" },
    Place { planned: FILTER_INPUT, table: "filter", chain: "POSTERN_INPUT", built_in: "INPUT" },
    Place { planned: POSTROUTING, table: "mangle", chain: "POSTERN_POSTROUTING", built_in: "POSTROUTING" },
    Place { planned: RAW_OUTPUT, table: "raw", chain: "POSTERN_OUTPUT", built_in: "OUTPUT" },
    Place { planned: NAT_OUTPUT, table: "nat", chain: "POSTERN_OUTPUT", built_in: "OUTPUT" },
];

/// One of our chains as a plan has it in a family.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chain {
    pub place: Place,
    /// Reasons and rules, a rule without its `-A CHAIN`.
    pub rules: Vec<(&'static str, String)>,
}

/// The chains of a plan in a family; in IPv6 without nat that one is left out.
pub fn chains(plan: &Plan, family: Family) -> Vec<Chain> {
    let planned = plan.chains();
    let of_place = |place: Place| {
        let chain = planned.iter().find(|chain| chain.name == place.planned)?;
        let spoken = chain.table == super::rule::TableFamily::Inet || family == Family::V4;
        let in_family = chain.rules.iter().filter(|rule| rule.family().is_none_or(|one| one == family));
        let rules = in_family
            .flat_map(|rule| lines(rule, family).into_iter().map(|line| (rule.reason, line)))
            .collect();
        spoken.then_some(Chain { place, rules })
    };
    PLACES.into_iter().filter_map(of_place).collect()
}

/// The input that programs a plan over whatever of ours is there, with `--noflush`; `jumps` are the jumps to our
/// chains that stand now.
pub fn text(plan: &Plan, family: Family, jumps: &[Place]) -> String {
    let chains = chains(plan, family);
    tables(&chains.iter().map(|chain| chain.place).collect::<Vec<_>>(), jumps, |place| {
        let mut text = String::new();
        let rules = chains.iter().filter(|chain| chain.place == *place).flat_map(|chain| &chain.rules);
        let mut said = "";
        for (reason, rule) in rules {
            if *reason != said {
                let _ = writeln!(text, "# {reason}");
                said = reason;
            }
            let _ = writeln!(text, "-A {} {rule}", place.chain);
        }
        let _ = writeln!(text, "-I {} 1 -j {}", place.built_in, place.chain);
        text
    })
}

/// The input that removes these chains of ours and all jumps to them.
pub fn removal(places: &[Place], jumps: &[Place]) -> String {
    tables(places, jumps, |place| format!("-X {}\n", place.chain))
}

/// Tables with their chains emptied, the jumps of before removed, and what follows for each chain.
fn tables(places: &[Place], jumps: &[Place], body: impl Fn(&Place) -> String) -> String {
    let mut text = String::new();
    for table in ["filter", "mangle", "raw", "nat"] {
        let here: Vec<&Place> = places.iter().filter(|place| place.table == table).collect();
        if here.is_empty() {
            continue;
        }
        let _ = writeln!(text, "*{table}");
        for place in &here {
            // With --noflush this makes the chain, or empties it where it is.
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

/// A rule as lines: iptables has no sets, and bounds the ports of one line.
fn lines(rule: &Rule, family: Family) -> Vec<String> {
    let mut lines = vec![String::new()];
    for condition in &rule.matches {
        let alternatives = options(condition);
        lines = lines.iter().flat_map(|line| alternatives.iter().map(move |one| joined(line, one))).collect();
    }
    lines.iter().map(|line| joined(line, &target(rule.verdict, family))).collect()
}

/// Two parts of a line; the protocol is said once.
fn joined(line: &str, part: &str) -> String {
    let part = match part.strip_prefix("-p tcp ") {
        Some(rest) if line.starts_with("-p tcp ") => rest,
        _ => part,
    };
    [line, part].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
}

/// A match as options; several where it takes several lines.
fn options(condition: &Match) -> Vec<String> {
    let one = |text: &str| vec![text.to_owned()];
    match condition {
        Match::Owner(uid) => vec![format!("-m owner --uid-owner {uid}")],
        Match::OtherOwner(uid) => vec![format!("-m owner ! --uid-owner {uid} --socket-exists")],
        Match::FromLoopback => vec![format!("-i {LOOPBACK}")],
        Match::ToLoopback => vec![format!("-o {LOOPBACK}")],
        Match::ToElsewhere => vec![format!("! -o {LOOPBACK}")],
        // The rule stands in ip6tables alone.
        Match::Ipv6 => one(""),
        Match::FromForeignAddress => one("-m addrtype ! --src-type LOCAL"),
        Match::ToOwnAddress => one("-m addrtype --dst-type LOCAL"),
        Match::To(net) => vec![format!("-d {net}")],
        Match::NotTo(address @ IpAddr::V4(_)) => vec![format!("! -d {address}/32")],
        Match::NotTo(address @ IpAddr::V6(_)) => vec![format!("! -d {address}/128")],
        Match::Transport(transport) => vec![format!("-p {}", transport.word())],
        Match::NotTransport(transport) => vec![format!("! -p {}", transport.word())],
        Match::SourcePort(transport, ports) => of_ports(*transport, "sport", ports),
        Match::DestinationPort(transport, ports) => of_ports(*transport, "dport", ports),
        Match::Syn => one("-p tcp -m tcp --tcp-flags SYN SYN"),
        Match::NoSyn => one("-p tcp -m tcp --tcp-flags SYN NONE"),
        Match::Invalid => one("-m conntrack --ctstate INVALID"),
        Match::Established => one("-m conntrack --ctstate ESTABLISHED"),
        Match::EstablishedOrRelated => one("-m conntrack --ctstate RELATED,ESTABLISHED"),
        Match::Reply => one("-m conntrack --ctdir REPLY"),
        Match::Original => one("-m conntrack --ctdir ORIGINAL"),
        Match::DestinationRewritten => one("-m conntrack --ctstate DNAT"),
        Match::Discovery(messages) => messages
            .iter()
            .map(|message| format!("-p ipv6-icmp -m icmp6 --icmpv6-type {}", message.number()))
            .collect(),
    }
}

fn of_ports(transport: Transport, word: &str, ports: &BTreeSet<u16>) -> Vec<String> {
    let transport = transport.word();
    let all: Vec<String> = ports.iter().map(ToString::to_string).collect();
    match all.as_slice() {
        [only] => vec![format!("-p {transport} -m {transport} --{word} {only}")],
        _ => all
            .chunks(MULTIPORT)
            .map(|chunk| format!("-p {transport} -m multiport --{word}s {}", chunk.join(",")))
            .collect(),
    }
}

fn target(verdict: Verdict, family: Family) -> String {
    let target = match (verdict, family) {
        (Verdict::Accept, _) => "RETURN",
        (Verdict::Drop, _) => "DROP",
        (Verdict::TrackApart, _) => return format!("-j CT --zone-orig {ZONE}"),
        (Verdict::Reject(Refusal::PortUnreachable), Family::V4) => {
            "REJECT --reject-with icmp-port-unreachable"
        }
        (Verdict::Reject(Refusal::PortUnreachable), Family::V6) => {
            "REJECT --reject-with icmp6-port-unreachable"
        }
        (Verdict::Reject(Refusal::AdminProhibited), Family::V4) => {
            "REJECT --reject-with icmp-admin-prohibited"
        }
        (Verdict::Reject(Refusal::AdminProhibited), Family::V6) => {
            "REJECT --reject-with icmp6-adm-prohibited"
        }
        (Verdict::Redirect(port), _) => return format!("-j REDIRECT --to-ports {port}"),
    };
    format!("-j {target}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::redirect::plan::{Ipv6, Ports};

    fn plan(inbound: &[u16]) -> Plan {
        Plan::new(61_234, Ports::default(), inbound).unwrap()
    }

    #[test]
    fn the_default_plan_of_ipv4() {
        insta::assert_snapshot!(text(&plan(&[]), Family::V4, &[]));
    }

    #[test]
    fn the_plan_of_ipv6_with_inbound_ports() {
        insta::assert_snapshot!(text(&plan(&[8080, 9090]), Family::V6, &[]));
    }

    #[test]
    fn a_plan_of_ipv6_without_nat() {
        insta::assert_snapshot!(text(&plan(&[]).with_ipv6(Ipv6::Rejected), Family::V6, &[]));
    }

    #[test]
    fn ports_beyond_what_one_line_takes_are_said_in_several() {
        let inbound: Vec<u16> = (8_000..8_030).collect();
        let text = text(&plan(&inbound), Family::V4, &[]);
        let lines: Vec<&str> = text.lines().filter(|line| line.contains("--dport")).collect();
        let of_input = lines.iter().filter(|line| line.starts_with("-A POSTERN_INPUT"));
        let listed: Vec<usize> =
            of_input.map(|line| line.split("--dport").nth(1).unwrap().split(',').count()).collect();
        assert_eq!(listed, [15, 15, 1], "{lines:?}");
    }

    #[test]
    fn the_jumps_of_before_are_removed_before_the_new_ones_are_inserted() {
        let [filter_output, ..] = PLACES;
        let text = text(&plan(&[]), Family::V4, &[filter_output, filter_output]);
        let at = |needle: &str| text.find(needle).unwrap_or(usize::MAX);
        assert_eq!(text.matches("-D OUTPUT -j POSTERN_OUTPUT").count(), 2);
        assert!(at("-D OUTPUT") < at("-I OUTPUT 1 -j POSTERN_OUTPUT"));
        assert!(at("*filter") < at("*mangle") && at("*mangle") < at("*nat"));
    }
}
