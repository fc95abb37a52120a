//! The output of `iptables-save` and `ip6tables-save`: which of our chains exist, how they differ from the plan, and whom others exempt.

use std::collections::BTreeSet;

use super::iptables::{self, CHAIN_PREFIX, ChainPlace, PLACES};
use super::owners::{ForeignOwner, Owned};
use super::plan::RedirectPlan;
use super::rule::IpFamily;

/// The tables of one family.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Saved {
    /// Table and name of every chain.
    chains: Vec<(String, String)>,
    rules: Vec<SavedRule>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct SavedRule {
    table: String,
    chain: String,
    options: BTreeSet<Vec<String>>,
}

impl Saved {
    /// Reads the output of a `-save` program.
    pub(super) fn parse(text: &str) -> Self {
        let mut saved = Self::default();
        let mut table = "";
        for line in text.lines() {
            if let Some(name) = line.strip_prefix('*') {
                table = name;
            } else if let Some(chain) = line.strip_prefix(':') {
                let name = chain.split_whitespace().next().unwrap_or_default();
                saved.chains.push((table.to_owned(), name.to_owned()));
            } else if let Some((chain, rule)) = line.strip_prefix("-A ").and_then(|rest| rest.split_once(' '))
            {
                let (table, chain) = (table.to_owned(), chain.to_owned());
                saved.rules.push(SavedRule { table, chain, options: options(rule) });
            }
        }
        saved
    }

    /// Our chains that exist.
    pub(super) fn ours(&self) -> Vec<ChainPlace> {
        let stands = |place: &ChainPlace| {
            self.chains.iter().any(|(table, chain)| table == place.table && chain == place.chain)
        };
        PLACES.into_iter().filter(stands).collect()
    }

    /// The jumps from built-in chains to ours, repeated ones too.
    pub(super) fn jumps(&self) -> Vec<ChainPlace> {
        let to_ours = |rule: &SavedRule| PLACES.into_iter().find(|place| is_jump(rule, place));
        self.rules.iter().filter_map(to_ours).collect()
    }

    /// The first rule of another program that matches socket owners.
    pub(super) fn foreign_owner(&self) -> Option<ForeignOwner> {
        self.rules.iter().filter(|rule| !rule.chain.starts_with(CHAIN_PREFIX)).find_map(|rule| {
            let owner = rule.options.iter().find(|option| option.iter().any(|word| is_owner(word)))?;
            let uid = owner.windows(2).find(|pair| pair.first().is_some_and(|word| word == "--uid-owner"));
            let uid = uid.and_then(|pair| pair.last()?.parse().ok());
            let owned = uid.map_or(Owned::Somebody, Owned::Uid);
            Some(ForeignOwner { table: rule.table.clone(), chain: rule.chain.clone(), owned })
        })
    }

    /// Every difference between our chains and a plan in this family, a sentence each.
    pub(super) fn differences(&self, plan: &RedirectPlan, family: IpFamily) -> Vec<String> {
        let chains = iptables::chains(plan, family);
        let expected = |place: &ChainPlace| chains.iter().any(|chain| chain.place == *place);
        let additional = self.ours().into_iter().filter(|place| !expected(place));
        let mut differences: Vec<String> =
            additional.map(|place| format!("{} is not of the plan", named(&place, family))).collect();
        for chain in &chains {
            differences.extend(self.chain_differences(chain, family));
        }
        differences
    }

    fn chain_differences(&self, chain: &iptables::IptablesChain, family: IpFamily) -> Vec<String> {
        let place = &chain.place;
        let shown = named(place, family);
        if !self.ours().contains(place) {
            return vec![format!("{shown} is missing")];
        }
        let mut differences = Vec::new();
        // A rule before our jump could accept the packet, and our chain would never see it.
        if !self.first(place).is_some_and(|rule| is_jump(rule, place)) {
            differences.push(format!(
                "the first rule of {} is not the jump to {shown}: whatever stands before it goes past us",
                place.built_in
            ));
        }
        let actual: Vec<_> = self.of_chain(place.table, place.chain).map(|rule| &rule.options).collect();
        for (number, (_, text)) in (1..).zip(&chain.rules) {
            if !actual.contains(&&options(text)) {
                differences.push(format!("rule {number} of {shown} is missing: {text}"));
            }
        }
        let expected: Vec<_> = chain.rules.iter().map(|(_, text)| options(text)).collect();
        for (number, rule) in (1..).zip(&actual) {
            if !expected.contains(rule) {
                differences.push(format!("rule {number} in {shown} is not of the plan"));
            }
        }
        if differences.is_empty() && !actual.into_iter().eq(&expected) {
            differences.push(format!("the rules of {shown} stand in another order or number"));
        }
        differences
    }

    /// The first rule of a built-in chain.
    fn first(&self, place: &ChainPlace) -> Option<&SavedRule> {
        self.of_chain(place.table, place.built_in).next()
    }

    fn of_chain(&self, table: &str, chain: &str) -> impl Iterator<Item = &SavedRule> {
        self.rules.iter().filter(move |rule| rule.table == table && rule.chain == chain)
    }
}

fn named(place: &ChainPlace, family: IpFamily) -> String {
    let program = match family {
        IpFamily::V4 => "iptables",
        IpFamily::V6 => "ip6tables",
    };
    format!("{} in table {} of {program}", place.chain, place.table)
}

/// Whether a rule is an unconditional jump from a built-in chain to ours.
fn is_jump(rule: &SavedRule, place: &ChainPlace) -> bool {
    rule.table == place.table
        && rule.chain == place.built_in
        && rule.options == options(&format!("-j {}", place.chain))
}

fn is_owner(word: &str) -> bool {
    ["--uid-owner", "--gid-owner", "--socket-exists"].contains(&word)
}

/// A rule's options, each with its `!` and values, as a set: each variant prints them in an order of its own. The names
/// of matches (`-m`) add nothing.
fn options(rule: &str) -> BTreeSet<Vec<String>> {
    let mut options = BTreeSet::new();
    let mut current: Vec<String> = Vec::new();
    for word in rule.split_whitespace() {
        let begins = word == "!" || (word.starts_with('-') && current.as_slice() != ["!"]);
        if begins {
            options.insert(std::mem::take(&mut current));
        }
        current.push(word.to_owned());
    }
    options.insert(current);
    options.retain(|option| option.first().is_some_and(|word| word != "-m"));
    options
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::redirect::plan::{GatewayPorts, Ipv6};

    fn plan() -> RedirectPlan {
        RedirectPlan::new(61_234, GatewayPorts::default(), &[8080]).unwrap()
    }

    /// What `-save` prints where a plan is in force.
    fn in_force(plan: &RedirectPlan, family: IpFamily) -> String {
        let text = iptables::text(plan, family, &[]);
        let inserted = |line: &str| line.replace(" 1 -j", " -j").replace("-I ", "-A ");
        text.lines().filter(|line| !line.starts_with('#')).map(|line| inserted(line) + "\n").collect()
    }

    fn said(change: impl FnOnce(String) -> String) -> Vec<String> {
        let text = change(in_force(&plan(), IpFamily::V4));
        Saved::parse(&text).differences(&plan(), IpFamily::V4)
    }

    #[test]
    fn a_plan_in_force_differs_in_nothing() {
        for family in [IpFamily::V4, IpFamily::V6] {
            for plan in [plan(), plan().with_ipv6(Ipv6::Rejected)] {
                let saved = Saved::parse(&in_force(&plan, family));
                assert_eq!(saved.differences(&plan, family), Vec::<String>::new());
            }
        }
    }

    #[test]
    fn what_stands_before_our_jump_is_said() {
        let said = said(|text| {
            text.replacen("-A OUTPUT -j", "-A OUTPUT -m owner --uid-owner 5 -j ACCEPT\n-A OUTPUT -j", 1)
        });
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(
            said[0].starts_with("the first rule of OUTPUT is not the jump to POSTERN_OUTPUT"),
            "{said:?}"
        );
    }

    #[test]
    fn a_rule_that_is_missing_or_not_of_the_plan_is_named() {
        let missing =
            said(|text| text.replace("-A POSTERN_OUTPUT -o lo -m addrtype --dst-type LOCAL -j RETURN\n", ""));
        let sentence = "rule 9 of POSTERN_OUTPUT in table filter of iptables is missing: -o lo -m addrtype --dst-type LOCAL -j RETURN";
        assert_eq!(missing, [sentence]);
        let other = said(|text| text.replace("--to-ports 15001", "--to-ports 1"));
        assert_eq!(other.len(), 2, "{other:?}");
        assert!(other[1].ends_with("is not of the plan"), "{other:?}");
    }

    #[test]
    fn a_chain_that_is_missing_is_named() {
        let saved = Saved::default().differences(&plan(), IpFamily::V6);
        assert_eq!(saved[0], "POSTERN_OUTPUT in table filter of ip6tables is missing");
        assert_eq!(saved.len(), PLACES.len());
    }

    #[test]
    fn the_order_of_options_means_nothing_and_a_negation_does() {
        assert_eq!(options("-o lo -d 127.0.0.0/8 -j DROP"), options("-d 127.0.0.0/8 -o lo -j DROP"));
        assert_ne!(options("! -o lo -j DROP"), options("-o lo -j DROP"));
        assert_eq!(options("-p tcp -m tcp --dport 53 -j DROP"), options("-p tcp --dport 53 -j DROP"));
    }

    #[test]
    fn the_exemption_of_another_sidecar_is_found_and_ours_is_not() {
        let ours = Saved::parse(&in_force(&plan(), IpFamily::V4));
        assert_eq!(ours.foreign_owner(), None);
        let istio = Saved::parse(
            "*nat\n:OUTPUT ACCEPT [0:0]\n-A ISTIO_OUTPUT -m owner --uid-owner 1337 -j RETURN\nCOMMIT\n",
        );
        let found = istio.foreign_owner().unwrap();
        assert_eq!((found.chain.as_str(), found.owned), ("ISTIO_OUTPUT", Owned::Uid(1337)));
    }
}
