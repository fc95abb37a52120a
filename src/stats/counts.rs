//! What is counted of events: requests, calls, denials and tokens.

use serde::Serialize;

use super::prices::Cost;
use crate::decision::Verdict;
use crate::event::{Event, Kind, Usage};

/// Tokens, as providers count them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Tokens {
    /// All that models read, from caches too.
    pub input: u64,
    /// All that they wrote, reasoning included.
    pub output: u64,
    /// Of the input, read from a cache.
    pub cache_read: u64,
    /// Of the input, written to a cache.
    pub cache_write: u64,
    /// Of the output, reasoning.
    pub reasoning: u64,
}

impl Tokens {
    pub(super) fn add(&mut self, usage: &Usage) {
        let sum =
            |so_far: &mut u64, more: Option<u64>| *so_far = so_far.saturating_add(more.unwrap_or_default());
        sum(&mut self.input, usage.input_tokens);
        sum(&mut self.output, usage.output_tokens);
        sum(&mut self.cache_read, usage.cache_read_tokens);
        sum(&mut self.cache_write, usage.cache_write_tokens);
        sum(&mut self.reasoning, usage.reasoning_tokens);
    }
}

/// The counts of some events.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Counts {
    pub requests: u64,
    /// Requests and answers that were denied.
    pub denied_requests: u64,
    pub denied_connections: u64,
    pub tool_calls: u64,
    pub denied_calls: u64,
    /// What an enforced policy would have denied.
    pub would_deny: u64,
    /// What detection found, whatever was done about it.
    pub findings: u64,
    pub tokens: Tokens,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
}

impl Counts {
    /// Adds an event, without its tokens.
    pub(super) fn add(&mut self, event: &Event) {
        let (count, is_denied) = (event.count, event.decision.denies());
        let denied = if is_denied { count } else { 0 };
        let sum = |so_far: &mut u64, more: u64| *so_far = so_far.saturating_add(more);
        match event.kind {
            Kind::Request => {
                sum(&mut self.requests, count);
                sum(&mut self.denied_requests, denied);
            }
            Kind::Response => sum(&mut self.denied_requests, denied),
            Kind::Connection => sum(&mut self.denied_connections, denied),
            Kind::ToolCall => {
                sum(&mut self.tool_calls, count);
                sum(&mut self.denied_calls, denied);
            }
            Kind::Transform | Kind::Policy | Kind::Lifecycle | Kind::Unknown => {}
        }
        sum(&mut self.findings, count.saturating_mul(event.dlp.len() as u64));
        if event.decision.verdict == Verdict::WouldDeny {
            sum(&mut self.would_deny, count);
        }
    }
}
