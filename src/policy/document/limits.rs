//! What users write about how much an agent may send and do.

use serde::{Deserialize, Serialize};

/// Bounds, each alone; what is absent is not bounded by this policy.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "operator", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[serde(expecting = "a mapping: {requestBodyBytes, toolInputBytes, tokensPerDay, requestsPerMinute, \
                     consecutiveDenials}")]
pub struct Limits {
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
    /// Of tool calls, without an allowed one between; then every request is refused until the policy changes or the
    /// gateway restarts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub consecutive_denials: Option<i64>,
}
