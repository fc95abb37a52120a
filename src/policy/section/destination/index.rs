//! Finds the rules about a name or an address without looking at the others.

use std::collections::HashMap;
use std::net::IpAddr;

use ipnet::IpNet;

use super::rule::{DestinationRule, RuleTarget};
use crate::name::host::DnsName;
use crate::policy::pattern::Pattern;

/// Numbers of rules that are equally specific, in the order of the rules.
type Group = Vec<usize>;

/// The rules by their hosts and ranges.
#[derive(Debug, Default)]
pub(super) struct Index {
    exact: HashMap<DnsName, Group>,
    one_label: HashMap<DnsName, Group>,
    labels: HashMap<DnsName, Group>,
    /// How many labels the longest key of `labels` has: longer suffixes need not be looked up.
    labels_depth: usize,
    every: Group,
    addresses: HashMap<IpAddr, Group>,
    /// By prefix length, the longest first.
    nets: Vec<(u8, HashMap<IpNet, Group>)>,
}

/// How a group covers a name or an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cover {
    /// By the exact name, or the address literal in `hosts`.
    Exact,
    Wildcard,
    Net(IpNet),
}

impl Index {
    pub(super) fn new(rules: &[DestinationRule]) -> Self {
        let mut index = Self::default();
        for (number, rule) in rules.iter().enumerate() {
            match &rule.subject {
                RuleTarget::Hosts(patterns) => {
                    patterns.iter().for_each(|pattern| index.add_host(pattern, number))
                }
                RuleTarget::Nets(nets) => nets.iter().for_each(|net| index.add_net(*net, number)),
            }
        }
        index.nets.sort_by_key(|(length, _)| std::cmp::Reverse(*length));
        index
    }

    /// Calls `see` with the groups that cover a name or, without a name, an address: the most specific first.
    pub(super) fn walk<'a>(
        &'a self,
        name: Option<&DnsName>,
        address: Option<IpAddr>,
        mut see: impl FnMut(Cover, &'a [usize]),
    ) {
        match (name, address) {
            (Some(name), _) => self.walk_name(name, &mut see),
            (None, Some(ip)) => {
                if let Some(group) = self.addresses.get(&ip) {
                    see(Cover::Exact, group);
                }
                self.walk_nets(ip, &mut see);
            }
            (None, None) => {}
        }
    }

    // The most specific first: `a.b.example.com`, `*.b.example.com`, `**.b.example.com`, `**.example.com`, `**`.
    fn walk_name<'a>(&'a self, name: &DnsName, see: &mut impl FnMut(Cover, &'a [usize])) {
        if let Some(group) = self.exact.get(name) {
            see(Cover::Exact, group);
        }
        if let Some(group) = name.parent().and_then(|parent| self.one_label.get(parent)) {
            see(Cover::Wildcard, group);
        }
        // `**.example.com` covers names below it alone: only what follows a dot is looked up.
        if self.labels_depth > 0 {
            let dots = name.as_str().match_indices('.');
            let skipped = dots.clone().count().saturating_sub(self.labels_depth);
            for (at, _) in dots.skip(skipped) {
                let suffix = name.as_str().get(at + 1..).unwrap_or_default();
                if let Some(group) = self.labels.get(suffix) {
                    see(Cover::Wildcard, group);
                }
            }
        }
        if !self.every.is_empty() {
            see(Cover::Wildcard, &self.every);
        }
    }

    /// Calls `see` with the groups whose net holds the address, the longest prefix first.
    pub(super) fn walk_nets<'a>(&'a self, ip: IpAddr, see: &mut impl FnMut(Cover, &'a [usize])) {
        for (length, nets) in &self.nets {
            let Ok(net) = IpNet::new(ip, *length).map(|net| net.trunc()) else { continue };
            if let Some(group) = nets.get(&net) {
                see(Cover::Net(net), group);
            }
        }
    }

    fn add_host(&mut self, pattern: &Pattern, number: usize) {
        let group = match pattern {
            Pattern::Exact(name) => self.exact.entry(name.clone()).or_default(),
            Pattern::OneLabel(suffix) => self.one_label.entry(suffix.clone()).or_default(),
            Pattern::Labels(suffix) => {
                self.labels_depth = self.labels_depth.max(suffix.as_str().split('.').count());
                self.labels.entry(suffix.clone()).or_default()
            }
            Pattern::Every => &mut self.every,
            Pattern::Ip(ip) => self.addresses.entry(*ip).or_default(),
        };
        push_once(group, number);
    }

    fn add_net(&mut self, net: IpNet, number: usize) {
        let length = net.prefix_len();
        let at = self.nets.iter().position(|(known, _)| *known == length).unwrap_or_else(|| {
            self.nets.push((length, HashMap::new()));
            self.nets.len() - 1
        });
        if let Some((_, nets)) = self.nets.get_mut(at) {
            push_once(nets.entry(net).or_default(), number);
        }
    }
}

/// A rule that lists the same host twice counts once.
fn push_once(group: &mut Group, number: usize) {
    if group.last() != Some(&number) {
        group.push(number);
    }
}
