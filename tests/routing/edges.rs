//! What stands beside an answer of a route: connections that are used again, counts behind rules and limits, and ends of which
//! no model is to blame.

use serde_json::json;

use super::*;

const CHAIN: &str = "- {name: all, match: {models: ['claude-*']}, to: [coder], fallback: [chat]}";

#[test]
fn a_connection_is_used_again_and_what_follows_the_end_is_dropped() {
    let script: Script = |seen| {
        let asked: Value = serde_json::from_slice(&seen.body).unwrap();
        let said = json!({"id": "c1", "choices": [{"index": 0, "delta": {"content": "vllm"}, "finish_reason": "stop"}]});
        let late = json!({"id": "c1", "choices": [{"index": 0, "delta": {"content": "late"}}]});
        let behind = match asked["messages"][0]["content"].as_str().unwrap() {
            "nothing" => String::new(),
            "a comment" => ": bye\n\n".to_owned(),
            _ => format!("data: {late}\n\ndata: [DONE]\n\n"),
        };
        let body = format!("data: {said}\n\ndata: [DONE]\n\n{behind}");
        Some(Reply::of(200, body).header("content-type", "text/event-stream"))
    };
    let test = routed(CHAIN, "", Scripts { vllm: script, ..Scripts::default() });
    let asked = |behind: &str| {
        request("claude-opus", json!({"stream": true, "messages": [{"role": "user", "content": behind}]}))
    };
    for behind in ["nothing", "a comment", "an event", "nothing"] {
        let answer = test.ask(&asked(behind));
        assert_eq!(
            (text_of(&answer).as_str(), events(&answer).last().unwrap()["type"].as_str()),
            ("vllm", Some("message_stop")),
            "{behind}: {}",
            answer.text()
        );
    }
    let links: Vec<usize> = test.vllm.requests().iter().map(|seen| seen.link).collect();
    assert_eq!(links, [0, 0, 0, 0], "each request on the connection of the one before");
}

#[test]
fn counts_stay_behind_rules_and_limits() {
    let count = |test: &Routed, model: &str| {
        test.post(&format!("{ORIGIN}/v1/messages/count_tokens"), &[], &request(model, json!({})).to_string())
    };
    let rules = "reach-routes  rules: [{name: no-opus, when: 'event.provider.model.contains(\"opus\")', action: Deny}]\n";
    let test = routed(CHAIN, rules, Scripts::default());
    count(&test, "claude-opus-4").assert_refused_by_provider("agents/p/no-opus");
    assert_eq!(count(&test, "claude-haiku-4-5").status, 200);

    let test = routed(CHAIN, "reach-routes  limits: {requestsPerMinute: 2}\n", Scripts::default());
    let statuses = [0, 1, 2].map(|_| count(&test, "claude-haiku-4-5").status);
    assert_eq!(statuses, [200, 200, 429]);
    assert!(test.vllm.requests().is_empty());

    // A hosted tool is taken out before it is counted, and refused where policy says so.
    let test = routed(CHAIN, "reach-routes  hostedTools: {action: Deny}\n", Scripts::default());
    let body = request(
        "claude-haiku-4-5",
        json!({"tools": [{"type": "web_search_20250305", "name": "web_search"}]}),
    );
    let refused = test.post(&format!("{ORIGIN}/v1/messages/count_tokens"), &[], &body.to_string());
    refused.assert_refused_by_provider("agents/p/hostedTools");
}

#[test]
fn the_gateways_own_want_of_memory_blames_no_model() {
    let test = routed_by(&policy(CHAIN, ""), Scripts::default(), |setup| {
        setup.set("/limits/bufferedBytes", 2 << 20)
    });
    let large =
        request("claude-opus-4", json!({"messages": [{"role": "user", "content": "x".repeat(1_200_000)}]}));
    for _ in 0..4 {
        let refused = test.ask(&large);
        assert_eq!(
            (refused.status, refused.header("x-postern-rule")),
            (503, Some("postern/builtin/bound")),
            "{}",
            refused.text()
        );
    }
    for class in ["Connect", "Timeout", "Unavailable", "Translate", "Rejected"] {
        assert_eq!(test.gateway.metric("postern_route_attempts_total", &[("class", class)]), 0.0, "{class}");
    }
    assert!(test.vllm.requests().is_empty() && test.spare.requests().is_empty());
    // Four failures in a row would have had it passed over.
    assert_eq!(text_of(&test.ask(&request("claude-opus-4", json!({})))), "vllm");
    // The twin: the same body goes where the agent sent it, since no second one is made of it.
    let mut unrouted = large;
    unrouted["model"] = json!("other");
    assert_eq!(text_of(&test.ask(&unrouted)), "origin");
}

#[test]
fn an_answer_for_which_there_is_no_memory_blames_no_model() {
    let script: Script = |seen| {
        let asked: Value = serde_json::from_slice(&seen.body).unwrap();
        let is_large = asked["messages"][0]["content"] == "much";
        let text = if is_large { "x".repeat(3 << 20) } else { "vllm".to_owned() };
        Some(chat(seen, &text))
    };
    let scripts = Scripts { vllm: script, ..Scripts::default() };
    let test = routed_by(&policy(CHAIN, ""), scripts, |setup| setup.set("/limits/bufferedBytes", 2 << 20));
    let asked =
        |text: &str| request("claude-opus-4", json!({"messages": [{"role": "user", "content": text}]}));
    for _ in 0..4 {
        let refused = test.ask(&asked("much"));
        let rule = refused.header("x-postern-rule");
        assert_eq!((refused.status, rule), (503, Some("postern/builtin/bound")), "{:.300}", refused.text());
    }
    assert!(test.spare.requests().is_empty(), "another model would need as much");
    assert_eq!(test.vllm.requests().len(), 4, "it is not passed over");
    assert_eq!(text_of(&test.ask(&asked("little"))), "vllm");
}

#[test]
fn an_error_of_the_origin_as_the_last_of_a_chain_counts_as_a_failure() {
    let route = "- {name: all, match: {models: ['claude-*']}, to: [coder], fallback: [origin]}";
    let busy = r#"{"type":"error","error":{"type":"overloaded_error","message":"busy"},"request_id":"r"}"#;
    let scripts = Scripts {
        vllm: |_| Some(Reply::of(500, "{}").header("content-type", "application/json")),
        origin: |_| {
            let busy =
                r#"{"type":"error","error":{"type":"overloaded_error","message":"busy"},"request_id":"r"}"#;
            Some(Reply::of(529, busy).header("content-type", "application/json").header("request-id", "r"))
        },
        ..Scripts::default()
    };
    let test = routed(route, "", scripts);
    for _ in 0..3 {
        let answer = test.ask(&request("claude-opus-4", json!({})));
        assert_eq!((answer.status, answer.text().as_str()), (529, busy), "it passes as it came");
        assert_eq!(
            (answer.header("request-id"), answer.header("x-postern-route")),
            (Some("r"), Some("origin"))
        );
    }
    let ended = test.gateway.wait_for_event("the response", |event| event["kind"] == "Response");
    let last = &ended["provider"]["route"]["attempts"][1];
    assert_eq!(
        (&last["label"], &last["class"], &last["status"]),
        (&json!("origin"), &json!("Unavailable"), &json!(529)),
        "{ended}"
    );
    let labels = [("label", "origin"), ("class", "Unavailable")];
    assert_eq!(test.gateway.metric("postern_route_attempts_total", &labels), 3.0);
    let labels = [("rule", "agents/p/all"), ("label", "origin"), ("outcome", "Unavailable")];
    assert_eq!(test.gateway.metric("postern_routed_requests_total", &labels), 3.0);
    test.gateway.wait_for_event("that it is passed over", |event| {
        event["kind"] == "Lifecycle"
            && event["decision"]["reason"].as_str().unwrap().contains("origin has given no answer")
    });
}

#[test]
fn a_host_that_routes_alone_answer_is_not_tunnelled_where_nothing_is_intercepted() {
    let not_intercepting = |reach: &str| {
        routed_by(&policy(CHAIN, reach), Scripts::default(), |setup| {
            std::fs::write(setup.path().join("broken.pem"), "no certificate").unwrap();
            setup.set("/interception/caCertificate", "broken.pem").set("/interception/onError", "Passthrough")
        })
    };
    let test = not_intercepting("reach-routes");
    let tunnel = test.gateway.agent().connect(&format!("{ORIGIN}:443")).unwrap();
    let config = test.gateway.agent().dial(ORIGIN).config();
    assert!(tunnel.start_tls(ORIGIN, config).is_err(), "it is reset");
    let denied = test.gateway.wait_for("Connection", "Deny");
    assert_eq!(denied["decision"]["rule"], "postern/builtin/route", "{denied}");
    assert!(test.origin.links().is_empty(), "nothing is dialled");

    // The twin: a host that the agent may reach is tunnelled there, to its own certificate.
    let test = not_intercepting("");
    let tunnel = test.gateway.agent().connect(&format!("{ORIGIN}:443")).unwrap();
    let config = test.gateway.agent().dial(ORIGIN).config();
    // The agent of a test trusts Postern's CA alone.
    assert!(tunnel.start_tls(ORIGIN, config).is_err());
    let tunnelled = test.gateway.wait_for("Connection", "Allow");
    assert!(tunnelled["destination"]["reason"].as_str().unwrap().contains("not intercepted"), "{tunnelled}");
    assert_eq!(test.origin.links().len(), 1);
}
