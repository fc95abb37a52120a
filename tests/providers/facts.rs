//! Rules in CEL decide about requests to models by what their bodies say.

use serde_json::json;

use crate::support::setup::policy;
use crate::support::upstream::Reply;
use crate::support::{Answer, Gateway, Pki, Setup, Upstream};

const HOST: &str = "api.anthropic.com";

fn model(rules: &str) -> (Gateway, Upstream) {
    let upstreams = Pki::new("Upstream Test CA");
    let message = json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "stop_sequence": null,
        "content": [{"type": "text", "text": "so"}], "stop_reason": "end_turn",
        "usage": {"input_tokens": 900, "output_tokens": 100},
    });
    let answer =
        move |_: &_| Some(Reply::of(200, message.to_string()).header("content-type", "application/json"));
    let upstream = Upstream::build().identity(upstreams.leaf(&[HOST])).script(answer).start();
    let text = policy(&[&format!("{{name: llm, hosts: [{HOST}], action: Inspect}}")])
        .replace("podSelector", &format!("rules:\n{rules}  podSelector"));
    let gateway = Setup::new(&upstreams).policy(&text).host(HOST, upstream.address()).start();
    (gateway, upstream)
}

fn ask(gateway: &Gateway, model: &str, tools: &[&str]) -> Answer {
    let tools: Vec<_> =
        tools.iter().map(|name| json!({"name": name, "input_schema": {"type": "object"}})).collect();
    let body = json!({
        "model": model, "max_tokens": 9, "tools": tools, "messages": [{"role": "user", "content": "go"}]
    });
    gateway.agent().request("POST", &format!("https://{HOST}/v1/messages"), &[], body.to_string().as_bytes())
}

#[test]
fn models_and_tools_that_a_rule_does_not_name_are_refused() {
    let (gateway, upstream) = model(
        "    - {name: models, when: '!event.provider.models.all(m, m in [\"claude-sonnet-5-5\"])', action: Deny, \
         reason: Not approved}\n    \
         - {name: new-mcp, when: 'event.provider.tools.exists(t, t.name.startsWith(\"mcp__\"))', action: Deny}\n",
    );

    let denied = ask(&gateway, "claude-opus-5", &[]);
    denied.assert_refused_by_provider("agents/test/models");
    assert!(denied.text().contains("Not approved"), "{}", denied.text());
    ask(&gateway, "claude-sonnet-5-5", &["Bash", "mcp__jira__search"])
        .assert_refused_by_provider("agents/test/new-mcp");
    assert!(upstream.requests().is_empty());

    assert_eq!(ask(&gateway, "claude-sonnet-5-5", &["Bash"]).status, 200);
}

#[test]
fn what_was_spent_is_known_to_rules() {
    let (gateway, upstream) = model(
        "    - {name: save, when: 'event.spent.tokensToday >= 1000 && event.provider.model.contains(\"opus\")', \
         action: Deny, reason: Use a smaller model}\n",
    );

    assert_eq!(ask(&gateway, "claude-opus-5", &[]).status, 200);
    gateway.wait_for("Response", "Allow");
    ask(&gateway, "claude-opus-5", &[]).assert_refused_by_provider("agents/test/save");
    assert_eq!(ask(&gateway, "claude-sonnet-5-5", &[]).status, 200);
    assert_eq!(upstream.requests().len(), 2);
}

#[test]
fn more_tools_than_a_rule_may_read_are_refused() {
    let (gateway, upstream) =
        model("    - {name: tools, when: 'event.provider.tools.exists(t, t.name == \"x\")', action: Deny}\n");
    let names: Vec<String> = (0..129).map(|number| format!("tool{number}")).collect();
    let tools: Vec<&str> = names.iter().map(String::as_str).collect();

    ask(&gateway, "m", &tools).assert_refused_by_provider("postern/builtin/evaluation-error");
    assert!(upstream.requests().is_empty());
    assert_eq!(ask(&gateway, "m", &tools[..128]).status, 200);
}

#[test]
fn how_much_a_conversation_holds_is_known_to_rules_and_events() {
    let (gateway, upstream) = model(
        "    - {name: long, when: 'event.conversation.messages > 1 || event.conversation.toolResults > 0', action: Deny}\n    \
         - {name: much, when: 'event.provider.maxTokens > 8 && event.provider.organization == \"org-1\"', action: Audit}\n    \
         - {name: where, when: 'event.conversation.images == 0 && event.workload.pod != \"\"', action: Deny}\n",
    );

    assert_eq!(ask(&gateway, "m", &[]).status, 200);
    let event = gateway.wait_for("Request", "Allow");
    assert_eq!(event["conversation"], json!({"messages": 1, "images": 0, "toolResults": 0}));
    assert_eq!(event["provider"]["maxTokens"], 9);
    let message = json!({"role": "user", "content": "go"});
    let body = json!({"model": "m", "max_tokens": 9, "messages": [message, message]}).to_string();
    let headers = [("openai-organization", "org-1")];
    let url = format!("https://{HOST}/v1/messages");
    let denied = gateway.agent().request("POST", &url, &headers, body.as_bytes());
    denied.assert_refused_by_provider("agents/test/long");
    let one = json!({"model": "m", "max_tokens": 9, "messages": [message]}).to_string();
    assert_eq!(gateway.agent().request("POST", &url, &headers, one.as_bytes()).status, 200);
    let recorded =
        gateway.wait_for_event("the record", |event| event["decision"]["rule"] == "agents/test/much");
    assert_eq!(recorded["provider"]["organization"], "org-1");
    assert_eq!(upstream.requests().len(), 2);
}
