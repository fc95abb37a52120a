//! Metrics of inference: tool calls, hosted tools that were removed, tokens.

use prometheus::{Error, Registry};

use super::family::{Counters, NamedCounters};
use super::label::ShellRead;
use crate::call::{Usage, Vendor};
use crate::decision::Verdict;

/// The counters; each is there once it was needed.
#[derive(Debug)]
pub(super) struct InferenceMetrics {
    calls: NamedCounters,
    commands: Counters<ShellRead>,
    stripped: NamedCounters,
    findings: NamedCounters,
    tokens: NamedCounters,
}

impl InferenceMetrics {
    pub(super) fn new(r: &Registry) -> Result<Self, Error> {
        Ok(Self {
            calls: NamedCounters::new(
                r,
                "postern_tool_calls_total",
                "Tool calls of models by verdict.",
                &["provider", "tool", "verdict"],
            )?,
            commands: Counters::new(
                r,
                "postern_shell_commands_total",
                "Calls of shells whose commands were read.",
                "read",
            )?,
            stripped: NamedCounters::new(
                r,
                "postern_hosted_tools_stripped_total",
                "Tools of providers that were taken out of requests.",
                &["provider", "type"],
            )?,
            findings: NamedCounters::new(
                r,
                "postern_dlp_findings_total",
                "Secrets that were found in what agents send.",
                &["action", "detector"],
            )?,
            tokens: NamedCounters::new(
                r,
                "postern_tokens_total",
                "Tokens as answers report them.",
                &["provider", "model", "type"],
            )?,
        })
    }

    pub(super) fn tool_call(&self, vendor: Vendor, tool: &str, verdict: Verdict) {
        self.calls.add((Some(vendor.as_str()), Some(verdict.as_str())), tool, 1);
    }

    pub(super) fn shell_call(&self, read: ShellRead) {
        self.commands.add(read, 1);
    }

    pub(super) fn dlp_finding(&self, action: &'static str, detector: &str) {
        self.findings.add((Some(action), None), detector, 1);
    }

    pub(super) fn hosted_tool_stripped(&self, vendor: Vendor, tool_type: &str) {
        self.stripped.add((Some(vendor.as_str()), None), tool_type, 1);
    }

    pub(super) fn tokens(&self, vendor: Vendor, model: &str, usage: &Usage) {
        for (kind, count) in [
            ("input", usage.input),
            ("output", usage.output),
            ("cache_read", usage.cache_read),
            ("cache_write", usage.cache_write),
            ("reasoning", usage.reasoning),
        ] {
            if let Some(count) = count {
                self.tokens.add((Some(vendor.as_str()), Some(kind)), model, count);
            }
        }
    }
}
