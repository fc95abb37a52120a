//! From an event to its log record: the line as its body, and flat attributes by which collectors filter and route.

use std::time::{Duration, SystemTime};

use opentelemetry::logs::{AnyValue, LogRecord, Severity};
use opentelemetry::trace::{SpanId, TraceFlags, TraceId};

use super::super::otlp::names;
use crate::decision::{RuleId, Verdict};
use crate::event::{Event, Kind, Provider};

/// Fills an empty record.
pub(super) fn fill(record: &mut impl LogRecord, event: &Event, line: &[u8]) {
    let (severity, word) = severity(event.decision.verdict);
    record.set_event_name(event_name(event.kind));
    record.set_timestamp(SystemTime::UNIX_EPOCH + Duration::from_millis(event.time.unix_millis()));
    record.set_observed_timestamp(SystemTime::now());
    record.set_severity_number(severity);
    record.set_severity_text(word);
    record.set_body(String::from_utf8_lossy(line).into_owned().into());
    if let Some(trace) = event.trace {
        let flags = if trace.sampled { TraceFlags::SAMPLED } else { TraceFlags::default() };
        record.set_trace_context(
            TraceId::from_bytes(trace.trace),
            SpanId::from_bytes(trace.span),
            Some(flags),
        );
    }
    let mut attributes = Attributes(record);
    decided(event, &mut attributes);
    transported(event, &mut attributes);
    if let Some(provider) = &event.provider {
        generative(provider, event, &mut attributes);
    }
    called(event, &mut attributes);
}

/// Adds what is there; what does not apply has no attribute, as it has no field in the event.
struct Attributes<'a, R>(&'a mut R);

impl<R: LogRecord> Attributes<'_, R> {
    fn text(&mut self, name: &'static str, text: Option<impl Into<String>>) {
        if let Some(text) = text {
            self.0.add_attribute(name, AnyValue::from(text.into()));
        }
    }

    fn number(&mut self, name: &'static str, number: Option<u64>) {
        if let Some(number) = number {
            self.0.add_attribute(name, AnyValue::Int(i64::try_from(number).unwrap_or(i64::MAX)));
        }
    }
}

/// A name of fixed words, for rules that route.
fn event_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Connection => "postern.connection",
        Kind::Request => "postern.request",
        Kind::Response => "postern.response",
        Kind::ToolCall => "postern.tool_call",
        Kind::Transform => "postern.transform",
        Kind::Policy => "postern.policy",
        Kind::Lifecycle => "postern.lifecycle",
        Kind::Unknown => "postern.unknown",
    }
}

/// A denial is a warning, whether it was enforced or not: the gateway did what it is for.
fn severity(verdict: Verdict) -> (Severity, &'static str) {
    match verdict {
        Verdict::Deny | Verdict::WouldDeny => (Severity::Warn, "WARN"),
        Verdict::Allow | Verdict::Audit | Verdict::Unknown => (Severity::Info, "INFO"),
    }
}

fn decided(event: &Event, to: &mut Attributes<'_, impl LogRecord>) {
    let decision = &event.decision;
    to.text(names::EVENT, Some(event.id.to_string()));
    to.text(names::KIND, Some(event.kind.as_str()));
    to.text(names::VERDICT, Some(decision.verdict.as_str()));
    to.text(names::RULE, decision.rule.as_ref().map(RuleId::as_str));
    to.text(names::REASON, decision.reason.as_deref());
    to.text(names::ENFORCEMENT, decision.enforcement.map(|enforcement| enforcement.as_str()));
    to.number(names::COUNT, Some(event.count));
    to.number(names::SEQUENCE, Some(event.sequence));
    to.text(names::EXCHANGE, event.exchange.map(|id| id.to_string()));
    to.text(names::CONNECTION, event.connection.map(|id| id.to_string()));
    to.text(names::SESSION, event.session.as_deref());
}

fn transported(event: &Event, to: &mut Attributes<'_, impl LogRecord>) {
    if let Some(http) = &event.http {
        to.text(names::METHOD, Some(&*http.method));
        to.text(names::PATH, Some(&*http.path));
        to.text(names::VERSION, Some(http.version.trim_start_matches("HTTP/")));
        to.number(names::STATUS, http.status.map(u64::from));
    }
    if let Some(destination) = &event.destination {
        to.text(names::HOST, Some(&*destination.host));
        to.number(names::PORT, Some(destination.port.into()));
        to.text(names::FAILURE, destination.reason.as_deref());
    }
    to.number(names::BYTES, event.payload.as_ref().map(|payload| payload.bytes));
}

fn generative(provider: &Provider, event: &Event, to: &mut Attributes<'_, impl LogRecord>) {
    to.text(names::OPERATION, Some(names::operation(&provider.api)));
    to.text(names::PROVIDER, Some(&*provider.name));
    to.text(names::API, Some(&*provider.api));
    to.text(names::REQUEST_MODEL, provider.model.as_deref());
    to.number(names::MAX_TOKENS, provider.max_tokens);
    to.text(names::RESPONSE_MODEL, provider.response_model.as_deref());
    to.text(names::RESPONSE_ID, provider.request_id.as_deref());
    if let Some(route) = &provider.route {
        to.text(names::ROUTE_RULE, Some(&*route.rule));
        to.text(names::ROUTE_LABEL, Some(&*route.label));
    }
    let usage = event.usage.unwrap_or_default();
    to.number(names::INPUT_TOKENS, usage.input_tokens);
    to.number(names::OUTPUT_TOKENS, usage.output_tokens);
    to.number(names::CACHE_READ_TOKENS, usage.cache_read_tokens);
    to.number(names::CACHE_WRITE_TOKENS, usage.cache_write_tokens);
}

fn called(event: &Event, to: &mut Attributes<'_, impl LogRecord>) {
    let Some(call) = &event.tool_call else { return };
    to.text(names::TOOL, Some(&*call.name));
    to.text(names::TOOL_CALL, Some(&*call.id).filter(|id| !id.is_empty()));
    to.text(names::INPUT_SHA256, call.input_sha256.as_deref());
}
