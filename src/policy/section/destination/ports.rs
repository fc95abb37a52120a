//! On which ports rules need the name that a flow shows (design section 5.3).

use std::collections::HashSet;

use super::rule::{DestinationRule, RuleTarget};
use super::written::Action;
use crate::policy::scope::{PolicyScope, Tier};

/// The ports of the rules of Enforce policies, and of all that select the pod.
#[derive(Debug, Default)]
pub(super) struct Ports {
    enforced: PortNeeds,
    all: PortNeeds,
}

/// What rules need on which ports.
#[derive(Debug, Default)]
pub(super) struct PortNeeds {
    /// A rule about hosts looks at the first bytes: they may bring a name.
    pub(super) named: HashSet<u16>,
    /// The cluster inspects names. What shows none satisfies no such floor; a Deny by name is none, and closes no port.
    pub(super) floor: HashSet<u16>,
}

impl Ports {
    pub(super) fn new(rules: &[DestinationRule]) -> Self {
        Self {
            enforced: PortNeeds::new(rules.iter().filter(|rule| !rule.audit)),
            all: PortNeeds::new(rules.iter()),
        }
    }

    pub(super) fn get(&self, scope: PolicyScope) -> &PortNeeds {
        match scope {
            PolicyScope::Enforced => &self.enforced,
            PolicyScope::All => &self.all,
        }
    }
}

impl PortNeeds {
    fn new<'a>(rules: impl Iterator<Item = &'a DestinationRule>) -> Self {
        let mut needs = Self::default();
        for rule in rules {
            let is_looking = match rule.action {
                // An address is denied by where it is, whatever the bytes.
                Action::Deny => rule.has_names(),
                Action::Inspect | Action::Tunnel => matches!(rule.subject, RuleTarget::Hosts(_)),
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
