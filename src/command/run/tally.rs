//! Counts what a run did, from its events, for the summary at the end.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Serialize, Serializer};

use super::denied::DenialTally;
use crate::decision::Verdict;
use crate::event::{Action, Direction, Event, HOSTED_TOOL, Kind, Usage};
use crate::ledger::Sink;
use crate::terminal;

/// How many destinations are told apart; the names are the agent's choice.
const MOST_DESTINATIONS: usize = 1_000;
/// How many types of hosted tools are told apart; others choose their names too.
const MOST_TYPES: usize = 100;
/// How many of them the text shows.
const SHOWN: usize = 20;

/// The counts so far; clones count together.
#[derive(Clone, Default)]
pub(super) struct RunTally(Arc<Mutex<RunSummary>>);

/// The summary of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RunSummary {
    #[serde(flatten)]
    pub(super) total: RunCounts,
    /// By `host:port`; those beyond the first thousand are counted in the total alone.
    pub(super) destinations: BTreeMap<String, RunCounts>,
    /// Hosted tools that were taken out of requests, by type; those beyond the first hundred types are left out.
    pub(super) hosted_tools_stripped: BTreeMap<String, u64>,
    /// Answers of the models that routes name, by label.
    pub(super) answered_by_routes: BTreeMap<String, u64>,
    /// By rule, and by host or tool.
    #[serde(serialize_with = "rows")]
    pub(super) denied_by: DenialTally,
}

fn rows<S: Serializer>(denied: &DenialTally, serializer: S) -> Result<S::Ok, S::Error> {
    denied.rows().serialize(serializer)
}

/// Counts of one destination, or of all.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RunCounts {
    /// Requests that were read, refused ones too.
    pub(super) requests: u64,
    /// Connections whose bytes passed unseen.
    pub(super) tunnels: u64,
    /// Requests, and connections that came to no request.
    pub(super) denied: u64,
    pub(super) would_deny: u64,
    /// Requests that the upstream could not be used for.
    pub(super) failed: u64,
    /// Tool calls that a text was put in the place of.
    pub(super) tool_calls_denied: u64,
    /// Tokens as providers count them.
    pub(super) input_tokens: u64,
    pub(super) output_tokens: u64,
    /// Bytes of answers, and from servers through tunnels.
    pub(super) received_bytes: u64,
    /// Bytes to servers through tunnels alone.
    pub(super) tunnelled_out_bytes: u64,
}

impl RunTally {
    pub(super) fn summary(&self) -> RunSummary {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Sink for RunTally {
    fn write(&mut self, event: &Event, _line: &[u8]) -> io::Result<()> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).count(event);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl RunSummary {
    fn count(&mut self, event: &Event) {
        let counts = RunCounts::of(event);
        self.total.add(&counts, event.count);
        if event.kind == Kind::Transform {
            self.count_stripped(event);
        }
        self.count_routed(event);
        self.denied_by.count(event, counts_alone(event));
        let Some(destination) = &event.destination else { return };
        let name = format!("{}:{}", destination.host, destination.port);
        if counts != RunCounts::default()
            && (self.destinations.len() < MOST_DESTINATIONS || self.destinations.contains_key(&name))
        {
            self.destinations.entry(name).or_default().add(&counts, event.count);
        }
    }

    fn count_stripped(&mut self, event: &Event) {
        let types = event.transforms.iter().filter(|transform| transform.name == HOSTED_TOOL);
        for name in types.filter_map(|transform| transform.detail.as_deref()) {
            if let Some(count) = self.hosted_tools_stripped.get_mut(name) {
                *count += event.count;
            } else if self.hosted_tools_stripped.len() < MOST_TYPES {
                self.hosted_tools_stripped.insert(name.to_owned(), event.count);
            }
        }
    }

    /// Labels are of policies, so they are as few as these name.
    fn count_routed(&mut self, event: &Event) {
        let route = event.provider.as_ref().and_then(|provider| provider.route.as_ref());
        let last = route.filter(|_| event.kind == Kind::Response).and_then(|route| route.attempts.last());
        if let Some(answered) = last.filter(|attempt| attempt.class == "Answered") {
            *self.answered_by_routes.entry(answered.label.to_string()).or_default() += event.count;
        }
    }

    /// For people, each line after `postern: `.
    pub(super) fn text(&self) -> String {
        let failed = self.total.failures();
        let RunCounts { requests, tunnels, denied, would_deny, received_bytes, tunnelled_out_bytes, .. } =
            &self.total;
        // Writing to a String cannot fail.
        let mut text = format!(
            "postern: {}, {}, {denied} denied{failed}, {would_deny} would be denied by a policy\n\
             postern: {} denied, {} read and {} written by models\n\
             postern: {} received, {} sent through tunnels, {}\n",
            counted(*requests, "request"),
            counted(*tunnels, "tunnel"),
            counted(self.total.tool_calls_denied, "tool call"),
            counted(self.total.input_tokens, "token"),
            self.total.output_tokens,
            size(*received_bytes),
            size(*tunnelled_out_bytes),
            counted(self.destinations.len() as u64, "destination"),
        );
        if let Some(labels) = frequencies(&self.answered_by_routes) {
            let _ = writeln!(text, "postern: models of routes answered: {labels}");
        }
        if let Some(stripped) = frequencies(&self.hosted_tools_stripped) {
            let _ = writeln!(text, "postern: hosted tools taken out of requests: {stripped}");
        }
        let mut busiest: Vec<_> = self.destinations.iter().collect();
        busiest
            .sort_by_key(|(_, counts)| std::cmp::Reverse((counts.denied, counts.requests + counts.tunnels)));
        for (name, counts) in busiest.iter().take(SHOWN) {
            let _ = writeln!(text, "postern:   {}  {}", terminal::plain(name), counts.phrase());
        }
        if let Some(more) = busiest.len().checked_sub(SHOWN).filter(|more| *more > 0) {
            let _ = writeln!(text, "postern:   and {more} more");
        }
        text + &self.denied_by.text()
    }
}

impl RunCounts {
    fn of(event: &Event) -> Self {
        let destination = event.destination.as_deref();
        let tunnelled = destination.is_some_and(|to| to.action == Action::Tunnel);
        let bytes = event.payload.as_ref().map_or(0, |payload| payload.bytes);
        let outbound = event.direction == Direction::Outbound;
        let count_if = |holds: bool| u64::from(holds);
        let response = event.kind == Kind::Response;
        let verdict = event.decision.verdict;
        let tokens = |count: fn(&Usage) -> Option<u64>| event.usage.as_ref().and_then(count).unwrap_or(0);
        Self {
            requests: count_if(event.kind == Kind::Request),
            tunnels: count_if(event.kind == Kind::Connection && tunnelled),
            denied: count_if(counts_alone(event) && verdict == Verdict::Deny),
            would_deny: count_if(verdict == Verdict::WouldDeny),
            failed: count_if(response && is_failure(event)),
            tool_calls_denied: count_if(event.kind == Kind::ToolCall && verdict == Verdict::Deny),
            input_tokens: tokens(|usage| usage.input_tokens),
            output_tokens: tokens(|usage| usage.output_tokens),
            received_bytes: if response && !outbound { bytes } else { 0 },
            tunnelled_out_bytes: if response && outbound { bytes } else { 0 },
        }
    }

    fn add(&mut self, other: &Self, times: u64) {
        self.requests += other.requests * times;
        self.tunnels += other.tunnels * times;
        self.denied += other.denied * times;
        self.would_deny += other.would_deny * times;
        self.failed += other.failed * times;
        self.tool_calls_denied += other.tool_calls_denied * times;
        self.input_tokens += other.input_tokens;
        self.output_tokens += other.output_tokens;
        self.received_bytes += other.received_bytes;
        self.tunnelled_out_bytes += other.tunnelled_out_bytes;
    }

    /// `, 1 failed`, where some did.
    fn failures(&self) -> String {
        if self.failed == 0 { String::new() } else { format!(", {} failed", self.failed) }
    }

    fn phrase(&self) -> String {
        let mut parts = Vec::new();
        if self.requests > 0 {
            parts.push(counted(self.requests, "request"));
        }
        if self.tunnels > 0 {
            parts.push(counted(self.tunnels, "tunnel"));
        }
        if self.denied > 0 {
            parts.push(format!("{} denied", self.denied));
        }
        if self.failed > 0 {
            parts.push(format!("{} failed", self.failed));
        }
        if self.would_deny > 0 {
            parts.push(format!("{} would be denied", self.would_deny));
        }
        if self.tool_calls_denied > 0 {
            parts.push(format!("{} denied", counted(self.tool_calls_denied, "tool call")));
        }
        parts.push(format!("{} received", size(self.received_bytes)));
        parts.join(", ")
    }
}

/// Whether an answer is the gateway's own, since the upstream could not be used: one that came has no reason.
fn is_failure(event: &Event) -> bool {
    let status = event.http.as_ref().and_then(|http| http.status);
    let is_reasoned = event.destination.as_deref().is_some_and(|to| to.reason.is_some());
    matches!(status, Some(502..=504)) && is_reasoned && event.decision.verdict != Verdict::Deny
}

/// Whether an event counts as a request or a connection by itself: behind an intercepted connection that is refused,
/// the refused request has an event of its own.
fn counts_alone(event: &Event) -> bool {
    match event.kind {
        Kind::Connection => event.destination.as_deref().is_none_or(|to| !to.intercepted),
        Kind::Request => true,
        Kind::ToolCall
        | Kind::Response
        | Kind::Transform
        | Kind::Policy
        | Kind::Lifecycle
        | Kind::Unknown => false,
    }
}

/// `web_search_20250305 3 times, mcp once`, the most frequent first.
fn frequencies(counts: &BTreeMap<String, u64>) -> Option<String> {
    let mut names: Vec<_> = counts.iter().collect();
    names.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    let times = |count: u64| if count == 1 { "once".to_owned() } else { format!("{count} times") };
    let shown =
        names.iter().take(SHOWN).map(|(name, count)| format!("{} {}", terminal::plain(name), times(**count)));
    let mut text = shown.collect::<Vec<_>>().join(", ");
    if let Some(more) = names.len().checked_sub(SHOWN).filter(|more| *more > 0) {
        // Writing to a String cannot fail.
        let _ = write!(text, " and {more} more");
    }
    Some(text).filter(|text| !text.is_empty())
}

fn counted(number: u64, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// `512 B`, `1.5 KiB`, `3.0 MiB`.
fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    let (mut tenths, mut unit) = (bytes.saturating_mul(10), "B");
    for larger in UNITS {
        if tenths < 10_240 {
            break;
        }
        (tenths, unit) = (tenths / 1_024, larger);
    }
    if unit == "B" { format!("{bytes} B") } else { format!("{}.{} {unit}", tenths / 10, tenths % 10) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decision::Decision;
    use crate::event::{Attempt, Destination, Http, Payload, Provider, Route, Transform};
    use crate::ledger::fresh_id;

    fn event(kind: Kind, verdict: Verdict, host: &str, action: Action) -> Event {
        let intercepted = action == Action::Inspect;
        let destination = Destination { host: host.to_owned(), port: 443, action, intercepted, reason: None };
        Event {
            destination: Some(Arc::new(destination)),
            ..Event::new(fresh_id(), kind, Decision::of(verdict))
        }
    }

    fn answer(host: &str, action: Action, direction: Direction, bytes: u64) -> Event {
        let payload = Some(Payload { bytes, ..Payload::default() });
        Event { direction, payload, ..event(Kind::Response, Verdict::Allow, host, action) }
    }

    #[test]
    fn a_run_is_counted_by_destination_and_in_total() {
        let tally = RunTally::default();
        let mut sink = tally.clone();
        for event in [
            event(Kind::Lifecycle, Verdict::Allow, "-", Action::Inspect),
            event(Kind::Connection, Verdict::Allow, "api.example.com", Action::Inspect),
            event(Kind::Request, Verdict::Allow, "api.example.com", Action::Inspect),
            answer("api.example.com", Action::Inspect, Direction::Inbound, 2_000),
            event(Kind::Request, Verdict::Deny, "api.example.com", Action::Inspect),
            event(Kind::ToolCall, Verdict::Allow, "api.example.com", Action::Inspect),
            event(Kind::ToolCall, Verdict::Deny, "api.example.com", Action::Inspect),
            Event {
                usage: Some(Usage { input_tokens: Some(12), output_tokens: Some(8), ..Usage::default() }),
                ..event(Kind::Response, Verdict::Allow, "api.example.com", Action::Inspect)
            },
            event(Kind::Connection, Verdict::Deny, "evil.example", Action::Deny),
            event(Kind::Connection, Verdict::WouldDeny, "other.example", Action::Tunnel),
            answer("other.example", Action::Tunnel, Direction::Outbound, 5),
            answer("other.example", Action::Tunnel, Direction::Inbound, 7 << 20),
        ] {
            sink.write(&event, b"").unwrap();
        }
        let text = tally.summary().text();
        let counted: String = text.split_inclusive('\n').take(6).collect();
        insta::assert_snapshot!(counted, @r"
        postern: 2 requests, 1 tunnel, 2 denied, 1 would be denied by a policy
        postern: 1 tool call denied, 12 tokens read and 8 written by models
        postern: 7.0 MiB received, 5 B sent through tunnels, 3 destinations
        postern:   api.example.com:443  2 requests, 1 denied, 1 tool call denied, 1.9 KiB received
        postern:   evil.example:443  1 denied, 0 B received
        postern:   other.example:443  1 tunnel, 1 would be denied, 7.0 MiB received
        ");
        let by_rule: Vec<&str> =
            text.lines().skip(6).map(|line| line.split("  e.g. ").next().unwrap()).collect();
        assert_eq!(
            by_rule[..2],
            [
                "postern:   denied 1 × api.example.com:443  by no rule",
                "postern:   denied 1 × evil.example:443  by no rule",
            ]
        );
    }

    #[test]
    fn what_failed_at_the_upstream_is_counted_and_what_it_answered_is_not() {
        let mut summary = RunSummary::default();
        let mut answered = |status: u16, reason: Option<&'static str>| {
            let mut event = answer("api.example.com", Action::Inspect, Direction::Inbound, 9);
            Arc::make_mut(event.destination.as_mut().unwrap()).reason = reason.map(Into::into);
            let http = Http::request("GET", "/", http::Version::HTTP_2);
            summary.count(&Event { http: Some(Http { status: Some(status), ..http }), ..event });
        };
        answered(502, None);
        answered(200, Some("the agent left"));
        answered(502, Some("the host was not found"));
        let text = summary.text();
        assert!(text.starts_with("postern: 0 requests, 0 tunnels, 0 denied, 1 failed, 0 would"), "{text}");
        assert!(text.contains("  api.example.com:443  1 failed, 27 B received\n"), "{text}");
        assert!(!RunSummary::default().text().contains("failed"));
    }

    #[test]
    fn a_refusal_inside_tls_is_one_denial() {
        let mut summary = RunSummary::default();
        let mut connection = event(Kind::Connection, Verdict::Deny, "evil.example", Action::Deny);
        Arc::make_mut(connection.destination.as_mut().unwrap()).intercepted = true;
        summary.count(&connection);
        summary.count(&event(Kind::Request, Verdict::Deny, "evil.example", Action::Deny));
        assert_eq!((summary.total.denied, summary.total.requests), (1, 1));
    }

    #[test]
    fn hosted_tools_that_were_taken_out_are_told_by_type_and_bounded() {
        let mut summary = RunSummary::default();
        let mut strip = |kind: &str| {
            let transforms = vec![
                Transform::new("hosted-tool", Some(kind.to_owned())),
                Transform::new("request", Some("tool_choice".to_owned())),
            ];
            let event = event(Kind::Transform, Verdict::Allow, "api.example.com", Action::Inspect);
            summary.count(&Event { transforms, ..event });
        };
        strip("mcp\u{1b}");
        strip("web_search");
        strip("web_search");
        (0..2 * MOST_TYPES).for_each(|number| strip(&format!("z{number:03}")));
        assert_eq!(summary.hosted_tools_stripped.len(), MOST_TYPES);
        let text = summary.text();
        let line = text.lines().find(|line| line.contains("hosted tools")).unwrap();
        assert!(line.contains(r"requests: web_search 2 times, mcp\u{1b} once, z000 once"), "{line}");
        assert!(line.ends_with(" and 80 more"), "{line}");
        assert!(!RunSummary::default().text().contains("hosted"));
    }

    #[test]
    fn answers_of_routes_are_told_by_the_label_that_answered() {
        let mut summary = RunSummary::default();
        let mut ended = |kind: Kind, attempts: &[(&str, &'static str)]| {
            let attempt = |&(label, class): &(&str, &'static str)| Attempt {
                label: label.into(),
                class: class.into(),
                ..Attempt::default()
            };
            let route = Route { attempts: attempts.iter().map(attempt).collect(), ..Route::default() };
            let provider = Some(Provider { route: Some(Arc::new(route)), ..Provider::default() });
            let event = event(kind, Verdict::Allow, "api.anthropic.com", Action::Inspect);
            summary.count(&Event { provider, ..event });
        };
        ended(Kind::Response, &[("coder", "Connect"), ("origin", "Answered")]);
        ended(Kind::Response, &[("coder", "Answered")]);
        ended(Kind::Response, &[("coder", "Answered")]);
        ended(Kind::Response, &[("coder", "Connect")]);
        ended(Kind::ToolCall, &[("coder", "Answered")]);
        let text = summary.text();
        assert!(text.contains("postern: models of routes answered: coder 2 times, origin once\n"), "{text}");
        assert!(!RunSummary::default().text().contains("routes"));
    }

    #[test]
    fn an_agent_that_invents_names_does_not_fill_the_memory() {
        let mut summary = RunSummary::default();
        for number in 0..MOST_DESTINATIONS + 5 {
            summary.count(&event(Kind::Connection, Verdict::Deny, &format!("h{number}"), Action::Deny));
        }
        assert_eq!((summary.destinations.len(), summary.total.denied), (MOST_DESTINATIONS, 1_005));
    }

    #[test]
    fn sizes_have_one_decimal() {
        let sizes: Vec<_> = [0, 1_023, 1_024, 1_536, 5 << 30].into_iter().map(size).collect();
        assert_eq!(sizes, ["0 B", "1023 B", "1.0 KiB", "1.5 KiB", "5.0 GiB"]);
    }
}
