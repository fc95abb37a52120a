//! Whose rules they are, and which of them are looked at.

use crate::decision::{Enforcement, RuleId};

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

/// The policy that rules belong to: what all of them share.
#[derive(Debug)]
pub(super) struct Owner {
    pub(super) tier: Tier,
    /// `namespace/policy` or `-/policy`.
    pub(super) policy: String,
    /// `-` for the cluster's.
    pub(super) namespace: String,
    /// Whether the policy only records.
    pub(super) audit: bool,
}

impl Owner {
    pub(super) fn enforcement(&self) -> Enforcement {
        Enforcement::of(self.audit)
    }

    /// The id of a rule of the policy, or of a section that is its own rule: `namespace/policy/NAME`.
    pub(super) fn rule(&self, name: &str) -> RuleId {
        RuleId::new(format!("{}/{name}", self.policy))
    }
}

/// The policies whose rules are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PolicyScope {
    /// Enforce policies alone.
    Enforced,
    /// All policies that select the pod.
    All,
}

impl PolicyScope {
    /// Whether the rules of such a policy are among them.
    pub(super) fn shows(self, audit: bool) -> bool {
        self == Self::All || !audit
    }
}

/// Which policies select the pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// No policy was ever loaded.
    Missing,
    /// No policy selects the pod.
    Unselected,
    /// Only Audit policies do.
    AuditOnly,
    /// Enforce policies do; `audits` says whether Audit policies do too.
    Enforced { audits: bool },
}

impl Mode {
    /// The mode of a pod that these policies select, each Audit or not.
    pub(super) fn of(audits: impl Iterator<Item = bool>) -> Self {
        let (mut audit, mut enforce) = (false, false);
        audits.for_each(|audits| if audits { audit = true } else { enforce = true });
        match (audit, enforce) {
            (false, false) => Self::Unselected,
            (true, false) => Self::AuditOnly,
            (audits, true) => Self::Enforced { audits },
        }
    }

    /// Whether such a policy decides: beside an Enforce policy, an Audit policy only records.
    pub(super) fn heeds(self, audit: bool) -> bool {
        !audit || self == Self::AuditOnly
    }
}
