//! Tests of decisions about past events: what their facts allow is decided, all else cannot be said.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::*;
use crate::policy::document;
use crate::wire::json::Limits;

const BOUNDS: GuardLimits = GuardLimits {
    event_bytes: 1 << 20,
    tool_input_bytes: 1 << 20,
    body_bytes: 1 << 20,
    json: Limits { depth: 128, nodes: 10_000 },
};

fn policy() -> Arc<Policy> {
    let text = "{apiVersion: postern.dev/v1alpha1, kind: EgressPolicy, metadata: {name: p, namespace: n}, spec: {\
        destinations: [{name: a, hosts: [a.example], action: Inspect, endpoints: [{methods: [GET], path: /open/**}]}, \
        {name: m, hosts: [api.openai.com], action: Inspect}, \
        {name: t, hosts: [t.example], action: Inspect, ports: [8443]}], \
        tools: [{name: write, kind: Write, action: Deny}, {name: bad, tools: [mcp__x__bad], action: Deny}]}}";
    let documents = document::parse("p.yaml", text).unwrap();
    Arc::new(Policy::compile(&documents, &BTreeMap::new()).unwrap())
}

/// The verdict with its rule, or why it cannot be said.
fn decided(facts: &Value) -> Result<String, String> {
    let mut event = json!({
        "apiVersion": "postern.dev/event/v1", "id": "01a2008d-747b-7101-8101-010101010101",
        "time": "2026-11-22T00:00:00.123Z", "sequence": 1, "count": 1, "direction": "Outbound",
        "decision": {"verdict": "Allow"},
        "destination": {"host": "a.example", "port": 443, "action": "Inspect", "intercepted": true},
    });
    event.as_object_mut().unwrap().extend(facts.as_object().unwrap().clone());
    let line = event.to_string();
    let event = Event::read(line.as_bytes()).unwrap();
    match replay(&policy(), BOUNDS, &event, &line) {
        Some(Replayed::Decided(decision)) => {
            Ok(format!("{} {}", decision.verdict, decision.rule.unwrap_or_default()))
        }
        Some(Replayed::Unknown(why)) => Err(why),
        None => Err("no decision".to_owned()),
    }
}

fn request(method: &str, path: &str) -> Value {
    json!({"kind": "Request", "http": {"method": method, "path": path, "version": "HTTP/2"}})
}

/// A secret where a request was denied for it, or where it went on without it.
#[test]
fn what_was_found_is_decided_by_where_it_stood() {
    let of = |detector: &str, role: Option<&str>, location: &str, action: &str| {
        let mut facts = request("GET", "/open/door");
        let mut found = json!({"detector": detector, "kind": "Secrets", "confidence": "High", "location": location, "at": 0, "length": 9, "action": action});
        if let Some(role) = role {
            found["role"] = role.into();
        }
        facts["dlp"] = json!([found]);
        decided(&facts)
    };
    let denied = Ok("Deny postern/builtin/outbound-exfiltration".to_owned());
    let allowed = Ok("Allow n/p/a".to_owned());
    let token = "gitlab-token";
    assert_eq!(of(token, None, "header/x-debug", "Deny"), denied);
    assert_eq!(of(token, None, "body", "Deny"), denied);
    assert_eq!(of(token, Some("ToolResult"), "body/messages/1/content", "Redact"), allowed);
    assert!(
        of(token, Some("ToolResult"), "body/messages/1/content", "Deny")
            .unwrap_err()
            .contains("where exactly")
    );
    assert_eq!(of(token, Some("Assistant"), "body/messages/1/content", "Deny"), denied);
    assert_eq!(of("credential-file", Some("ToolResult"), "body/messages/1/content", "Audit"), allowed);
    assert!(of("pattern:gone", None, "body", "Deny").unwrap_err().contains("does not have"));
}

#[test]
fn requests_are_decided_by_destination_method_and_path() {
    assert_eq!(decided(&request("GET", "/open/door")), Ok("Allow n/p/a".to_owned()));
    assert_eq!(decided(&request("POST", "/open/door")), Ok("Deny postern/builtin/endpoint".to_owned()));
    let model = json!({"kind": "Request", "http": {"method": "POST", "path": "/v1/responses", "version": "HTTP/2"},
        "destination": {"host": "api.openai.com", "port": 443, "action": "Inspect", "intercepted": true}});
    assert_eq!(decided(&model), Ok("Allow n/p/m".to_owned()));
    let elsewhere = json!({"kind": "Request", "http": {"method": "GET", "path": "/", "version": "HTTP/2"},
        "destination": {"host": "b.example", "port": 443, "action": "Deny", "intercepted": true}});
    assert_eq!(decided(&elsewhere), Ok("Deny postern/builtin/default-deny".to_owned()));
}

#[test]
fn what_an_event_does_not_say_is_not_guessed() {
    let counted = json!({"kind": "Request", "count": 3, "last": "2026-11-22T00:00:01.000Z",
        "http": {"method": "GET", "path": "*", "version": "HTTP/2"}});
    let websocket = json!({"kind": "Request", "http": {"method": "GET", "path": "/v1/responses", "version": "HTTP/2"},
        "destination": {"host": "api.openai.com", "port": 443, "action": "Inspect", "intercepted": true}});
    let limited = json!({"kind": "Request", "http": {"method": "GET", "path": "/open/x", "version": "HTTP/2"},
        "decision": {"verdict": "Deny", "rule": "n/p/limits"}});
    for (facts, why) in [
        (counted, "several paths"),
        (websocket, "WebSocket"),
        (limited, "n/p/limits, which judges"),
        (request("GET", "/open/…"), "cut off"),
        (json!({"kind": "Transform"}), "no decision"),
        (json!({"kind": "Request", "destination": null}), "no destination"),
    ] {
        let said = decided(&facts);
        assert!(said.as_ref().is_err_and(|said| said.contains(why)), "{why}: {said:?}");
    }
}

#[test]
fn a_connection_is_decided_where_any_bytes_on_it_would_be_decided_alike() {
    let connection = |host: &str, port: u16, intercepted: bool| {
        json!({"kind": "Connection",
            "destination": {"host": host, "port": port, "action": "Inspect", "intercepted": intercepted}})
    };
    assert_eq!(
        decided(&connection("b.example", 443, false)),
        Ok("Deny postern/builtin/default-deny".to_owned())
    );
    assert_eq!(decided(&connection("t.example", 8443, true)), Ok("Allow n/p/t".to_owned()));
    let unclear = decided(&connection("t.example", 8443, false));
    assert!(unclear.as_ref().is_err_and(|why| why.contains("what was spoken there")), "{unclear:?}");
}

#[test]
fn a_call_is_decided_by_its_name_and_the_input_that_was_kept() {
    let call = |name: &str, by: Value, input: Value| {
        json!({"kind": "ToolCall",
        "toolCall": {"name": name, "kindsBy": by, "inputBytes": 2, "input": input}})
    };
    let whole = || json!("{\"file_path\":\"/x\",\"content\":\"\"}");
    assert_eq!(decided(&call("Write", json!("Catalogue"), whole())), Ok("Deny n/p/write".to_owned()));
    assert_eq!(decided(&call("mcp__x__bad", Value::Null, Value::Null)), Ok("Deny n/p/bad".to_owned()));
    assert_eq!(decided(&call("mcp__x__good", Value::Null, Value::Null)), Ok("Allow ".to_owned()));
    let inferred = decided(&call("save", json!("Inferred"), json!("{\"q\":1}")));
    assert!(inferred.as_ref().is_err_and(|why| why.contains("read from its definition")), "{inferred:?}");
    let changed = json!({"kind": "ToolCall", "toolCall": {"name": "Bash", "kindsBy": "Catalogue", "inputBytes": 2,
        "inputSha256": "0".repeat(64), "input": "{\"command\":2}"}});
    let said = decided(&changed);
    assert!(said.as_ref().is_err_and(|why| why.contains("needs the input of Bash")), "{said:?}");
}

#[test]
fn what_an_agent_asks_the_gateway_is_no_decision_of_a_policy() {
    let mut asked = request("GET", "/policy");
    asked["destination"] =
        json!({"host": "postern.internal", "port": 80, "action": "Inspect", "intercepted": true});
    assert_eq!(decided(&asked), Err("no decision".to_owned()));
}
