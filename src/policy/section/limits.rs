//! `limits`: how much an agent may send and do. Of several policies the lowest of each limit counts (design section 5.4).

use serde::{Deserialize, Serialize};

use super::page::{Heading, Page, row};
use super::{Lowering, Owner, PolicySection};
use crate::decision::RuleId;
use crate::policy::Policy;
use crate::policy::scope::{Mode, PolicyScope};
use crate::yaml::field;

/// Bounds, each alone; what is absent is not bounded by this policy.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "operator", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[serde(expecting = "a mapping: {requestBodyBytes, toolInputBytes, tokensPerDay, requestsPerMinute, \
                     consecutiveDenials}")]
pub struct WrittenLimits {
    /// Of a request body whose content has to be seen, in bytes as sent. The gateway's own bound stays where it is
    /// lower.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_body_bytes: Option<i64>,
    /// Of the input of one tool call, in bytes. The gateway's own bound stays where it is lower.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_input_bytes: Option<i64>,
    /// Input and output together, as the provider counts them, from midnight to midnight UTC; per pod and
    /// credential.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_per_day: Option<i64>,
    /// To inference endpoints, in the last 60 seconds; per pod and credential.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests_per_minute: Option<i64>,
    /// Of tool calls, without an allowed one between; then every request is refused until the policy changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub consecutive_denials: Option<i64>,
}

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

/// The limits of one policy, judged.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::policy) struct LoweredLimits {
    request_body_bytes: Option<u64>,
    tool_input_bytes: Option<u64>,
    tokens_per_day: Option<u64>,
    requests_per_minute: Option<u64>,
    consecutive_denials: Option<u64>,
}

/// The limits that the Enforce policies set, and those of all policies together.
#[derive(Debug)]
pub(in crate::policy) struct Limits {
    enforced: PolicyLimits,
    all: PolicyLimits,
}

#[derive(Serialize)]
pub(in crate::policy) struct LimitsListed {
    /// Where only Audit policies select the pod, they are recorded alone.
    limits: Vec<LimitListed>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct LimitListed {
    name: &'static str,
    most: u64,
    rule: String,
}

impl PolicySection for Limits {
    type Written = Option<WrittenLimits>;
    type Lowered = LoweredLimits;
    type Listed = LimitsListed;

    /// Judges each limit by itself; what is wrong is left out.
    fn lower(written: &Option<WrittenLimits>, lowering: &mut Lowering<'_>) -> LoweredLimits {
        let Some(written) = written else { return LoweredLimits::default() };
        let mut limit = |name: &str, written: Option<i64>| {
            let most = written?;
            let result = u64::try_from(most).ok().filter(|most| *most > 0).ok_or_else(|| {
                format!("{most} allows nothing; write 1 or more, or leave the field out for no limit")
            });
            lowering.problems.keep(&field::key("spec.limits", name), result)
        };
        LoweredLimits {
            request_body_bytes: limit("requestBodyBytes", written.request_body_bytes),
            tool_input_bytes: limit("toolInputBytes", written.tool_input_bytes),
            tokens_per_day: limit("tokensPerDay", written.tokens_per_day),
            requests_per_minute: limit("requestsPerMinute", written.requests_per_minute),
            consecutive_denials: limit("consecutiveDenials", written.consecutive_denials),
        }
    }

    fn unite(policies: Vec<(&Owner, LoweredLimits)>, _: Mode) -> Self {
        Self {
            enforced: PolicyLimits::lowest(&policies, PolicyScope::Enforced),
            all: PolicyLimits::lowest(&policies, PolicyScope::All),
        }
    }

    fn list(&self, scope: PolicyScope) -> LimitsListed {
        let limits = self.at(scope);
        let by_name: [(&'static str, &Option<Limit>); 5] = [
            ("requestBodyBytes", &limits.request_body_bytes),
            ("toolInputBytes", &limits.tool_input_bytes),
            ("tokensPerDay", &limits.tokens_per_day),
            ("requestsPerMinute", &limits.requests_per_minute),
            ("consecutiveDenials", &limits.consecutive_denials),
        ];
        let written = by_name.into_iter().filter_map(|(name, limit)| {
            let limit = limit.as_ref()?;
            Some(LimitListed { name, most: limit.most, rule: limit.rule.to_string() })
        });
        LimitsListed { limits: written.collect() }
    }

    fn rows(listed: &LimitsListed, page: &mut Page) {
        for limit in &listed.limits {
            page.add(Heading::Limits, row(limit.name, format!("{}  [{}]", limit.most, limit.rule)));
        }
    }
}

impl PolicyLimits {
    /// The lowest that any of the policies writes, of each limit by itself.
    fn lowest(policies: &[(&Owner, LoweredLimits)], scope: PolicyScope) -> Self {
        let lowest = |limit: fn(&LoweredLimits) -> Option<u64>| {
            let visible = policies.iter().filter(|(owner, _)| scope.shows(owner.audit));
            let written = visible.filter_map(|(owner, written)| Some((limit(written)?, owner)));
            let (most, owner) = written.min_by_key(|(most, _)| *most)?;
            Some(Limit { most, rule: owner.rule("limits") })
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
    pub(in crate::policy) fn at(&self, scope: PolicyScope) -> &PolicyLimits {
        match scope {
            PolicyScope::Enforced => &self.enforced,
            PolicyScope::All => &self.all,
        }
    }
}

impl Policy {
    /// The limits in force: those of Enforce policies. Audit policies lower none; [`crate::policy::allowance`] records
    /// what theirs would refuse.
    pub fn limits(&self) -> &PolicyLimits {
        self.sections.limits.at(PolicyScope::Enforced)
    }
}
