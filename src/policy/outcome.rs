//! What Enforce and Audit policies make together of something that is allowed or denied (design section 5.5).

use crate::call::Judgement;
use crate::decision::{Decision, Enforcement, Verdict};

use super::compile::{Mode, Policy};
use super::destination::Sight;

/// Allowed or denied by some policies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Outcome {
    /// By that rule, or because nothing denies it.
    Allowed(Option<Decision>),
    Denied(Decision),
}

impl Policy {
    /// Weighs what the policies say that a sight shows.
    pub(super) fn weigh(&self, outcome: impl Fn(Sight) -> Outcome) -> Judgement {
        match self.mode {
            Mode::Missing | Mode::Unselected => Judgement { decision: self.unselected(), audited: None },
            Mode::AuditOnly => {
                let decision = match outcome(Sight::All) {
                    Outcome::Denied(decision) => decision.into_would_deny(),
                    allowed @ Outcome::Allowed(_) => allowed.into_decision(),
                };
                Judgement { decision, audited: None }
            }
            Mode::Enforced { audits } => {
                let enforced = outcome(Sight::Enforced);
                let audited = if audits { enforced.beside(outcome(Sight::All)) } else { None };
                Judgement { decision: enforced.into_decision(), audited }
            }
        }
    }

    /// The denial where no policy speaks for the pod.
    pub(super) fn unselected(&self) -> Decision {
        let why = if self.mode == Mode::Missing {
            "No policy has been loaded"
        } else {
            "No policy selects this pod"
        };
        Decision::builtin("no-policy", why)
    }
}

impl Outcome {
    fn into_decision(self) -> Decision {
        match self {
            Self::Allowed(None) => Decision::of(Verdict::Allow),
            Self::Allowed(Some(decision)) | Self::Denied(decision) => decision,
        }
    }

    /// What is recorded of what all policies together would have done.
    fn beside(&self, all: Self) -> Option<Decision> {
        match (self, all) {
            (Self::Allowed(_), Self::Denied(decision)) => Some(decision.into_would_deny()),
            (Self::Denied(_), Self::Allowed(decision)) => {
                let reason = "With the Audit policies enforced, this would be allowed".into();
                let rule = decision.and_then(|decision| decision.rule);
                Some(Decision {
                    verdict: Verdict::Audit,
                    rule,
                    reason: Some(reason),
                    enforcement: Some(Enforcement::Audit),
                })
            }
            (Self::Allowed(_), Self::Allowed(_)) | (Self::Denied(_), Self::Denied(_)) => None,
        }
    }
}
