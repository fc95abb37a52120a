//! On which ports rules need to know what a flow shows (design section 5.3).

use std::collections::HashSet;

use super::rule::{Rule, Subject};
use super::written::Action;
use crate::policy::scope::{PolicyScope, Tier};

/// The ports of the rules of Enforce policies, and of all that select the pod.
#[derive(Debug, Default)]
pub(super) struct Ports {
    enforced: Needs,
    all: Needs,
}

/// What rules need on which ports.
#[derive(Debug, Default)]
pub(super) struct Needs {
    /// A rule about hosts looks at the first bytes: they may bring a name.
    pub(super) named: HashSet<u16>,
    /// The cluster inspects names. What shows none satisfies no such floor; a Deny by name is none, and closes no port.
    pub(super) floor: HashSet<u16>,
}

impl Ports {
    pub(super) fn new(rules: &[Rule]) -> Self {
        Self { enforced: Needs::new(rules.iter().filter(|rule| !rule.audit)), all: Needs::new(rules.iter()) }
    }

    pub(super) fn get(&self, scope: PolicyScope) -> &Needs {
        match scope {
            PolicyScope::Enforced => &self.enforced,
            PolicyScope::All => &self.all,
        }
    }
}

impl Needs {
    fn new<'a>(rules: impl Iterator<Item = &'a Rule>) -> Self {
        let mut needs = Self::default();
        for rule in rules {
            let is_looking = match rule.action {
                // An address is denied by where it is, whatever the bytes.
                Action::Deny => rule.has_names(),
                Action::Inspect | Action::Tunnel => matches!(rule.subject, Subject::Hosts(_)),
            };
            if is_looking {
                needs.named.extend(rule.sniffed_ports());
            }
            if rule.tier == Tier::Cluster && rule.action == Action::Inspect && rule.has_names() {
                needs.floor.extend(rule.sniffed_ports());
            }
        }
        needs
    }
}
