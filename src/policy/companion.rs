//! Which companions count: hosts that agents dial beside a provider that a policy opens, and that no rule names.
//!
//! A companion is denied like every host that no rule allows. It only gets its refusal inside TLS, where the agent can
//! read it, instead of a name that does not resolve or a connection that is reset.

use std::collections::BTreeSet;

use crate::call::{Companion, Dialect, ProviderHosts};

use super::compile::{Mode, Policy};
use super::destination::Sight;
use super::document::{Action, Destination, Document, Provider};
use super::index::Cover;
use super::pattern::Pattern;
use super::rule::{Rule, Subject};
use crate::decision::Enforcement;
use crate::name::host::{DnsName, Host};

impl Policy {
    /// The same policy, with those hosts of the table for which it opens a provider and that none of its rules names.
    #[must_use]
    pub fn accompanied(mut self, table: &[Companion]) -> Self {
        let rules = self.rules.iter().filter(|rule| !rule.audit);
        let rules = rules.map(|rule| (rule.action, patterns(rule), rule.dialect()));
        self.companions = if self.enforces() { Named::of(rules).companions(table) } else { BTreeSet::new() };
        self
    }

    /// The companions that count, in order.
    pub fn companions(&self) -> impl Iterator<Item = &DnsName> {
        self.companions.iter()
    }

    /// Whether agents dial this host beside a provider that the policy opens, and no rule names it.
    pub fn accompanies(&self, host: &DnsName) -> bool {
        self.companions.contains(host)
    }

    /// Whether policies that are enforced select the pod.
    pub fn enforces(&self) -> bool {
        matches!(self.mode, Mode::Enforced { .. })
    }

    /// Whether a rule that decides names this host exactly, whatever it says of it.
    pub fn names_exactly(&self, host: &DnsName) -> bool {
        let mut named = false;
        self.index.walk(Some(host), None, |cover, group| {
            named |= cover == Cover::Exact && self.visible(group, Sight::Enforced).next().is_some();
        });
        named
    }
}

/// The companions of all pods that these documents may select, together or one by one: those for which their common CA
/// may vouch. One that has a tunnelled name in or below it is none: TLS is end to end there, and whoever may vouch for a
/// name may vouch for all below it.
pub fn companions(documents: &[Document], table: &[Companion]) -> BTreeSet<DnsName> {
    let enforced = documents.iter().filter(|document| document.spec.enforcement != Some(Enforcement::Audit));
    let mut companions: BTreeSet<DnsName> = enforced
        .flat_map(|document| {
            let rules = document.spec.destinations.iter().filter_map(|destination| {
                let dialect = destination.provider.and_then(Provider::dialect);
                Some((destination.action?, written(destination), dialect))
            });
            Named::of(rules).companions(table)
        })
        .collect();
    let destinations = documents.iter().flat_map(|document| &document.spec.destinations);
    for tunnelled in destinations.filter(|one| one.action == Some(Action::Tunnel)).flat_map(written) {
        companions.retain(|name| !reaches(&tunnelled, name));
    }
    companions
}

/// Whether a pattern covers a name, or names below it.
fn reaches(pattern: &Pattern, name: &DnsName) -> bool {
    match pattern {
        Pattern::Every => true,
        Pattern::Ip(_) => false,
        Pattern::Exact(own) | Pattern::OneLabel(own) | Pattern::Labels(own) => {
            let before = own.as_str().strip_suffix(name.as_str());
            before.is_some_and(|before| before.is_empty() || before.ends_with('.'))
                || pattern.matches(&Host::Name(name.clone()))
        }
    }
}

fn patterns(rule: &Rule) -> Vec<Pattern> {
    match &rule.subject {
        Subject::Hosts(patterns) => patterns.clone(),
        Subject::Nets(_) => Vec::new(),
    }
}

fn written(destination: &Destination) -> Vec<Pattern> {
    destination.hosts.iter().flatten().filter_map(|text| Pattern::parse(text).ok()).collect()
}

/// What rules name.
#[derive(Default)]
struct Named {
    /// Hosts that rules open by Inspect or Tunnel, but for "every host", which names nobody.
    opened: Vec<Pattern>,
    /// What rules say is spoken at hosts that they open.
    dialects: Vec<Dialect>,
    /// Exact names of rules of every action.
    exact: BTreeSet<DnsName>,
}

impl Named {
    fn of(rules: impl Iterator<Item = (Action, Vec<Pattern>, Option<Dialect>)>) -> Self {
        let mut named = Self::default();
        for (action, patterns, dialect) in rules {
            for pattern in patterns {
                if let Pattern::Exact(name) = &pattern {
                    named.exact.insert(name.clone());
                }
                if action != Action::Deny && pattern != Pattern::Every {
                    named.opened.push(pattern);
                }
            }
            named.dialects.extend(dialect);
        }
        named
    }

    fn companions(&self, table: &[Companion]) -> BTreeSet<DnsName> {
        let beside = table.iter().filter(|companion| companion.beside.iter().any(|one| self.opens(one)));
        let names = beside.filter_map(|companion| DnsName::parse(companion.host).ok());
        names.filter(|name| !self.exact.contains(name)).collect()
    }

    fn opens(&self, provider: &ProviderHosts) -> bool {
        let hosts = || provider.hosts.iter().filter_map(|host| Pattern::parse(host).ok());
        provider.dialects.iter().any(|dialect| self.dialects.contains(dialect))
            || hosts().any(|host| self.opened.iter().any(|opened| meet(opened, &host)))
    }
}

/// Whether one of two patterns covers hosts of the other.
fn meet(one: &Pattern, other: &Pattern) -> bool {
    covers(one, other) || covers(other, one)
}

fn covers(wide: &Pattern, narrow: &Pattern) -> bool {
    match (wide, narrow) {
        (_, Pattern::Exact(name)) => wide.matches(&Host::Name(name.clone())),
        (Pattern::OneLabel(own), Pattern::OneLabel(suffix) | Pattern::Labels(suffix)) => own == suffix,
        (Pattern::Labels(own), Pattern::OneLabel(suffix) | Pattern::Labels(suffix)) => {
            own == suffix || wide.matches(&Host::Name(suffix.clone()))
        }
        (Pattern::Every | Pattern::Exact(_) | Pattern::Ip(_), _) | (_, Pattern::Every | Pattern::Ip(_)) => {
            false
        }
    }
}
