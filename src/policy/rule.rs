//! One destination rule, compiled.

use std::sync::Arc;

use ipnet::IpNet;

use crate::call::Dialect;
use crate::decision::{Decision, Enforcement, RuleId, Verdict};

use super::destination::Protocol;
use super::document::Action;
use super::inspection::{Grant, Inspection};
use super::pattern::Pattern;

/// Whose policies a rule belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Tier {
    Cluster,
    Namespace,
}

/// How many tiers there are.
pub(super) const TIERS: usize = 2;

impl Tier {
    pub(super) fn index(self) -> usize {
        match self {
            Self::Cluster => 0,
            Self::Namespace => 1,
        }
    }
}

/// A rule with everything a decision needs.
#[derive(Debug, Clone)]
pub(super) struct Rule {
    pub(super) id: RuleId,
    pub(super) tier: Tier,
    /// Whether its policy only records.
    pub(super) audit: bool,
    pub(super) subject: Subject,
    pub(super) action: Action,
    /// Sorted; none where the rule names no ports.
    pub(super) ports: Option<Vec<u16>>,
    /// Whether it passes any bytes.
    pub(super) opaque: bool,
    pub(super) allow_ech: bool,
    /// What an Inspect rule grants.
    pub(super) grant: Option<Arc<Grant>>,
    /// The inspection where this rule alone decides, made once.
    pub(super) alone: Option<Arc<Inspection>>,
}

/// What a rule is about.
#[derive(Debug, Clone)]
pub(super) enum Subject {
    Hosts(Vec<Pattern>),
    Nets(Vec<IpNet>),
}

impl Rule {
    /// Whether the rule takes part in what this protocol does on this port (design section 3, Ports).
    pub(super) fn takes(&self, port: u16, protocol: Protocol) -> bool {
        match (self.action, &self.ports) {
            (Action::Deny, None) => true,
            (Action::Deny, Some(ports)) => ports.contains(&port),
            (Action::Inspect, None) => {
                (port == 443 && protocol == Protocol::Tls) || (port == 80 && protocol == Protocol::Http)
            }
            (Action::Inspect, Some(ports)) => !protocol.is_bytes() && ports.contains(&port),
            (Action::Tunnel, None) => port == 443 && protocol == Protocol::Tls,
            (Action::Tunnel, Some(ports)) => {
                (self.opaque || protocol == Protocol::Tls) && ports.contains(&port)
            }
        }
    }

    /// The ports on which the first bytes of a flow matter to this rule. A Deny rule without ports covers every port,
    /// but waits for bytes on those of the web alone: elsewhere servers may speak first.
    pub(super) fn sniffed_ports(&self) -> &[u16] {
        match (self.action, &self.ports) {
            (Action::Tunnel, _) if self.opaque => &[],
            (_, Some(ports)) => ports,
            (Action::Inspect | Action::Deny, None) => &[80, 443],
            (Action::Tunnel, None) => &[443],
        }
    }

    /// Whether it is about a name, not about addresses alone.
    pub(super) fn has_names(&self) -> bool {
        match &self.subject {
            Subject::Hosts(patterns) => patterns.iter().any(|pattern| !matches!(pattern, Pattern::Ip(_))),
            Subject::Nets(_) => false,
        }
    }

    /// What it says is spoken where it leads.
    pub(super) fn dialect(&self) -> Option<Dialect> {
        self.grant.as_deref().and_then(Grant::dialect)
    }

    pub(super) fn enforcement(&self) -> Enforcement {
        Enforcement::of(self.audit)
    }

    /// The rule's own verdict.
    pub(super) fn ruling(&self) -> Decision {
        let (verdict, reason) = match self.action {
            Action::Deny => (Verdict::Deny, "A rule denies this destination"),
            Action::Inspect | Action::Tunnel => (Verdict::Allow, ""),
        };
        Decision::by(self.id.clone(), verdict, reason).under(self.enforcement())
    }
}
