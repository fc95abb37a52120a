//! No WebSocket is opened to a provider; on the path of Responses the refusal is one that Codex falls back from.

use super::{Providers, inspected, providers};
use crate::support::Answer;

fn websocket(test: &Providers, host: &str, path: &str) -> Answer {
    let headers = [
        ("Connection", "Upgrade"),
        ("Upgrade", "websocket"),
        ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
        ("Sec-WebSocket-Version", "13"),
    ];
    test.gateway.agent().request("GET", &format!("https://{host}{path}"), &headers, b"")
}

#[test]
fn the_websocket_of_responses_is_answered_426_and_the_post_passes() {
    let test = inspected(&["api.openai.com", "chatgpt.com"]);

    websocket(&test, "api.openai.com", "/v1/responses").assert_refused(426, "postern/builtin/provider-state");
    websocket(&test, "chatgpt.com", "/backend-api/codex/responses")
        .assert_refused(426, "postern/builtin/provider-state");
    assert!(test.upstream.requests().is_empty());

    test.assert_open(&["POST api.openai.com/v1/responses"]);
}

#[test]
fn it_is_426_too_where_the_rule_lists_the_post_alone() {
    let test = providers(
        &["api.openai.com"],
        &[
            "{name: llm, hosts: [api.openai.com], action: Inspect, endpoints: [{methods: [POST], path: /v1/responses}]}",
        ],
    );

    websocket(&test, "api.openai.com", "/v1/responses").assert_refused(426, "postern/builtin/endpoint");
    websocket(&test, "api.openai.com", "/v1/realtime").assert_refused_by_provider("postern/builtin/endpoint");

    test.assert_closed(&["GET api.openai.com/v1/responses", "POST api.openai.com/v1/chat/completions"]);
    test.assert_open(&["POST api.openai.com/v1/responses"]);
}

#[test]
fn no_rule_opens_a_websocket_to_a_provider() {
    let hosts = ["api.openai.com", "api.x.ai", "llm.example.com"];
    let test = providers(
        &hosts,
        &[
            "{name: llm, hosts: [api.openai.com, api.x.ai], action: Inspect, upgrade: Allow, endpoints: [{path: /**}]}",
            "{name: own, hosts: [llm.example.com], action: Inspect, provider: OpenAIChat, upgrade: Allow, endpoints: [{path: /**}]}",
        ],
    );

    for host in hosts {
        let answer = websocket(&test, host, "/v1/realtime");
        answer.assert_refused(426, "postern/builtin/upgrade");
        assert!(answer.text().contains("LLM provider"), "{}", answer.text());
    }
    assert!(test.upstream.requests().is_empty());
}
