//! What users write about how much an agent may send and do.

use serde::{Deserialize, Serialize};

/// Bounds, each alone; what is absent is not bounded by this policy.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[serde(expecting = "a mapping: {requestBodyBytes, toolInputBytes, tokensPerDay, requestsPerMinute, \
                     consecutiveDenials}")]
pub struct Limits {
    /// Of a request body that must be seen whole, in bytes as sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_body_bytes: Option<i64>,
    /// Of the input of one tool call, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_input_bytes: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_per_day: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests_per_minute: Option<i64>,
    /// Of tool calls, without an allowed one between.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub consecutive_denials: Option<i64>,
}
