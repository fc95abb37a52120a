//! What happens where a model gives no answer: the next one is asked, and the agent reads one error at the most.

use serde_json::json;

use super::*;
use crate::support::upstream::{Reply, Step};

const CHAIN: &str = "- {name: small, match: {models: ['*']}, to: [coder], fallback: [chat]}";
const ALONE: &str = "- {name: small, match: {models: ['*']}, to: [coder]}";

fn failing(script: Script) -> Scripts {
    Scripts { vllm: script, ..Scripts::default() }
}

fn error(status: u16, body: &str) -> Reply {
    Reply::of(status, body.to_owned()).header("content-type", "application/json")
}

#[test]
fn the_next_model_answers_where_one_fails_before_it_begins() {
    let scripts: [Script; 6] = [
        |_| Some(error(500, r#"{"error":{"message":"broken"}}"#)),
        |_| Some(error(429, r#"{"error":{"message":"slow down"}}"#)),
        |_| Some(error(402, r#"{"error":{"message":"pay"}}"#)),
        |_| Some(Reply::of(200, "<html>").header("content-type", "text/html")),
        |_| Some(stream(&[json!({"error": {"message": "busy"}})])),
        |_| {
            let begun = Step::Data("data: {\"choices\":[{\"delta\":{\"role\":\"assistant\"}}]}\n\n".into());
            Some(Reply::streaming(vec![begun, Step::Abort]).header("content-type", "text/event-stream"))
        },
    ];
    for (number, script) in scripts.into_iter().enumerate() {
        let test = routed(CHAIN, "", failing(script));
        let answer = test.ask(&request("claude", json!({"stream": true})));
        assert_eq!((answer.status, text_of(&answer).as_str()), (200, "spare"), "{number}: {}", answer.text());
        assert_eq!(answer.header("x-postern-route"), Some("chat"));
        let response = test.gateway.wait_for_event("the response", |event| event["kind"] == "Response");
        let attempts = &response["provider"]["route"]["attempts"];
        assert_eq!(attempts[0]["label"], "coder", "{response}");
        assert_ne!(attempts[0]["class"], "Answered", "{response}");
        assert_eq!(
            (&attempts[1]["label"], &attempts[1]["class"]),
            (&json!("chat"), &json!("Answered")),
            "{response}"
        );
    }
}

#[test]
fn the_last_failure_is_told_in_the_agents_own_words_with_a_status_that_clients_understand() {
    let cases: [(Script, u16, &str, &str); 6] = [
        (
            |_| Some(error(500, r#"{"error":{"message":"broken"}}"#)),
            502,
            "api_error",
            "Class: HTTP_500\nReason: broken",
        ),
        (|_| Some(error(503, "{}")), 529, "overloaded_error", "Class: HTTP_503"),
        (
            |_| Some(error(401, r#"{"error":{"message":"bad key sk-aaaaaaaaaaaaaaaaaaaaaaaa"}}"#)),
            400,
            "invalid_request_error",
            "[redacted]",
        ),
        (
            |_| Some(error(404, r#"{"error":{"message":"no such model"}}"#)),
            400,
            "invalid_request_error",
            "no such model",
        ),
        (
            |_| Some(error(429, r#"{"error":{"message":"slow"}}"#).header("retry-after", "7")),
            429,
            "rate_limit_error",
            "slow",
        ),
        (
            |_| {
                Some(error(
                    400,
                    r#"{"error":{"code":"context_length_exceeded","message":"This model's maximum context length is 100 tokens. However, your messages resulted in 200 tokens."}}"#,
                ))
            },
            400,
            "invalid_request_error",
            "prompt is too long: 200 tokens > 100 maximum",
        ),
    ];
    for (script, status, kind, text) in cases {
        let test = routed(ALONE, "", failing(script));
        let answer = test.ask(&request("claude", json!({})));
        assert_eq!(answer.status, status, "{}", answer.text());
        let body = answer.json();
        assert_eq!((&body["type"], &body["error"]["type"]), (&json!("error"), &json!(kind)), "{body}");
        let message = body["error"]["message"].as_str().unwrap();
        assert!(message.contains(text), "{message}");
        if status == 429 {
            assert_eq!(answer.header("retry-after"), Some("7"));
        }
        assert!(!answer.text().contains(KEY), "{}", answer.text());
    }
}

#[test]
fn a_stream_that_dies_ends_with_an_error_and_no_other_model_is_asked() {
    let test = routed(
        CHAIN,
        "",
        failing(|_| {
            let said = Step::Data("data: {\"choices\":[{\"delta\":{\"content\":\"half\"}}]}\n\n".into());
            Some(Reply::streaming(vec![said, Step::Abort]).header("content-type", "text/event-stream"))
        }),
    );
    let answer = test.ask(&request("claude", json!({"stream": true})));
    let events = events(&answer);
    assert_eq!(text_of(&answer), "half");
    assert_eq!(events.last().unwrap()["type"], "error", "{}", answer.text());
    assert!(test.spare.requests().is_empty());
}

#[test]
fn an_origin_that_is_down_still_has_its_leaf_and_the_next_model_answers() {
    let route = "- {name: outage, match: {models: ['*']}, to: [origin], fallback: [chat]}";
    let nowhere = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let test = routed_by(&policy(route, ""), Scripts::default(), |setup| setup.host(ORIGIN, nowhere));
    let answer = test.ask(&request("claude", json!({})));
    assert_eq!((answer.status, text_of(&answer).as_str()), (200, "spare"), "{}", answer.text());

    // Beside routes the same host fails as ever.
    let other = test.gateway.agent().request("GET", &format!("https://{ORIGIN}/v1/models"), &[], b"");
    assert_eq!(other.status, 502, "{}", other.text());
}

#[test]
fn the_origin_answers_itself_where_it_can_and_is_followed_where_it_is_overloaded() {
    let route = "- {name: outage, match: {models: ['*']}, to: [origin], fallback: [chat]}";
    let test = routed(route, "", Scripts::default());
    let body = request("claude", json!({"stream": false}));
    let answer = test.ask(&body);
    assert_eq!(text_of(&answer), "origin", "{}", answer.text());
    assert_eq!(test.origin.requests().pop().unwrap().body, body.to_string().as_bytes());
    assert_eq!(test.origin.requests().pop().unwrap().header("x-api-key"), Some("sk-agent-key"));

    let busy: Script =
        |_| Some(error(529, r#"{"type":"error","error":{"type":"overloaded_error","message":"busy"}}"#));
    let test = routed(route, "", Scripts { origin: busy, ..Scripts::default() });
    assert_eq!(text_of(&test.ask(&body)), "spare");
    let wrong: Script =
        |_| Some(error(400, r#"{"type":"error","error":{"type":"invalid_request_error","message":"bad"}}"#));
    let test = routed(route, "", Scripts { origin: wrong, ..Scripts::default() });
    let answer = test.ask(&body);
    assert_eq!((answer.status, answer.json()["error"]["message"].as_str()), (400, Some("bad")));
    assert!(test.spare.requests().is_empty());
}

#[test]
fn a_model_that_failed_three_times_is_passed_over_while_another_one_is_left() {
    let test = routed(CHAIN, "", failing(|_| Some(error(500, "{}"))));
    for _ in 0..5 {
        assert_eq!(text_of(&test.ask(&request("claude", json!({})))), "spare");
    }
    assert_eq!(test.vllm.requests().len(), 3);
    let life = test.gateway.wait_for_event("the change", |event| {
        event["kind"] == "Lifecycle" && event.to_string().contains("coder")
    });
    assert!(life["decision"]["reason"].as_str().unwrap().contains("passed over"), "{life}");
    assert_eq!(test.gateway.metric("postern_route_passed_over", &[("label", "coder")]), 1.0);
}

#[test]
fn a_model_that_says_nothing_in_its_time_is_followed_by_the_next() {
    let policy = policy(CHAIN, "").replace(
        "dialect: OpenAIChat, credential: vllm",
        "dialect: OpenAIChat, credential: vllm, firstEvent: 1s",
    );
    let silent: Script = |_| {
        let waits = vec![Step::Data(": hello\n\n".into()), Step::Wait(crate::support::upstream::Gate::new())];
        Some(Reply::streaming(waits).header("content-type", "text/event-stream"))
    };
    let test = routed_by(&policy, failing(silent), |setup| setup);
    let answer = test.ask(&request("claude", json!({"stream": true})));
    assert_eq!(text_of(&answer), "spare", "{}", answer.text());
    let response = test.gateway.wait_for_event("the response", |event| event["kind"] == "Response");
    assert_eq!(response["provider"]["route"]["attempts"][0]["class"], "Timeout", "{response}");
}

#[test]
fn a_server_that_cannot_be_reached_or_shows_a_foreign_certificate_is_followed_by_the_next() {
    let nowhere = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let test = routed_by(&policy(CHAIN, ""), Scripts::default(), |setup| setup.host(VLLM, nowhere));
    assert_eq!(text_of(&test.ask(&request("claude", json!({})))), "spare");

    let strangers = Pki::new("Strangers");
    let foreign = Upstream::build().identity(strangers.leaf(&[VLLM])).start();
    let test = routed_by(&policy(CHAIN, ""), Scripts::default(), |setup| setup.host(VLLM, foreign.address()));
    assert_eq!(text_of(&test.ask(&request("claude", json!({})))), "spare");
    assert!(foreign.requests().is_empty());

    // Without its key it is not asked at all.
    let test = routed_by(&policy(CHAIN, ""), Scripts::default(), |setup| {
        std::fs::remove_file(setup.path().join("credentials/vllm")).unwrap();
        setup
    });
    assert_eq!(text_of(&test.ask(&request("claude", json!({})))), "spare");
    assert!(test.vllm.requests().is_empty());
}

/// L5: a key that comes back is masked.
#[test]
fn the_key_of_a_provider_comes_back_in_no_error_answer_or_event() {
    let echo: Script = |seen| {
        let key = seen.header("authorization").unwrap_or_default().to_owned();
        let asked: Value = serde_json::from_slice(&seen.body).unwrap();
        match asked["messages"][0]["content"].as_str() {
            Some("fail") => {
                let body = json!({"error": {"message": format!("wrong key {key}")}});
                Some(error(400, &body.to_string()).header("x-key", key))
            }
            _ => Some(chat(seen, &key).header("x-key", key)),
        }
    };
    let test = routed(ALONE, "", failing(echo));
    for (said, stream) in [("go", false), ("go", true), ("fail", false), ("fail", true)] {
        let body =
            request("claude", json!({"stream": stream, "messages": [{"role": "user", "content": said}]}));
        let answer = test.ask(&body);
        let all = format!("{answer:?} {}", answer.text());
        assert!(!all.contains(KEY), "{said} {stream}: {all}");
        assert!(answer.status == 200 || said == "fail", "{all}");
    }
    test.gateway
        .wait_for_event("the last", |event| event["kind"] == "Response" && event["http"]["status"] == 400);
    assert!(!test.gateway.events().iter().any(|event| event.to_string().contains(KEY)));
    assert!(!test.gateway.log().contains(KEY));
}

#[test]
fn an_agent_that_hangs_up_ends_the_request_and_a_reload_changes_no_stream_that_has_begun() {
    let gate = crate::support::upstream::Gate::new();
    let opened = gate.clone();
    let policy_text = policy(ALONE, "");
    let upstreams = Pki::new("Upstream Test CA");
    let said = Step::Data("data: {\"choices\":[{\"delta\":{\"content\":\"half\"}}]}\n\n".into());
    let rest = Step::Data(
        "data: {\"choices\":[{\"delta\":{\"content\":\" whole\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n".into(),
    );
    let script = move |_: &Seen| {
        let steps = vec![said.clone(), Step::Wait(gate.clone()), rest.clone()];
        Some(Reply::streaming(steps).header("content-type", "text/event-stream"))
    };
    let vllm = Upstream::build().identity(upstreams.leaf(&[VLLM])).script(script).start();
    let setup =
        Setup::new(&upstreams).policy(&policy_text).credential("vllm", KEY).host(VLLM, vllm.address());
    let nowhere = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let gateway = setup.host(ORIGIN, nowhere).start();
    let body = request("claude", json!({"stream": true})).to_string();
    let head = format!(
        "POST /v1/messages HTTP/1.1\r\nHost: {ORIGIN}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut staying = gateway.agent().tls(ORIGIN);
    staying.send(&head);
    staying.read_until(b"half");
    let mut leaving = gateway.agent().tls(ORIGIN);
    leaving.send(&head);
    leaving.read_until(b"half");
    drop(leaving);
    gateway.wait_for_event("the end", |event| {
        event["kind"] == "Response" && event["destination"]["reason"] == "the agent hung up"
    });
    gateway.reload_policy(&policy_text.replace("qwen3-coder", "other"), "success");
    opened.open();
    let ending = staying.read_until(b"message_stop");
    assert!(String::from_utf8_lossy(&ending).contains(" whole"));
}

/// L9: no status hides a call.
#[test]
fn a_call_in_an_error_of_a_server_of_the_agents_own_api_is_stopped_too() {
    let policy = policy(ALONE, "  tools: [{name: no-bash, tools: [Bash], action: Deny}]\n")
        .replace("dialect: OpenAIChat, credential: vllm", "dialect: Anthropic, credential: vllm");
    let script: Script = |_| {
        let call = json!({"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "ls"}});
        let mut body: Value = serde_json::from_str(&message("x")).unwrap();
        body["error"] = json!({"type": "api_error", "message": "m"});
        body["content"] = json!([call]);
        Some(error(400, &body.to_string()))
    };
    let test = routed_by(&policy, failing(script), |setup| setup);
    let answer = test.ask(&request("claude", json!({})));
    assert!(!answer.text().contains("\"command\""), "{}", answer.text());
}

#[test]
fn a_server_that_asks_to_be_left_alone_is_passed_over() {
    let silent: Script = |_| Some(error(429, "{}").header("retry-after", "1"));
    let test = routed(CHAIN, "", failing(silent));
    assert_eq!(text_of(&test.ask(&request("claude", json!({})))), "spare");
    assert_eq!(text_of(&test.ask(&request("claude", json!({})))), "spare");
    assert_eq!(test.vllm.requests().len(), 1, "it asked to be left alone");
}

#[test]
fn a_failed_request_has_its_two_events_and_a_gateway_without_memory_blames_no_model() {
    let test = routed_by(&policy(ALONE, ""), Scripts::default(), |setup| {
        std::fs::remove_file(setup.path().join("credentials/vllm")).unwrap();
        setup
    });
    let answer = test.ask(&request("claude", json!({})));
    assert_eq!(answer.status, 502, "{}", answer.text());
    let response = test.gateway.wait_for_event("the response", |event| event["kind"] == "Response");
    let asked = test.gateway.wait_for_event("the request", |event| event["kind"] == "Request");
    assert_eq!(asked["exchange"], response["exchange"]);
    assert_eq!(answer.header("x-postern-event"), response["id"].as_str());
}
