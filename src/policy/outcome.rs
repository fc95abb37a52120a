//! What Enforce and Audit policies make together of something that is allowed or denied (design section 5.5).

use crate::call::Judgement;
use crate::event::{Decision, Verdict};

use super::Policy;
use super::ruling::{AUDIT, Ruling};
use super::scope::{Mode, PolicyScope};

/// Allowed or denied by some policies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Outcome {
    /// By that rule, or because nothing denies it.
    Allowed(Option<Ruling>),
    Denied(Ruling),
}

impl Policy {
    /// Weighs the outcome by Enforce policies against that by all policies.
    pub(super) fn weigh(&self, outcome: impl Fn(PolicyScope) -> Outcome) -> Judgement {
        match self.mode {
            Mode::Missing | Mode::Unselected => {
                Judgement { decision: self.unselected().to_decision(), audited: None }
            }
            Mode::AuditOnly => {
                let decision = match outcome(PolicyScope::All) {
                    Outcome::Denied(ruling) => ruling.into_would_deny().to_decision(),
                    allowed @ Outcome::Allowed(_) => allowed.into_decision(),
                };
                Judgement { decision, audited: None }
            }
            Mode::Enforced { audits } => {
                let enforced = outcome(PolicyScope::Enforced);
                let audited = if audits { enforced.beside(outcome(PolicyScope::All)) } else { None };
                Judgement { decision: enforced.into_decision(), audited }
            }
        }
    }

    /// The denial where no policy speaks for the pod.
    pub(super) fn unselected(&self) -> Ruling {
        let why = if self.mode == Mode::Missing {
            "No policy has been loaded"
        } else {
            "No policy selects this pod"
        };
        Ruling::builtin("no-policy", why)
    }
}

impl Outcome {
    fn into_decision(self) -> Decision {
        match self {
            Self::Allowed(None) => Decision::of(Verdict::Allow),
            Self::Allowed(Some(ruling)) | Self::Denied(ruling) => ruling.to_decision(),
        }
    }

    /// What is recorded of what all policies together would have done.
    fn beside(&self, all: Self) -> Option<Decision> {
        match (self, all) {
            (Self::Allowed(_), Self::Denied(ruling)) => Some(ruling.into_would_deny().to_decision()),
            (Self::Denied(_), Self::Allowed(ruling)) => {
                let reason = "With the Audit policies enforced, this would be allowed".into();
                let rule = ruling.map(|ruling| ruling.rule);
                Some(Decision {
                    verdict: Verdict::Audit,
                    rule,
                    reason: Some(reason),
                    enforcement: Some(AUDIT),
                })
            }
            (Self::Allowed(_), Self::Allowed(_)) | (Self::Denied(_), Self::Denied(_)) => None,
        }
    }
}
