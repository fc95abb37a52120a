//! From the events of one exchange to its span. No content: names, numbers and decisions alone.

use std::borrow::Cow;
use std::time::{Duration, SystemTime};

use opentelemetry::trace::{
    Event as SpanEvent, Span, SpanBuilder, SpanContext, SpanId, SpanKind, Status, TraceContextExt,
    TraceFlags, TraceId, TraceState, Tracer,
};
use opentelemetry::{Context, KeyValue};
use opentelemetry_sdk::trace::SdkTracer;

use super::super::otlp::names;
use crate::decision::Verdict;
use crate::event::{Attempt, Event, Kind, Provider, Route, Timestamp, TraceParent};

/// The most events of one exchange that are kept for its span: the SDK's own bound.
pub(super) const EVENTS: usize = 128;

/// Exports the span of an exchange that `last` ends and `before` led to.
pub(super) fn export(tracer: &SdkTracer, before: &[Event], last: &Event) {
    let Some(exchange) = last.exchange else { return };
    let (Some(http), Some(destination)) = (&last.http, &last.destination) else { return };
    let route = last.provider.as_ref().and_then(|provider| provider.route.as_deref());
    let (host, port) = route.map_or((&destination.host, destination.port), |route| (&route.host, route.port));
    let mut attributes = vec![
        KeyValue::new(names::EXCHANGE, exchange.to_string()),
        KeyValue::new(names::METHOD, http.method.clone().into_owned()),
        KeyValue::new(names::PATH, http.path.clone()),
        KeyValue::new(names::VERSION, http.version.trim_start_matches("HTTP/").to_owned()),
        KeyValue::new(names::HOST, host.clone()),
        KeyValue::new(names::PORT, i64::from(port)),
        KeyValue::new(names::VERDICT, last.decision.verdict.as_str()),
    ];
    attributes.extend(http.status.map(|status| KeyValue::new(names::STATUS, i64::from(status))));
    attributes
        .extend(last.session.as_ref().map(|session| KeyValue::new(names::SESSION, session.to_string())));
    attributes.extend(last.connection.map(|id| KeyValue::new(names::CONNECTION, id.to_string())));
    attributes.extend(last.decision.rule.as_ref().map(|rule| KeyValue::new(names::RULE, rule.to_string())));
    if let Some(provider) = &last.provider {
        generative(provider, last, &mut attributes);
    }
    attributes.extend(route.into_iter().flat_map(routed));
    let failure = destination.reason.as_deref();
    let status = status(last, http.status, failure);
    if let Status::Error { .. } = &status {
        let kind = http.status.filter(|status| *status >= 400).map(|status| status.to_string());
        attributes.push(KeyValue::new(names::ERROR, kind.unwrap_or_else(|| "stream".to_owned())));
    }
    // The response repeats all transforms of its exchange.
    let is_shown = |event: &&Event| event.kind != Kind::Transform || last.kind != Kind::Response;
    let attempts = route.into_iter().flat_map(|route| &route.attempts).map(|asked| attempt(asked, last.time));
    let decisions = before.iter().filter(is_shown).chain([last]).flat_map(decisions);
    let events = attempts.chain(decisions).take(EVENTS).collect();
    let builder = SpanBuilder::from_name(name(last))
        .with_kind(SpanKind::Client)
        .with_start_time(time(exchange.time()))
        .with_attributes(attributes)
        .with_events(events);
    let parent = last.trace.map_or_else(Context::new, context);
    let mut span = tracer.build_with_context(builder, &parent);
    span.set_status(status);
    span.end_with_timestamp(time(last.time));
}

/// `chat claude-sonnet-4-5`, as the conventions have it; elsewhere the method.
fn name(event: &Event) -> Cow<'static, str> {
    if let Some(provider) = &event.provider {
        let operation = names::operation(&provider.api);
        return match &provider.model {
            Some(model) => format!("{operation} {model}").into(),
            None => operation.into(),
        };
    }
    event.http.as_ref().map_or("HTTP".into(), |http| http.method.clone())
}

/// Adds the attributes that OpenTelemetry's conventions have for calls to models.
fn generative(provider: &Provider, event: &Event, attributes: &mut Vec<KeyValue>) {
    attributes.push(KeyValue::new(names::OPERATION, names::operation(&provider.api)));
    attributes.push(KeyValue::new(names::PROVIDER, provider.name.to_string()));
    attributes.push(KeyValue::new(names::API, provider.api.to_string()));
    let texts = [
        (names::REQUEST_MODEL, provider.model.as_deref()),
        (names::RESPONSE_MODEL, provider.response_model.as_deref()),
        (names::RESPONSE_ID, provider.request_id.as_deref()),
    ];
    attributes
        .extend(texts.into_iter().filter_map(|(name, text)| Some(KeyValue::new(name, text?.to_owned()))));
    let usage = event.usage.unwrap_or_default();
    let counts = [
        (names::MAX_TOKENS, provider.max_tokens),
        (names::INPUT_TOKENS, usage.input_tokens),
        (names::OUTPUT_TOKENS, usage.output_tokens),
        (names::CACHE_READ_TOKENS, usage.cache_read_tokens),
        (names::CACHE_WRITE_TOKENS, usage.cache_write_tokens),
    ];
    attributes.extend(
        counts
            .into_iter()
            .filter_map(|(name, count)| Some(KeyValue::new(name, i64::try_from(count?).unwrap_or(i64::MAX)))),
    );
}

/// Which route took the request, and who was asked last.
fn routed(route: &Route) -> [KeyValue; 2] {
    [
        KeyValue::new(names::ROUTE_RULE, route.rule.to_string()),
        KeyValue::new(names::ROUTE_LABEL, route.label.to_string()),
    ]
}

/// A model that was asked, as a span event; when it was is known by its duration alone.
fn attempt(asked: &Attempt, ended: Timestamp) -> SpanEvent {
    let mut attributes = vec![
        KeyValue::new(names::ROUTE_LABEL, asked.label.to_string()),
        KeyValue::new(names::ATTEMPT_CLASS, asked.class.to_string()),
        KeyValue::new(names::ATTEMPT_MS, i64::try_from(asked.ms).unwrap_or(i64::MAX)),
    ];
    attributes.extend(asked.status.map(|status| KeyValue::new(names::STATUS, i64::from(status))));
    SpanEvent::new("postern.attempt", time(ended), attributes, 0)
}

/// Returns the event's decision and transforms as span events.
fn decisions(event: &Event) -> Vec<SpanEvent> {
    let at = time(event.time);
    let mut span_events: Vec<_> = event
        .transforms
        .iter()
        .map(|transform| {
            SpanEvent::new(
                "postern.transform",
                at,
                vec![KeyValue::new(names::TRANSFORM, transform.name.to_string())],
                0,
            )
        })
        .collect();
    let is_plain = event.kind == Kind::Transform
        || event.kind == Kind::Response && event.decision.verdict == Verdict::Allow;
    if is_plain {
        return span_events;
    }
    let mut attributes = vec![
        KeyValue::new(names::EVENT, event.id.to_string()),
        KeyValue::new(names::KIND, event.kind.as_str()),
        KeyValue::new(names::VERDICT, event.decision.verdict.as_str()),
    ];
    attributes.extend(event.decision.rule.as_ref().map(|rule| KeyValue::new(names::RULE, rule.to_string())));
    if let Some(call) = &event.tool_call {
        attributes.push(KeyValue::new(names::TOOL, call.name.clone()));
        attributes.push(KeyValue::new(names::TOOL_CALL, call.id.clone()));
    }
    span_events.push(SpanEvent::new("postern.decision", at, attributes, 0));
    span_events
}

/// Returns an error where the exchange was denied or failed.
fn status(last: &Event, code: Option<u16>, failure: Option<&str>) -> Status {
    let is_denied = last.decision.verdict == Verdict::Deny;
    let reason = last.decision.reason.clone().filter(|_| is_denied).map(Cow::into_owned);
    match reason.or_else(|| failure.map(str::to_owned)) {
        Some(description) => Status::error(description),
        None if is_denied || code.is_some_and(|code| code >= 400) => Status::error(""),
        None => Status::Unset,
    }
}

/// The agent's span as the parent of ours.
fn context(parent: TraceParent) -> Context {
    let flags = if parent.sampled { TraceFlags::SAMPLED } else { TraceFlags::default() };
    let (trace, span) = (TraceId::from_bytes(parent.trace), SpanId::from_bytes(parent.span));
    Context::new().with_remote_span_context(SpanContext::new(trace, span, flags, true, TraceState::default()))
}

fn time(at: Timestamp) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_millis(at.unix_millis())
}
