//! What an agent asks the gateway: it learns why, and nothing by which it could find a way around.

use super::model::{Model, call, message, named};
use crate::parity::anthropic::Anthropic;
use crate::parity::dialect::Mode::Streamed;

const NO_CANARY: &str = "tools: [{name: no-canary, kind: Shell, action: Deny, reason: Not here, \
                         when: {param: command, operator: Contains, values: [canary-pattern]}}]";

/// J17: of a denied call the rule, its reason and the name of a parameter are told: no pattern, and nothing of the input.
#[test]
fn what_is_told_of_a_denied_call_holds_no_pattern_and_no_input() {
    let model = Model::under(NO_CANARY);
    let blocks = [call(0, "toolu_1", "Bash", &[r#"{"command":"canary-pattern canary-input"}"#])];
    assert_eq!(model.ask(&Anthropic, Streamed, named(&message(&blocks, "tool_use"))).status, 200);
    let event = model.event("toolu_1");
    let url = format!("http://postern.internal/why/{}", event["id"].as_str().unwrap());

    let answer = model.gateway.agent().get(&url);

    assert_eq!(answer.status, 200, "{answer:?}");
    let told = answer.json();
    assert_eq!(told["rule"], "agents/test/no-canary");
    assert_eq!(told["reason"], "Not here");
    assert_eq!(told["parameters"], serde_json::json!(["command"]));
    let told_keys: Vec<&String> = told.as_object().unwrap().keys().collect();
    assert_eq!(told_keys.len(), 6, "{told}");
    assert!(!answer.text().contains("canary-pattern") && !answer.text().contains("canary-input"), "{told}");
}

/// J17: what was allowed is not told of, so that the answers describe no traffic.
#[test]
fn of_what_was_allowed_nothing_is_told() {
    let model = Model::under(NO_CANARY);
    let blocks = [call(0, "toolu_1", "Bash", &[r#"{"command":"ls"}"#])];
    model.assert_passes(&Anthropic, Streamed, named(&message(&blocks, "tool_use")));
    let event = model.event("toolu_1");
    let url = format!("http://postern.internal/why/{}", event["id"].as_str().unwrap());
    assert_eq!(model.gateway.agent().get(&url).status, 404);
}

/// J17: whoever asks what would become of a call learns the verdict, the rule and its reason, and the call counts nowhere.
#[test]
fn a_question_about_an_action_tells_a_verdict_and_no_pattern() {
    let model = Model::under(&format!("explain: Policy\n{NO_CANARY}"));
    for (command, verdict) in [("canary-pattern canary-input", "Deny"), ("canary-input", "Allow")] {
        let call = serde_json::json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
            "name": "check_action", "arguments": {"tool": "Bash", "input": {"command": command}}}});
        let headers = [("content-type", "application/json")];
        let body = call.to_string();
        let asked =
            model.gateway.agent().request("POST", "http://postern.internal/mcp", &headers, body.as_bytes());
        assert_eq!(asked.status, 200, "{asked:?}");
        assert!(asked.text().contains(verdict) && !asked.text().contains("canary-"), "{asked:?}");
    }
    let known = model.gateway.events();
    assert!(known.iter().all(|event| event["kind"] != "ToolCall"), "{known:?}");
}
