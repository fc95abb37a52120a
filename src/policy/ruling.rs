//! A verdict with the rule and the reason behind it.

use crate::event;

use super::RuleId;

/// The verdict with its rule, as events, errors and refusals show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ruling {
    pub verdict: event::Verdict,
    pub rule: RuleId,
    /// Fit for the agent's eyes; empty where the verdict is Allow.
    pub reason: String,
    /// `Enforce` or `Audit`: what the rule's policy says; `Enforce` for what is built in.
    pub enforcement: &'static str,
}

/// The words of [`Ruling::enforcement`].
pub(super) const ENFORCE: &str = "Enforce";
pub(super) const AUDIT: &str = "Audit";

impl Ruling {
    /// A denial by something built in, `postern/builtin/NAME`.
    pub fn builtin(name: &str, reason: impl Into<String>) -> Self {
        Self {
            verdict: event::Verdict::Deny,
            rule: RuleId::builtin(name),
            reason: reason.into(),
            enforcement: ENFORCE,
        }
    }

    /// Whether what was asked must not go on.
    pub fn denies(&self) -> bool {
        self.verdict == event::Verdict::Deny
    }

    /// The same, as the envelope has it.
    pub fn to_decision(&self) -> event::Decision {
        event::Decision {
            verdict: self.verdict,
            rule: Some(self.rule.clone()),
            reason: (!self.reason.is_empty()).then(|| self.reason.clone().into()),
            enforcement: Some(self.enforcement),
        }
    }

    /// What is denied where policies are enforced, said of a pod that only Audit policies select: it goes on.
    pub fn into_would_deny(self) -> Self {
        Self { verdict: event::Verdict::WouldDeny, enforcement: AUDIT, ..self }
    }
}

impl From<event::Decision> for Ruling {
    /// A decision without a rule is the default's.
    fn from(decision: event::Decision) -> Self {
        Self {
            verdict: decision.verdict,
            rule: decision.rule.unwrap_or_else(|| RuleId::builtin("default-deny")),
            reason: decision.reason.map(std::borrow::Cow::into_owned).unwrap_or_default(),
            enforcement: decision.enforcement.unwrap_or(ENFORCE),
        }
    }
}
