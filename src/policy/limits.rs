//! `limits` of the policies that select a pod: of each, the lowest that is written (design section 5.4).

use super::compile::Policy;
use super::destination::Sight;
use super::lower::{Lowered, Scope};
use crate::decision::RuleId;

/// How much an agent may send and do; none where no policy writes it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PolicyLimits {
    /// Of a request body that must be seen whole, in bytes as sent. The gateway's own bound stays where it is lower.
    pub request_body_bytes: Option<Limit>,
    /// Of the input of one tool call, in bytes. The gateway's own bound stays where it is lower.
    pub tool_input_bytes: Option<Limit>,
    /// Input and output, on one day (UTC).
    pub tokens_per_day: Option<Limit>,
    pub requests_per_minute: Option<Limit>,
    /// Of tool calls, without an allowed one between.
    pub consecutive_denials: Option<Limit>,
}

/// A limit, and who sets it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limit {
    /// At least 1.
    pub most: u64,
    /// `namespace/policy/limits`
    pub rule: RuleId,
}

/// The same as one policy writes it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Written {
    pub(super) request_body_bytes: Option<u64>,
    pub(super) tool_input_bytes: Option<u64>,
    pub(super) tokens_per_day: Option<u64>,
    pub(super) requests_per_minute: Option<u64>,
    pub(super) consecutive_denials: Option<u64>,
}

/// The limits that the Enforce policies set, and those of all policies together.
#[derive(Debug)]
pub(super) struct Limits {
    enforced: PolicyLimits,
    all: PolicyLimits,
}

impl PolicyLimits {
    /// The lowest that any of the policies writes, of each limit by itself.
    fn lowest(policies: &[Lowered], sight: Sight) -> Self {
        let lowest = |written: fn(&Written) -> Option<u64>| {
            let visible = policies.iter().filter(|policy| sight == Sight::All || !policy.scope.audit);
            let all = visible.filter_map(|policy| Some((written(&policy.written.limits)?, &policy.scope)));
            all.min_by_key(|(most, _)| *most).map(|(most, scope)| Limit { most, rule: rule(scope) })
        };
        Self {
            request_body_bytes: lowest(|written| written.request_body_bytes),
            tool_input_bytes: lowest(|written| written.tool_input_bytes),
            tokens_per_day: lowest(|written| written.tokens_per_day),
            requests_per_minute: lowest(|written| written.requests_per_minute),
            consecutive_denials: lowest(|written| written.consecutive_denials),
        }
    }
}

impl Limits {
    pub(super) fn new(policies: &[Lowered]) -> Self {
        Self {
            enforced: PolicyLimits::lowest(policies, Sight::Enforced),
            all: PolicyLimits::lowest(policies, Sight::All),
        }
    }

    pub(super) fn at(&self, sight: Sight) -> &PolicyLimits {
        match sight {
            Sight::Enforced => &self.enforced,
            Sight::All => &self.all,
        }
    }
}

impl Policy {
    /// The limits in force: those of Enforce policies. Audit policies lower none; [`super::allowance`] records what
    /// theirs would refuse.
    pub fn limits(&self) -> &PolicyLimits {
        self.settings.limits.at(Sight::Enforced)
    }
}

fn rule(scope: &Scope) -> RuleId {
    RuleId::new(format!("{}/limits", scope.policy))
}
