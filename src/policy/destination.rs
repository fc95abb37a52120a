//! What a policy decides, with the rule that decided.

use super::RuleId;
use crate::event;

/// The verdict with its rule, for events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ruling {
    pub verdict: event::Verdict,
    pub rule: RuleId,
    pub reason: String,
    /// `Enforce` or `Audit`.
    pub enforcement: &'static str,
}
