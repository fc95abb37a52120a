//! Metrics of inference: tool calls, hosted tools that were removed, tokens.

use prometheus::{Error, Registry};

use super::family::{Counters, NamedCounters};
use super::label::ShellRead;
use crate::call::{Usage, Vendor};
use crate::decision::Verdict;
use crate::tool_output::Shortened;

/// The counters; each is there once it was needed.
#[derive(Debug)]
pub(super) struct InferenceMetrics {
    calls: NamedCounters,
    commands: Counters<ShellRead>,
    stripped: NamedCounters,
    findings: NamedCounters,
    tokens: NamedCounters,
    outputs: NamedCounters,
    output_bytes: NamedCounters,
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
            outputs: NamedCounters::new(
                r,
                "postern_tool_outputs_total",
                "Long results of tools by what became of them, each text once.",
                &["action", "reason"],
            )?,
            output_bytes: NamedCounters::new(
                r,
                "postern_tool_output_bytes_total",
                "Bytes of results of tools that were shortened, before and after, each text once.",
                &["state"],
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

    pub(super) fn tool_output(&self, how: Shortened, reason: &'static str, before: usize, after: usize) {
        let action = how.as_str().trim_start_matches("tool-output-");
        self.outputs.add((Some(action), None), reason, 1);
        if how != Shortened::Left {
            self.output_bytes.add((None, None), "before", before as u64);
            self.output_bytes.add((None, None), "after", after as u64);
        }
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
