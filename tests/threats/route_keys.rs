//! Keys beside routes: none of the agent's reaches the server that stands in, and none of that server's reaches the agent.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

use crate::routing::{KEY, ORIGIN, Scripts, message, policy, request, routed_by, stream, text_of};
use crate::support::upstream::{Reply, Seen, Step};

const SMALL: &str = "- {name: small, match: {models: ['claude-haiku-*']}, to: [coder]}";
/// The gateway's own key of the agent's provider, and the placeholder by which the agent has it.
const REAL: &str = "sk-ant-canary-real-0123456789";
const PLACEHOLDER: &str = "postern:claude";

/// The same policy with a key of the agent's provider.
fn keyed(policy: &str) -> String {
    let credential =
        format!("    - {{name: claude, hosts: [{ORIGIN}], secretKeyRef: {{name: keys, key: claude}}}}\n");
    policy.replacen("  credentials:\n", &format!("  credentials:\n{credential}"), 1)
}

/// The same policy whose first server speaks the agent's own API.
fn moving(policy: &str) -> String {
    policy.replace("dialect: OpenAIChat, credential: vllm", "dialect: Anthropic, credential: vllm")
}

/// Answers in the API that was asked.
fn either(seen: &Seen) -> Option<Reply> {
    if seen.path().ends_with("/messages") {
        return Some(Reply::of(200, message("vllm")).header("content-type", "application/json"));
    }
    Some(crate::routing::chat(seen, "vllm"))
}

/// L4: none of what an agent proves itself with reaches the server that stands in: keys, logins, cookies, placeholders,
/// wherever they stand in its head.
#[test]
fn no_key_or_login_of_an_agent_reaches_the_server_that_stands_in() {
    let logins: [(&str, &str); 12] = [
        ("x-api-key", "sk-ant-api03-canary"),
        ("authorization", "Bearer sk-ant-oat01-canary"),
        ("authorization", "Basic Y2FuYXJ5OmNhbmFyeQ=="),
        ("cookie", "sessionKey=sk-ant-sid01-canary"),
        ("api-key", "canary-azure"),
        ("x-goog-api-key", "AIzaCanary-canary"),
        ("proxy-authorization", "Basic canary"),
        ("openai-organization", "org-canary"),
        ("x-claude-code-session-id", "canary-session"),
        ("anthropic-beta", "oauth-2025-04-20,canary-beta"),
        ("user-agent", "claude-cli/canary"),
        ("x-forwarded-for", "canary"),
    ];
    for policy in [policy(SMALL, ""), moving(&policy(SMALL, ""))] {
        let scripts = Scripts { vllm: either, ..Scripts::default() };
        let test = routed_by(&policy, scripts, |setup| setup);
        let (place, body) = (
            format!("{ORIGIN}/v1/messages?beta=true&key=canary-query"),
            request("claude-haiku-4-5", json!({})),
        );
        for (name, value) in logins {
            let answer = test.post(&place, &[(name, value)], &body.to_string());
            assert_eq!(
                (answer.status, text_of(&answer).as_str()),
                (200, "vllm"),
                "{name}: {}",
                answer.text()
            );
            let seen = test.vllm.requests().pop().unwrap();
            let head = format!("{} {:?} {:?}", seen.target, seen.headers, seen.trailers);
            assert!(
                !head.to_ascii_lowercase().contains("canary") && !head.contains("Y2FuYXJ5"),
                "{name}: {head}"
            );
            // The twin: its own key is there.
            let own = [seen.header("authorization"), seen.header("x-api-key")];
            assert!(own.iter().flatten().any(|value| value.ends_with(KEY)), "{name}: {head}");
        }
        // The twin: where no route takes the request, the agent's key goes with it.
        let other = request("claude-opus-4", json!({}));
        test.post(&place, &[("x-api-key", "sk-ant-api03-canary")], &other.to_string());
        assert_eq!(test.origin.requests().pop().unwrap().header("x-api-key"), Some("sk-ant-api03-canary"));
    }
}

/// L4: the key that the gateway holds for the agent's provider goes there alone, and its placeholder nowhere.
#[test]
fn the_gateways_key_of_one_provider_does_not_go_to_another() {
    let routes = format!("{SMALL}\n    - {{name: spared, match: {{models: ['claude-opus-*']}}, to: [chat]}}");
    for policy in [keyed(&policy(&routes, "")), moving(&keyed(&policy(&routes, "")))] {
        let scripts = Scripts { vllm: either, ..Scripts::default() };
        let test = routed_by(&policy, scripts, |setup| setup.credential("claude", REAL));
        let place = format!("{ORIGIN}/v1/messages");
        for (name, value) in
            [("x-api-key", PLACEHOLDER.to_owned()), ("authorization", format!("Bearer {PLACEHOLDER}"))]
        {
            for (model, answers) in [("claude-haiku-4-5", "vllm"), ("claude-opus-4", "spare")] {
                let answer = test.post(&place, &[(name, &value)], &request(model, json!({})).to_string());
                assert_eq!((answer.status, text_of(&answer).as_str()), (200, answers), "{}", answer.text());
            }
        }
        for seen in test.vllm.requests().iter().chain(&test.spare.requests()) {
            let all = format!("{} {:?} {}", seen.target, seen.headers, String::from_utf8_lossy(&seen.body));
            assert!(!all.contains(REAL) && !all.contains(PLACEHOLDER), "{all}");
        }
        let keyless = test.spare.requests().pop().unwrap();
        assert_eq!((keyless.header("authorization"), keyless.header("x-api-key")), (None, None));
        // The twin: at its own provider it is attached, and the other one's is not.
        let own = test.post(
            &place,
            &[("x-api-key", PLACEHOLDER)],
            &request("claude-sonnet-5", json!({})).to_string(),
        );
        assert_eq!(text_of(&own), "origin", "{}", own.text());
        let seen = test.origin.requests().pop().unwrap();
        assert_eq!(seen.header("x-api-key"), Some(REAL));
        assert!(!format!("{:?}", seen.headers).contains(KEY));
    }
}

/// Says the key in every place of an answer or error that a client reads, and in some that nobody reads. What is asked
/// for is told by the last message.
fn telling(seen: &Seen) -> Option<Reply> {
    let asked: Value = serde_json::from_slice(&seen.body).unwrap();
    let key = seen.header("authorization").unwrap().trim_start_matches("Bearer ").to_owned();
    let (wanted, form) = asked["messages"][0]["content"].as_str().unwrap().split_once(' ').unwrap();
    let key = match form {
        "base64" => BASE64_STANDARD.encode(key),
        "escaped" => key.replace('-', "%2D"),
        _ => key,
    };
    let arguments = json!({"file_path": key}).to_string();
    let call = json!({"index": 0, "id": key, "type": "function", "function": {"name": "Read", "arguments": arguments}});
    let named =
        json!({"index": 0, "id": "c1", "type": "function", "function": {"name": key, "arguments": "{}"}});
    let said = match wanted {
        "text" => json!({"content": key}),
        "refusal" => json!({"refusal": key}),
        "reasoning" => json!({"reasoning_content": key, "content": "a"}),
        "call" => json!({"content": "", "tool_calls": [call]}),
        "name" => json!({"content": "", "tool_calls": [named]}),
        _ => json!({"content": "a"}),
    };
    let error = json!({"message": format!("wrong key {key}"), "type": key, "code": key, "param": key});
    let (id, model) =
        if wanted == "model" { (key.clone(), key.clone()) } else { ("c1".into(), "served".into()) };
    let reply = match (wanted, asked["stream"] == json!(true)) {
        ("error", _) | ("early", false) => Reply::of(500, json!({"error": error}).to_string()),
        ("quota", _) => {
            Reply::of(402, json!({"error": error, "detail": key}).to_string()).header("retry-after", "3")
        }
        ("page", _) => Reply::of(502, format!("<html>{key}</html>")),
        ("redirect", _) => Reply::of(307, "").header("location", format!("https://evil.example/{key}")),
        ("early", true) => return Some(stream(&[json!({"error": error})])),
        ("late", true) => {
            return Some(stream(&[
                json!({"id": id, "model": model, "choices": [{"index": 0, "delta": {"content": "a"}}]}),
                json!({"error": error}),
            ]));
        }
        (_, true) => {
            let events = [
                json!({"id": id, "model": model, "choices": [{"index": 0, "delta": said}]}),
                json!({"id": id, "model": model, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}),
            ];
            let mut reply = stream(&events);
            reply.steps.insert(0, Step::Data(format!(": {key}\n\n").into()));
            reply.headers.clear();
            return Some(reply.header("content-type", "text/event-stream").header("x-request-id", key));
        }
        (_, false) => {
            let choice = json!({"index": 0, "message": said, "finish_reason": "stop"});
            Reply::of(200, json!({"id": id, "model": model, "choices": [choice]}).to_string())
        }
    };
    let reply = reply.header("content-type", "application/json").header("x-request-id", key.clone());
    Some(reply.header("set-cookie", format!("a={key}")).header("www-authenticate", key))
}

/// L5: a server that says its own key, in an answer, a stream, an error or a head, and in whichever of the usual forms,
/// tells it nobody: neither the agent nor an event, the log, a metric or the status has it.
#[test]
fn the_key_of_a_server_that_says_it_reaches_nobody() {
    let policy = policy(SMALL, "").replace(
        "dialect: OpenAIChat, credential: vllm}",
        "dialect: OpenAIChat, credential: vllm, transforms: [reasoning]}",
    );
    let test = routed_by(&policy, Scripts { vllm: telling, ..Scripts::default() }, |setup| setup);
    let places = [
        "text",
        "refusal",
        "reasoning",
        "call",
        "name",
        "model",
        "early",
        "late",
        "error",
        "quota",
        "page",
        "redirect",
    ];
    let forms = ["plain", "base64", "escaped"];
    let secrets = [KEY.to_owned(), BASE64_STANDARD.encode(KEY), KEY.replace('-', "%2D")];
    let mut statuses = Vec::new();
    for (place, form) in places.iter().flat_map(|place| forms.map(|form| (*place, form))) {
        for streams in [false, true] {
            let said = json!({"stream": streams, "messages": [{"role": "user", "content": format!("{place} {form}")}],
                              "thinking": {"type": "enabled", "budget_tokens": 1024}});
            let answer = test.ask(&request("claude-haiku-4-5", said));
            let all = format!("{answer:?} {}", answer.text());
            for secret in &secrets {
                assert!(!all.contains(secret), "{place} {form} {streams}: {all}");
            }
            statuses.push((place, answer.status));
        }
    }
    // The twins: what is no failure is answered, and a failure still says what it is.
    let is_failure = |place: &str| ["early", "error", "quota", "page", "redirect"].contains(&place);
    let wrong: Vec<_> =
        statuses.iter().filter(|(place, status)| (*status == 200) == is_failure(place)).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
    let ended = |event: &Value| event["kind"] == "Response";
    test.gateway.wait_for_event("the first response", ended);
    crate::support::journal::poll("every response", || {
        (test.gateway.events().iter().filter(|event| ended(event)).count() == statuses.len()).then_some(())
    });
    let kept = [
        ("events", test.gateway.events().iter().map(Value::to_string).collect::<Vec<_>>().join("\n")),
        ("the log", test.gateway.log()),
        ("metrics", test.gateway.admin("/metrics").text()),
        ("the status", test.gateway.status().to_string()),
    ];
    for (place, text) in kept {
        for secret in &secrets {
            let at = text.find(secret.as_str());
            assert!(
                at.is_none(),
                "{place}: {}",
                &text[at.unwrap_or(0).saturating_sub(300)..at.unwrap_or(0) + 60]
            );
        }
    }
}

/// L5: the same of a server that speaks the agent's own API, whose errors pass on.
#[test]
fn the_key_of_a_server_of_the_agents_own_api_reaches_nobody() {
    let script: crate::routing::Script = |seen| {
        let asked: Value = serde_json::from_slice(&seen.body).unwrap();
        let key = seen.header("x-api-key").unwrap().to_owned();
        let wanted = asked["messages"][0]["content"].as_str().unwrap();
        let reply = match wanted {
            "text" => Reply::of(200, message(&key)),
            _ => {
                let error = json!({"type": "error", "error": {"type": "authentication_error", "message": format!("bad {key}")}, "request_id": key});
                Reply::of(wanted.parse().unwrap(), error.to_string())
            }
        };
        Some(
            reply
                .header("content-type", "application/json")
                .header("request-id", key.clone())
                .header("x-key", key),
        )
    };
    let test =
        routed_by(&moving(&policy(SMALL, "")), Scripts { vllm: script, ..Scripts::default() }, |setup| setup);
    for (wanted, status) in
        [("text", 200), ("401", 400), ("403", 400), ("429", 429), ("500", 500), ("529", 529)]
    {
        let answer = test
            .ask(&request("claude-haiku-4-5", json!({"messages": [{"role": "user", "content": wanted}]})));
        assert_eq!(answer.status, status, "{wanted}: {}", answer.text());
        assert!(!format!("{answer:?} {}", answer.text()).contains(KEY), "{wanted}: {answer:?}");
        assert!(status == 200 || answer.json()["error"]["message"].as_str().unwrap().starts_with("bad "));
    }
    test.gateway
        .wait_for_event("the last", |event| event["kind"] == "Response" && event["http"]["status"] == 529);
    assert!(!test.gateway.events().iter().any(|event| event.to_string().contains(KEY)));
    assert!(!test.gateway.log().contains(KEY));
}
