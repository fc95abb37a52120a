//! One result of a report before it is written: a denial or a finding, or several equal ones. Of bounded size.

use super::EntryKey;
use super::message::{Message, shortened};
use super::reported::Reported;
use super::{log, rule};
use crate::digest::sha256_hex;
use crate::event::{Event, Finding, Id, Kind, Timestamp};

#[derive(Debug)]
pub(super) struct Entry {
    /// Of the newest event.
    pub(super) id: Id,
    pub(super) rule: String,
    pub(super) kind: Kind,
    pub(super) reported: Reported,
    pub(super) message: Message,
    pub(super) properties: log::ResultProperties,
    pub(super) fingerprint: String,
    pub(super) count: u64,
    pub(super) first: Timestamp,
    pub(super) last: Timestamp,
}

impl Entry {
    pub(super) fn of_denial(event: &Event, denial: Reported) -> Self {
        let rule = rule::id(event.decision.rule_id());
        let message = about(event, denial, &rule);
        let message = match event.decision.why() {
            "" => message,
            why => message.ours(": ").foreign(why),
        };
        Self::new(event, denial, rule, message)
    }

    pub(super) fn of_finding(event: &Event, finding: &Finding, reported: Reported) -> Self {
        let rule = rule::id(&format!("{}{}", rule::FINDINGS, finding.detector));
        let message = about(event, reported, &rule).ours(", in ").foreign(&finding.location);
        Self::new(event, reported, rule, message)
    }

    fn new(event: &Event, reported: Reported, rule: String, message: Message) -> Self {
        let host = event.destination.as_ref().map_or("", |to| to.host.as_str());
        let tool = event.tool_call.as_ref().map_or("", |call| call.name.as_str());
        Self {
            id: event.id,
            kind: event.kind,
            reported,
            message: message.ours(". Event ").foreign(&event.id.to_string()).ours("."),
            properties: properties(event),
            fingerprint: fingerprint(&[&rule, host, tool]),
            rule,
            count: event.count.max(1),
            first: event.time,
            last: event.last.unwrap_or(event.time).max(event.time),
        }
    }

    pub(super) fn key(&self) -> EntryKey {
        (self.last, self.id, self.rule.clone())
    }

    /// One entry for both: that of the newer event, which counts the other.
    pub(super) fn joined_with(self, other: Self) -> Self {
        let count = self.count.saturating_add(other.count);
        let (first, last) = (self.first.min(other.first), self.last.max(other.last));
        let newer = if (other.last, other.id) > (self.last, self.id) { other } else { self };
        Self { count, first, last, ..newer }
    }
}

/// `Tool call Bash at api.anthropic.com:443 was denied by agents/coders/no-rm`
fn about(event: &Event, reported: Reported, rule: &str) -> Message {
    let mut message = match (&event.tool_call, &event.http) {
        (Some(call), _) => Message::default().ours("Tool call ").foreign(&call.name),
        (None, Some(http)) => {
            let noun = if event.kind == Kind::Response { "The answer to " } else { "Request " };
            Message::default().ours(noun).foreign(&http.method).ours(" ").foreign(&http.path)
        }
        (None, None) => Message::default().ours("Connection"),
    };
    if let Some(to) = &event.destination {
        let preposition = if event.tool_call.is_none() && event.http.is_none() { " to " } else { " at " };
        message = message.ours(preposition).foreign(&format!("{}:{}", to.host, to.port));
    }
    message.ours(" ").ours(reported.words()).ours(" ").foreign(rule)
}

fn properties(event: &Event) -> log::ResultProperties {
    let transforms: Vec<&str> = event.transforms.iter().map(|transform| &*transform.name).collect();
    let api = event.provider.as_ref().map(|provider| &*provider.api).filter(|api| !api.is_empty());
    let payload = api.unwrap_or(if event.http.is_some() { "http" } else { "connection" });
    let workload = event.workload.as_ref().map(|workload| format!("{}/{}", workload.namespace, workload.pod));
    let tool = event.tool_call.as_ref().map(|call| shortened(&call.name));
    log::ResultProperties {
        event_id: event.id.to_string(),
        session_id: event.session.as_deref().map(shortened),
        event_kind: event.kind,
        direction: event.direction,
        payload_kind: shortened(payload),
        trace_id: event.trace.map(|trace| format!("{:032x}", u128::from_be_bytes(trace.trace))),
        tracking_id: event.exchange.or(event.connection).map(|id| id.to_string()),
        transform: Some(shortened(&transforms.join(","))).filter(|names| !names.is_empty()),
        verdict: event.decision.verdict,
        host: event.destination.as_ref().map(|to| shortened(&to.host)),
        tool,
        workload: workload.as_deref().map(shortened),
    }
}

/// The same for equal denials, whenever and in whichever pod: 64 hex digits.
fn fingerprint(parts: &[&str]) -> String {
    let mut bytes = Vec::new();
    for part in parts {
        bytes.extend(part.len().to_be_bytes());
        bytes.extend(part.as_bytes());
    }
    sha256_hex(&bytes)
}
