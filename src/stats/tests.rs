//! What is counted, of events as gateways write them.

use std::sync::Arc;

use serde_json::{Value, json};

use super::*;

/// An event at a time of the 22nd of November, with these fields.
fn event(number: u64, millis: u64, fields: &Value) -> Event {
    let mut event = json!({
        "apiVersion": "postern.dev/event/v1", "id": format!("01a2008d-747b-7101-8101-{number:012}"),
        "time": Timestamp::from_unix_millis(1_795_305_600_000 + millis), "sequence": number, "count": 1,
        "kind": "Request", "direction": "Outbound", "decision": {"verdict": "Allow", "rule": "a/p/api"},
        "workload": {"namespace": "agents", "pod": "coder-0"}, "session": "s-1",
        "destination": {"host": "api.anthropic.com", "port": 443, "action": "Inspect", "intercepted": true},
        "provider": {"name": "anthropic", "api": "messages", "model": "m-1"},
        "exchange": format!("01a2008d-747b-7101-8101-{:012}", 900 + number / 10),
    });
    event.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    Event::read(event.to_string().as_bytes()).unwrap()
}

fn call(number: u64, tool: &str, verdict: &str) -> Event {
    event(
        number,
        number,
        &json!({"kind": "ToolCall", "direction": "Inbound", "toolCall": {"name": tool, "inputSha256": "00ff".repeat(16)},
            "decision": {"verdict": verdict, "rule": "a/p/no-rm", "reason": "no"}}),
    )
}

fn answer(number: u64, model: &str) -> Event {
    let usage = json!({"inputTokens": 1_000, "outputTokens": 100, "cacheReadTokens": 600});
    let provider = json!({"name": "anthropic", "api": "messages", "model": "m-1", "responseModel": model});
    event(
        number,
        number,
        &json!({"kind": "Response", "direction": "Inbound", "usage": usage, "provider": provider}),
    )
}

fn count(by: Option<GroupBy>, events: &[Event]) -> EventCounter {
    let mut counter = EventCounter::new(by);
    events.iter().for_each(|event| counter.take(event));
    counter
}

fn one_turn() -> Vec<Event> {
    vec![
        event(1, 1, &json!({})),
        call(2, "Bash", "Deny"),
        call(3, "Read", "Allow"),
        call(4, "Bash", "WouldDeny"),
        answer(5, "m-1-2026"),
        event(
            11,
            11,
            &json!({"decision": {"verdict": "Deny", "rule": "a/p/limits", "reason": "tokensPerDay"}, "count": 3}),
        ),
        answer(21, "m-2"),
        event(31, 31, &json!({"kind": "Connection", "decision": {"verdict": "Deny"}, "count": 40})),
    ]
}

#[test]
fn requests_calls_denials_and_tokens_are_counted() {
    let report = count(None, &one_turn()).report(None, None);
    let Counts {
        requests,
        denied_requests,
        denied_connections,
        tool_calls,
        denied_calls,
        would_deny,
        findings,
        tokens,
        cost,
    } = report.total.clone();
    assert_eq!((requests, denied_requests, denied_connections), (4, 3, 40));
    assert_eq!((tool_calls, denied_calls, would_deny, findings), (3, 1, 1, 0));
    assert_eq!((tokens.input, tokens.output, tokens.cache_read), (2_000, 200, 1_200));
    assert_eq!((report.events, cost, report.groups.len()), (8, None, 0));
    assert_eq!(report.tools[0], ToolRow { tool: "Bash".into(), calls: 2, denied: 1 });
    let rules: Vec<(&str, u64)> =
        report.denied.iter().map(|row| (&*row.rule, row.calls + row.requests + row.connections)).collect();
    assert_eq!(rules, [("postern/builtin/default-deny", 40), ("a/p/limits", 3), ("a/p/no-rm", 1)]);
    assert_eq!(
        report.limits,
        [LimitRow { rule: "a/p/limits".into(), reason: "tokensPerDay".into(), count: 3 }]
    );
    assert!(report.signals.is_none(), "less than three days");
}

#[test]
fn groups_have_the_tokens_of_their_answers_and_tools_those_of_the_answers_that_called_them() {
    let groups = |by| {
        let report = count(Some(by), &one_turn()).report(None, None);
        report.groups.iter().map(|row| (row.name.to_string(), row.counts.tokens.input)).collect::<Vec<_>>()
    };
    let row = |name: &str, input| (name.to_owned(), input);
    assert_eq!(groups(GroupBy::Workload), [row("agents/coder-0", 2_000)]);
    assert_eq!(groups(GroupBy::Session), [row("s-1", 2_000)]);
    assert_eq!(groups(GroupBy::Model), [row("m-2", 1_000), row("m-1-2026", 1_000), row("m-1", 0)]);
    assert_eq!(groups(GroupBy::Tool), [row("Bash", 1_000), row("Read", 1_000)]);
}

#[test]
fn what_was_spent_is_told_with_prices_alone() {
    let text = "models: [{model: 'm-1*', input: 10, output: 100, cacheRead: 1}]";
    let prices: PriceList = serde_yaml::from_str(text).unwrap();
    let report = count(Some(GroupBy::Model), &one_turn()).report(Some(&prices), None);
    let amount = |counts: &Counts| counts.cost.as_ref().map(|cost| cost.amount);
    assert_eq!(amount(&report.total), Some((400.0 * 10.0 + 600.0 + 100.0 * 100.0) / 1e6));
    let costs: Vec<_> = report.groups.iter().map(|row| (&*row.name, amount(&row.counts))).collect();
    assert_eq!(costs, [("m-2", None), ("m-1-2026", Some(0.0146)), ("m-1", None)]);
    assert_eq!(report.without_price, [Arc::from("m-2")]);
}

#[test]
fn a_call_that_a_session_repeats_is_told_from_five_on() {
    let calls = |times| (1..=times).map(|number| call(number, "Bash", "Allow")).collect::<Vec<_>>();
    assert_eq!(count(None, &calls(4)).report(None, None).repeated, []);
    let repeated = count(None, &calls(5)).report(None, None).repeated;
    let input_sha256 = "00ff".repeat(4);
    assert_eq!(
        repeated,
        [RepeatedCall { session: "s-1".into(), tool: "Bash".into(), input_sha256, count: 5 }]
    );
}

#[test]
fn findings_are_counted_by_detector_and_action() {
    let finding = json!({"detector": "github-token", "kind": "Secrets", "confidence": "High", "location": "body",
        "at": 0, "length": 40, "action": "Redact"});
    let found = event(1, 1, &json!({"dlp": [finding, finding]}));
    let report = count(None, &[found]).report(None, None);
    assert_eq!(
        report.findings,
        [FindingRow { detector: "github-token".into(), action: "Redact".into(), count: 2 }]
    );
    assert_eq!(report.total.findings, 2);
}

#[test]
fn rules_that_no_event_names_are_told() {
    let text = "apiVersion: postern.dev/v1alpha1\nkind: EgressPolicy\nmetadata: {name: p, namespace: a}\nspec:\n  \
                destinations: [{name: api, hosts: [a.example], action: Inspect}, {name: spare, hosts: [b.example], action: Deny}]\n  \
                tools: [{name: no-rm, tools: [Bash], action: Deny}]\n";
    let documents = crate::policy::document::parse("p.yaml", text).unwrap();
    let report = count(None, &one_turn()).report(None, Some(&documents));
    assert_eq!(report.never_fired.unwrap(), ["a/p/spare"]);
}

const DAY: u64 = 86_400_000;

/// Two requests a day for five days.
fn usual_days() -> Vec<Event> {
    (0..10).map(|number| event(number, number * DAY / 2, &json!({"payload": {"bytes": 1_000}}))).collect()
}

#[test]
fn what_is_new_in_the_last_day_is_told_and_in_a_usual_record_nothing() {
    let signals = |events: &[Event]| count(None, events).report(None, None).signals.unwrap();
    let usual = signals(&usual_days());
    assert!(usual.first_seen.is_empty() && usual.days.is_empty(), "{usual:?}");
    assert!(usual.denials_in_a_row.is_empty() && usual.payloads.is_empty(), "{usual:?}");
    let mut events = usual_days();
    events.push(call(50, "mcp__github__get_issue", "Allow"));
    events.last_mut().unwrap().time = Timestamp::from_unix_millis(1_795_305_600_000 + 9 * DAY / 2);
    let seen: Vec<_> =
        signals(&events).first_seen.into_iter().map(|seen| (seen.subject, seen.name.to_string())).collect();
    assert_eq!(
        seen,
        [(Subject::Tool, "mcp__github__get_issue".to_owned()), (Subject::McpServer, "github".to_owned())]
    );
}

#[test]
fn a_large_day_a_row_of_denials_and_a_large_payload_are_told() {
    let mut events = usual_days();
    let at = |number: u64, fields: &Value| event(number, 2 * DAY + number, fields);
    events.extend((100..160).map(|number| at(number, &json!({"payload": {"bytes": 1_000 + number}}))));
    events.extend((200..260).map(|number| at(number, &json!({"payload": {"bytes": 900}}))));
    events.push(at(300, &json!({"payload": {"bytes": 50_000}})));
    events.extend((400..407).map(|number| at(number, &json!({"decision": {"verdict": "Deny"}}))));
    let signals = count(None, &events).report(None, None).signals.unwrap();
    let days: Vec<_> = signals.days.iter().map(|day| (day.what, day.count, day.median)).collect();
    assert_eq!(days, [("requests", 130, 2)]);
    let rows: Vec<u64> = signals.denials_in_a_row.iter().map(|row| row.count).collect();
    assert_eq!(rows, [7]);
    let payloads: Vec<u64> = signals.payloads.iter().map(|payload| payload.bytes).collect();
    assert_eq!(payloads, [50_000]);
}

#[test]
fn an_empty_record_counts_nothing() {
    let report = count(Some(GroupBy::Tool), &[]).report(None, None);
    assert_eq!((report.events, report.from, report.total), (0, None, Counts::default()));
}

#[test]
fn results_that_were_shortened_are_counted_by_what_became_of_them() {
    let extent = |bytes: u64| json!({"sha256": "00", "bytes": bytes, "tokens": bytes / 4});
    let cut = json!({"name": "tool-output-compressed", "detail": "evidence x", "before": extent(4_000), "after": extent(400)});
    let left = json!({"name": "tool-output-left", "detail": "full", "before": extent(800)});
    let sum = json!({"name": "tool-outputs", "detail": "1 compressed"});
    let transforms = json!({"kind": "Transform", "transforms": [cut, left, cut]});
    let events = [
        event(1, 1, &transforms),
        event(2, 2, &json!({"kind": "Response", "transforms": [sum, cut]})),
        event(3, 3, &json!({"kind": "Transform", "transforms": [json!({"name": "redact", "detail": "x"})]})),
    ];
    let rows = count(None, &events).report(None, None).tool_outputs;
    let row = |action: &str, reason: Option<&str>, texts, before, after| OutputRow {
        action: action.into(),
        reason: reason.map(Arc::from),
        texts,
        bytes_before: before,
        bytes_after: after,
        tokens_before: before / 4,
        tokens_after: after / 4,
    };
    assert_eq!(rows, [row("compressed", None, 2, 8_000, 800), row("left", Some("full"), 1, 800, 800)]);
}
