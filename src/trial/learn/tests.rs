//! Tests of drafts: what they grant, what they do not, and that what was seen goes on under them.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::policy::Policy;
use crate::policy::document;
use crate::provider::answer::GuardLimits;
use crate::trial::replay::{Replayed, replay};
use crate::wire::json::Limits;

const BOUNDS: GuardLimits = GuardLimits {
    event_bytes: 1 << 20,
    tool_input_bytes: 1 << 20,
    body_bytes: 1 << 20,
    json: Limits { depth: 128, nodes: 10_000 },
};

/// An event of a policy in Audit.
fn event(number: usize, facts: &Value) -> Event {
    let mut event = json!({
        "apiVersion": "postern.dev/event/v1", "id": format!("01a2008d-747b-7101-8101-{number:012}"),
        "time": "2026-11-22T00:00:00.123Z", "sequence": number + 1, "count": 1, "direction": "Outbound",
        "workload": {"namespace": "agents", "pod": "coder-0"},
        "decision": {"verdict": "WouldDeny", "rule": "postern/builtin/default-deny", "enforcement": "Audit"},
    });
    event.as_object_mut().unwrap().extend(facts.as_object().unwrap().clone());
    Event::read(event.to_string().as_bytes()).unwrap()
}

fn to(host: &str, port: u16) -> Value {
    json!({"host": host, "port": port, "action": "Inspect", "intercepted": true})
}

fn request(host: &str, method: &str, path: &str) -> Value {
    json!({"kind": "Request", "destination": to(host, 443), "http": {"method": method, "path": path, "version": "HTTP/2"}})
}

fn call(name: &str) -> Value {
    json!({"kind": "ToolCall", "toolCall": {"name": name, "inputBytes": 2},
        "decision": {"verdict": "WouldDeny", "rule": "agents/p/toolDefault", "enforcement": "Audit"}})
}

fn with(mut facts: Value, verdict: &str, rule: &str) -> Value {
    facts["decision"] = json!({"verdict": verdict, "rule": rule, "enforcement": "Audit"});
    facts
}

/// A day of an agent, with what nobody should be granted.
fn day() -> Vec<Event> {
    let mut facts = Vec::new();
    for _ in 0..3 {
        facts.push(request("api.anthropic.com", "POST", "/v1/messages"));
        facts.push(call("Bash"));
        facts.push(call("mcp__github__get_issue"));
        facts.push(json!({"kind": "Connection",
            "destination": {"host": "db.example.com", "port": 5432, "action": "Tunnel", "intercepted": false}}));
        facts.push(request("evil.example", "POST", "/\n- {name: x}"));
    }
    for id in ["11", "22", "33", "44"] {
        facts.push(request("api.github.com", "GET", &format!("/repos/{id}/pulls")));
        facts.push(request("api.github.com", "POST", &format!("/repos/{id}/pulls")));
    }
    facts.push(request("once.example", "GET", "/a"));
    facts.push(call("a: b # c"));
    facts.push(json!({"kind": "Connection", "destination": {"host": "198.51.100.7", "port": 443, "action": "Tunnel", "intercepted": false}}));
    facts.push(request("paste.example.org", "GET", "/x"));
    facts.push(with(request("paste.example.org", "POST", "/x"), "WouldDeny", "agents/p/no-paste"));
    facts.push(with(
        request("api.github.com", "POST", "/app/installations/1/access_tokens"),
        "WouldDeny",
        "postern/builtin/minting",
    ));
    facts.push(with(
        json!({"kind": "Connection", "destination": to("metadata.google.internal", 80)}),
        "Deny",
        "postern/builtin/denied-address",
    ));
    facts.iter().enumerate().map(|(number, facts)| event(number, facts)).collect()
}

fn draft(events: &[Event]) -> String {
    let mut learner = Learner::default();
    events.iter().for_each(|event| learner.take(event));
    learner.draft(2, &[])
}

#[test]
fn a_draft_grants_what_was_seen_often_and_says_what_it_does_not_grant() {
    assert_eq!(draft(&day()), include_str!("draft.yaml"));
}

#[test]
fn what_an_agent_asks_the_gateway_is_neither_granted_nor_listed() {
    let asked = json!({"kind": "Request", "destination": to("postern.internal", 80),
        "http": {"method": "GET", "path": "/policy", "version": "HTTP/1.1"}});
    let events =
        [event(0, &asked), event(1, &asked), event(2, &with(asked, "Deny", "postern/builtin/explain"))];
    assert!(!draft(&events).contains("postern.internal"), "{}", draft(&events));
}

#[test]
fn the_same_events_give_the_same_text_whatever_their_order_in_places() {
    let (events, mut reversed) = (day(), day());
    assert_eq!(draft(&events), draft(&events));
    reversed.reverse();
    // Numbers that fall are those of other starts.
    let without_warnings = |text: String| {
        text.lines().filter(|line| !line.starts_with("# Warning")).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(without_warnings(draft(&events)), without_warnings(draft(&reversed)));
}

#[test]
fn a_draft_is_a_policy_and_denies_nothing_but_what_it_lists() {
    let text = draft(&day());
    let enforced = text.replace("enforcement: Audit", "enforcement: Enforce");
    let documents = document::parse("learned.yaml", &enforced).unwrap();
    assert_eq!(crate::lint::warnings(&documents), []);
    let policy = Arc::new(Policy::compile(&documents, &BTreeMap::new()).unwrap());
    let (_, refused) = text.split_once("# Not granted, and why:\n").unwrap();
    let (mut granted, mut denied) = (0, 0);
    for event in day() {
        let line = serde_json::to_string(&event).unwrap();
        let is_denied = match replay(&policy, BOUNDS, &event, &line) {
            Some(Replayed::Decided(decision)) => decision.verdict == "Deny",
            Some(Replayed::Unknown(_)) | None => continue,
        };
        let about = match (&event.tool_call, &event.destination) {
            (Some(call), _) => format!("the tool {}", text::scalar(&call.name)),
            (None, Some(destination)) => shown(&destination.host, destination.port),
            (None, None) => continue,
        };
        let is_listed = refused.lines().any(|line| line.starts_with(&format!("#   {about} ")));
        assert!(!is_denied || is_listed, "{line}\n{text}");
        granted += usize::from(!is_denied);
        denied += usize::from(is_denied);
    }
    assert!(granted >= 15 && denied > 3, "{granted} {denied}");
}

#[test]
fn a_ledger_without_audit_or_with_gaps_is_said_at_the_top() {
    let enforced = with(request("a.example", "GET", "/"), "Allow", "n/p/a");
    let mut events = vec![event(0, &enforced), event(9, &enforced)];
    for event in &mut events {
        event.decision.enforcement = Some(Enforcement::Enforce);
    }
    let text = draft(&events);
    assert!(text.contains("# Warning: no event is of a policy in Audit"), "{text}");
    assert!(text.contains("# Warning: 8 events are missing"), "{text}");
    assert!(!draft(&day()).contains("Warning"));
}

#[test]
fn a_hostile_line_ends_no_comment_of_a_draft() {
    let injected = "x\nspec: {destinations: [{name: e, hosts: [evil.example], action: Inspect}]}";
    let mut events = day();
    let hostile = [
        with(request("a.example", "GET", "/"), "Deny", &format!("a/b/limits/{injected}")),
        with(request("b.example", "GET", "/"), "Deny", &format!("a/b/{injected}")),
        with(call(injected), "Deny", &format!("a/b/{injected}")),
        request("c.example", injected, injected),
        request(injected, "GET", "/"),
    ];
    let first = events.len();
    events.extend(hostile.iter().enumerate().map(|(number, facts)| event(first + number, facts)));
    let text = draft(&events);
    let without_comments = |text: &str| -> Vec<String> {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        lines.map(str::to_owned).collect()
    };
    assert_eq!(without_comments(&text), without_comments(&draft(&day())), "{text}");
}

#[test]
fn where_a_secret_went_nothing_is_granted_and_a_model_that_was_told_one_is_granted() {
    let finding = json!([{"detector": "gitlab-token", "kind": "Secrets", "confidence": "High", "location": "body",
        "at": 1, "length": 26, "action": "Audit"}]);
    let mut facts = vec![request("files.example", "POST", "/a"), request("files.example", "POST", "/a")];
    let end = json!({"kind": "Response", "destination": to("files.example", 443), "dlp": finding});
    let mut told = request("api.anthropic.com", "POST", "/v1/messages");
    told["provider"] = json!({"name": "anthropic", "api": "messages"});
    told["dlp"] = finding;
    facts.extend([end, told.clone(), told]);
    let events: Vec<Event> = facts.iter().enumerate().map(|(number, facts)| event(number, facts)).collect();
    let draft = draft(&events);
    let (granted, refused) = draft.split_at(draft.find("Not granted").unwrap());
    assert!(refused.contains("files.example:443") && refused.contains("a finding ("), "{draft}");
    assert!(!granted.contains("files.example"), "{draft}");
    assert!(draft.contains("api.anthropic.com"), "{draft}");
}

#[test]
fn a_host_that_nothing_but_routes_answered_for_is_not_to_be_reached() {
    let routed = |label: &str, attempts: &[&str]| {
        let attempts: Vec<Value> =
            attempts.iter().map(|label| json!({"label": label, "class": "Connect"})).collect();
        json!({"name": "anthropic", "route": {"rule": "agents/p/small", "label": label, "attempts": attempts}})
    };
    let asked = |kind: &str, provider: Option<Value>| {
        let mut facts = request("api.anthropic.com", "POST", "/v1/messages");
        facts["kind"] = kind.into();
        facts["provider"] = provider.unwrap_or_else(|| json!({"name": "anthropic"}));
        facts
    };
    let is_closed = |facts: &[Value]| {
        let events: Vec<Event> =
            facts.iter().enumerate().map(|(number, facts)| event(number, facts)).collect();
        let text = draft(&[&events[..], &events[..]].concat());
        assert!(text.contains("hosts: [api.anthropic.com]"), "{text}");
        document::parse("learned.yaml", &text).unwrap();
        let is_closed = text.contains("reach: Routes");
        assert_eq!(text.contains("not drafted: agents/p/small"), is_closed, "{text}");
        is_closed
    };
    let by_route = asked("Request", Some(routed("coder", &[])));
    assert!(is_closed(std::slice::from_ref(&by_route)));
    assert!(is_closed(&[by_route.clone(), asked("Response", Some(routed("chat", &["coder"])))]));
    assert!(!is_closed(&[by_route.clone(), asked("Request", None)]));
    assert!(!is_closed(&[by_route.clone(), asked("Response", Some(routed("coder", &["origin"])))]));
    assert!(!is_closed(&[by_route.clone(), asked("Request", Some(routed("origin", &["coder"])))]));
    assert!(!is_closed(&[by_route, request("api.anthropic.com", "POST", "/api/hello")]));
}
