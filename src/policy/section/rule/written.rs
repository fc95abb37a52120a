//! `rules`, as users write them.

use serde::{Deserialize, Serialize};

/// A rule over the facts of requests, tool calls and answers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "operator", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[serde(expecting = "a rule: {name, when, action, reason}")]
pub struct Rule {
    /// Unique in the policy, destinations and tools included: lower-case letters, digits, `-` and `.`, at most 63.
    pub name: String,
    /// A CEL expression over `event` that says yes or no; at most 1,024 bytes. docs/policy.md lists the fields.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
    /// What becomes of a request, a tool call or an answer for which the expression holds.
    pub action: Option<RuleAction>,
    /// One line that the agent reads, and events keep.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "operator", derive(schemars::JsonSchema))]
pub enum RuleAction {
    /// It is denied. So is one for which the expression has no value: a number that overflows, a list over its bound.
    Deny,
    /// It is recorded, and goes on if nothing else denies it.
    Audit,
}

impl RuleAction {
    /// The word, as users write it.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Deny => "Deny",
            Self::Audit => "Audit",
        }
    }
}
