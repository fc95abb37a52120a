//! What limits count of the answers of models.

use serde_json::json;

use crate::support::setup::policy;
use crate::support::upstream::Reply;
use crate::support::{Pki, Setup, Upstream};

const HOST: &str = "api.anthropic.com";

#[test]
fn what_is_allowed_inside_a_denied_call_does_not_end_a_row_of_denials() {
    let uses = json!({"tool_uses": [
        {"recipient_name": "functions.Bash", "parameters": {"command": "rm x"}},
        {"recipient_name": "functions.Read", "parameters": {"file_path": "/x"}},
    ]});
    let message = json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "stop_sequence": null,
        "content": [{"type": "tool_use", "id": "toolu_1", "name": "parallel", "input": uses}],
        "stop_reason": "tool_use", "usage": {"input_tokens": 1, "output_tokens": 1},
    });
    let upstreams = Pki::new("Upstream Test CA");
    let answer =
        move |_: &_| Some(Reply::of(200, message.to_string()).header("content-type", "application/json"));
    let upstream = Upstream::build().identity(upstreams.leaf(&[HOST])).script(answer).start();
    let policy = policy(&[&format!("{{name: llm, hosts: [{HOST}], action: Inspect}}")]).replace(
        "podSelector",
        "limits: {consecutiveDenials: 1}\n  \
         tools: [{name: no-rm, kind: Shell, action: Deny, when: {param: command, operator: Contains, values: [rm]}}]\n  \
         podSelector",
    );
    let gateway = Setup::new(&upstreams).policy(&policy).host(HOST, upstream.address()).start();
    let ask = || {
        let body = br#"{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"go"}]}"#;
        gateway.agent().request("POST", &format!("https://{HOST}/v1/messages"), &[], body)
    };

    let first = ask();
    assert!(first.status == 200 && first.text().contains("Tool: Bash"), "{}", first.text());
    let second = ask();
    assert!(second.status == 403 && second.text().contains("in a row were denied"), "{}", second.text());
}
