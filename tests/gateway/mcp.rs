//! The gateway's tools for agents: the same on each way in, bounded, and true of what the gateway would do.

use serde_json::{Value, json};

use super::{INSPECT_API, inspected, inspected_with};
use crate::support::setup::policy;
use crate::support::{Agent, Answer, Gateway};

const DOOR: &str = "http://postern.internal/mcp";
const JSON: (&str, &str) = ("content-type", "application/json");

fn message(method: &str, params: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string()
}

fn posted(agent: &Agent, body: &str) -> Answer {
    agent.request("POST", DOOR, &[JSON], body.as_bytes())
}

/// The text of a tool's result, as JSON.
fn called(gateway: &Gateway, name: &str, arguments: &Value) -> Value {
    let body = message("tools/call", &json!({"name": name, "arguments": arguments}));
    let answer = posted(&gateway.agent(), &body);
    assert_eq!(answer.status, 200, "{answer:?}");
    let text = answer.json()["result"]["content"][0]["text"].as_str().unwrap().to_owned();
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Everything may be asked, and a rule denies shells that remove.
fn open() -> String {
    policy(&[INSPECT_API]).replace(
        "podSelector",
        "explain: Policy\n  tools: [{name: no-rm, kind: Shell, action: Deny, reason: Not here, \
         when: {param: command, operator: Contains, values: [rm]}}]\n  podSelector",
    )
}

#[test]
fn a_refusal_is_explained_by_a_tool_in_absolute_form_and_inside_connect() {
    let test = inspected();
    let refusal = test.gateway.agent().get("http://evil.example.com/");
    let event = refusal.header("x-postern-event").unwrap();
    let told = called(&test.gateway, "explain_denial", &json!({"event": event}));
    assert_eq!((&told["event"], &told["rule"]), (&event.into(), &"postern/builtin/default-deny".into()));

    let mut connection = test.gateway.agent().connect("postern.internal:80").unwrap();
    for _ in 0..2 {
        let body = message("tools/list", &json!({}));
        let length = body.len();
        connection.send(format!(
            "POST /mcp HTTP/1.1\r\nHost: postern.internal\r\nContent-Type: application/json\r\n\
             Content-Length: {length}\r\n\r\n{body}"
        ));
        let answer = connection.read_answer();
        assert_eq!(answer.header("content-type"), Some("application/json"));
        assert_eq!(answer.json()["result"]["tools"][0]["name"], "explain_denial");
    }
}

#[test]
fn what_is_said_of_an_action_is_what_becomes_of_it() {
    let test = inspected_with(|setup| setup.policy(&open()));
    let check = |action: Value| called(&test.gateway, "check_action", &action);
    for url in ["https://api.example.com/echo", "https://evil.example.com/", "http://postern.internal:8080/"]
    {
        let said = check(json!({"url": url}));
        let denied = test.gateway.agent().request("GET", &url.replace("https", "http"), &[], b"");
        assert_eq!(said["verdict"] == "Deny", !url.contains("api"), "{url}: {said}");
        if said["verdict"] == "Deny" {
            assert_eq!(said["rule"].as_str(), denied.header("x-postern-rule"), "{url}");
        }
    }
    let call = |command: &str| check(json!({"tool": "Bash", "input": {"command": command}}));
    assert_eq!(call("ls"), json!({"verdict": "Allow"}));
    assert_eq!(call("rm x")["rule"], "agents/test/no-rm");
    assert!(test.upstream.requests().is_empty(), "nothing is sent for a question");
}

#[test]
fn without_the_policys_word_only_denials_are_explained() {
    let test = inspected();
    for name in ["list_permissions", "check_action"] {
        let body = message("tools/call", &json!({"name": name, "arguments": {"tool": "Bash"}}));
        assert_eq!(posted(&test.gateway.agent(), &body).json()["error"]["code"], -32_602, "{name}");
    }
}

#[test]
fn a_body_that_is_too_long_or_that_does_not_come_is_refused() {
    let test = inspected_with(|setup| setup.set("/timeouts/agentHead", "300ms"));
    let long = posted(&test.gateway.agent(), &message("ping", &json!({"x": "x".repeat(64 << 10)})));
    assert_eq!((long.status, &long.json()["error"]["code"]), (413, &json!(-32_600)));

    let mut connection = test.gateway.agent().connect("postern.internal:80").unwrap();
    connection.send(
        "POST /mcp HTTP/1.1\r\nHost: postern.internal\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{",
    );
    assert_eq!(connection.read_answer().status, 408);
}

#[test]
fn a_page_in_a_browser_may_call_no_tool() {
    let test = inspected_with(|setup| setup.policy(&open()));
    let body = message("tools/call", &json!({"name": "list_permissions"}));
    let headers = [JSON, ("origin", "http://postern.internal")];
    let refused = test.gateway.agent().request("POST", DOOR, &headers, body.as_bytes());
    assert!(refused.status == 403 && !refused.text().contains("api.example.com"), "{refused:?}");
}
