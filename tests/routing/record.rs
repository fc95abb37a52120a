//! What is recorded of a routed request: who was asked, what was changed, and nothing of a key.

use serde_json::json;

use super::*;

const SMALL: &str = "- {name: small, match: {models: ['claude-*']}, to: [coder]}";

#[test]
fn events_say_who_was_asked_and_count_what_the_upstream_counts() {
    let test = routed(SMALL, "", Scripts::default());
    let answer = test.ask(&request("claude-haiku-4-5", json!({"stream": true, "top_k": 3})));
    assert_eq!(text_of(&answer), "vllm");
    let asked = test.gateway.wait_for_event("the request", |event| event["kind"] == "Request");
    let route = &asked["provider"]["route"];
    assert_eq!(
        (&asked["provider"]["name"], &asked["provider"]["model"]),
        (&json!("anthropic"), &json!("claude-haiku-4-5"))
    );
    assert_eq!(
        *route,
        json!({"rule": "agents/p/small", "label": "coder", "vendor": "custom", "api": "chat_completions",
               "model": "qwen3-coder", "host": VLLM, "port": 8443})
    );
    assert_eq!(asked["credential"], "vllm");
    let ended = test.gateway.wait_for_event("the response", |event| event["kind"] == "Response");
    assert_eq!(ended["usage"], json!({"inputTokens": 12, "outputTokens": 5}), "{ended}");
    assert_eq!(ended["provider"]["responseModel"], "served");
    assert_eq!(ended["provider"]["route"]["attempts"][0]["class"], "Answered");
    let changed = test.gateway.wait_for_event("the transform", |event| event["kind"] == "Transform");
    let transform = &changed["transforms"][0];
    assert_eq!(transform["name"], "translate");
    assert!(transform["detail"].as_str().unwrap().contains("top_k"), "{transform}");
    assert!(!test.gateway.events().iter().any(|event| event.to_string().contains(KEY)));
    let labels = [("rule", "agents/p/small"), ("label", "coder"), ("outcome", "Answered")];
    assert_eq!(test.gateway.metric("postern_routed_requests_total", &labels), 1.0);
}

#[test]
fn a_span_is_of_the_model_that_answered_and_has_every_attempt() {
    let collector = Upstream::build().script(|_| Some(Reply::of(200, ""))).start();
    let endpoint = format!("http://{}", collector.address());
    let failing = Scripts { vllm: |_| Some(Reply::of(503, "")), ..Scripts::default() };
    let route = "- {name: small, match: {models: ['claude-*']}, to: [coder], fallback: [chat]}";
    let test = routed_by(&policy(route, ""), failing, |setup| {
        setup.variable("OTEL_EXPORTER_OTLP_ENDPOINT", &endpoint).variable("OTEL_BSP_SCHEDULE_DELAY", "20")
    });
    assert_eq!(text_of(&test.ask(&request("claude-haiku-4-5", json!({})))), "spare");
    let export = collector.wait_for_request("an export", |seen| seen.complete);
    let text = String::from_utf8_lossy(&export.body);
    let parts =
        ["postern.route.rule", "agents/p/small", "postern.route.label", "Unavailable", "Answered", SPARE];
    for part in parts {
        assert!(text.contains(part), "{part}");
    }
    assert_eq!(text.matches("postern.attempt.class").count(), 2);
    assert!(!text.contains(ORIGIN), "the server's address is the model's");
}

#[test]
fn the_status_names_models_that_are_passed_over() {
    let failing = Scripts { vllm: |_| Some(Reply::of(503, "")), ..Scripts::default() };
    let route = "- {name: small, match: {models: ['claude-*']}, to: [coder], fallback: [chat]}";
    let test = routed(route, "", failing);
    let passed_over = || {
        test.gateway.status()["reasons"].to_string().contains("routes pass over agents/p/models/coder for ")
    };
    assert!(!passed_over());
    for _ in 0..3 {
        test.ask(&request("claude-haiku-4-5", json!({})));
    }
    assert!(passed_over(), "{}", test.gateway.status());
}

#[test]
fn audit_routes_are_only_recorded() {
    let policy = policy(SMALL, "").replace("spec:\n", "spec:\n  enforcement: Audit\n");
    let test = routed_by(&policy, Scripts::default(), |setup| setup);
    let answer = test.ask(&request("claude-haiku-4-5", json!({})));
    assert_eq!(text_of(&answer), "origin", "{}", answer.text());
    let recorded = test.gateway.wait_for_event("the record", |event| {
        event["kind"] == "Policy" && event["decision"]["rule"] == "agents/p/small"
    });
    assert!(recorded["decision"]["reason"].as_str().unwrap().contains("coder"), "{recorded}");
    assert!(test.vllm.requests().is_empty());
}
