//! Messages answered by a server of Chat Completions: what leaves, what comes back, and that the guard is as strong as before.

use serde_json::json;

use super::*;
use crate::support::upstream::Reply;

const SMALL: &str = "- {name: small, match: {models: ['claude-haiku-*']}, to: [coder], fallback: [chat]}";

#[test]
fn another_model_answers_whole_and_streamed_and_its_provider_is_not_reached() {
    let test = routed(SMALL, "", Scripts::default());

    let whole = test.ask(&request("claude-haiku-4-5", json!({})));
    assert_eq!((whole.status, text_of(&whole).as_str()), (200, "vllm"), "{}", whole.text());
    assert_eq!(whole.header("x-postern-route"), Some("coder"));
    let body = whole.json();
    assert_eq!((&body["model"], &body["stop_reason"]), (&json!("coder"), &json!("end_turn")));
    assert_eq!(body["usage"]["input_tokens"], 12);

    let streamed = test.ask(&request("claude-haiku-4-5", json!({"stream": true})));
    assert_eq!(text_of(&streamed), "vllm", "{}", streamed.text());
    let names: Vec<_> =
        events(&streamed).iter().map(|event| event["type"].as_str().unwrap().to_owned()).collect();
    assert_eq!(
        names,
        [
            "message_start",
            "content_block_start",
            "content_block_delta",
            "content_block_stop",
            "message_delta",
            "message_stop"
        ]
    );
    assert!(test.origin.requests().is_empty());

    // Another model is answered where the agent sent it, as if there were no route.
    let other = test.ask(&request("claude-opus-4", json!({})));
    assert_eq!(text_of(&other), "origin");
    assert_eq!(other.header("x-postern-route"), None);
}

/// L4: the head that leaves is made anew.
#[test]
fn nothing_of_the_agent_but_what_it_says_reaches_the_stand_in() {
    let test = routed(SMALL, "", Scripts::default());
    let canaries = [
        ("cookie", "session=canary-cookie"),
        ("x-custom", "canary-custom"),
        ("anthropic-beta", "canary-beta"),
        ("x-claude-code-session-id", "canary-session"),
        ("user-agent", "canary-agent"),
    ];
    let body = request("claude-haiku-4-5", json!({"metadata": {"user_id": "canary-user"}, "top_k": 5}));
    let answer = test.ask_with(&body, &canaries);
    assert_eq!(answer.status, 200, "{}", answer.text());

    let seen = test.vllm.requests().pop().unwrap();
    assert_eq!((seen.method.as_str(), seen.target.as_str()), ("POST", "/v1/chat/completions"));
    let mut names: Vec<_> = seen.headers.iter().map(|(name, _)| name.as_str()).collect();
    names.sort_unstable();
    let mut made = vec![
        "accept",
        "accept-encoding",
        "authorization",
        "content-length",
        "content-type",
        "host",
        "user-agent",
    ];
    made.retain(|name| *name != "host" || names.contains(&"host"));
    assert_eq!(names, made);
    assert_eq!(seen.header("authorization"), Some(format!("Bearer {KEY}").as_str()));
    assert!(seen.header("user-agent").unwrap().starts_with("postern/"));
    let sent = format!("{:?} {}", seen.headers, String::from_utf8_lossy(&seen.body));
    assert!(!sent.contains("canary") && !sent.contains("sk-agent-key"), "{sent}");
    let asked: Value = serde_json::from_slice(&seen.body).unwrap();
    assert_eq!(asked["model"], "qwen3-coder");
    assert_eq!(asked["messages"], json!([{"role": "user", "content": "go"}]));
}

/// L2: a label that the route does not have is answered here.
#[test]
fn a_marker_chooses_a_model_and_is_cut_out_and_a_wrong_one_is_told() {
    let marked = |label: &str| {
        let system = format!("Be brief.\n<!-- @proxy-local-route:af83e9 model={label} -->\nBe kind.");
        request("claude-opus-4", json!({"system": system}))
    };
    let route = "- {name: subagents, match: {marker: af83e9}, to: [coder, chat]}";
    let test = routed(route, "", Scripts::default());

    assert_eq!(text_of(&test.ask(&marked("chat"))), "spare");
    let sent: Value = serde_json::from_slice(&test.spare.requests().pop().unwrap().body).unwrap();
    assert_eq!(sent["messages"][0], json!({"role": "system", "content": "Be brief.\nBe kind."}));

    let before = test.vllm.requests().len() + test.spare.requests().len();
    for stream in [false, true] {
        let mut body = marked("gpt-9");
        body["stream"] = json!(stream);
        let stub = test.ask(&body);
        assert_eq!(stub.status, 200);
        assert_eq!(text_of(&stub), "[postern] No model \"gpt-9\" can be chosen here. Labels: coder, chat.");
        assert_eq!(stub.header("x-postern-rule"), Some("postern/builtin/route"));
        assert_eq!(stub.header("x-postern-decision"), Some("deny"));
    }
    assert_eq!(test.vllm.requests().len() + test.spare.requests().len(), before);
    // Elsewhere it has no effect, and stays.
    let said = "<!-- @proxy-local-route:af83e9 model=coder -->";
    let elsewhere = request("claude-opus-4", json!({"messages": [{"role": "user", "content": said}]}));
    assert_eq!(text_of(&test.ask(&elsewhere)), "origin");
    assert_eq!(test.origin.requests().pop().unwrap().body, elsewhere.to_string().as_bytes());
}

#[test]
fn a_forbidden_call_of_a_stand_in_is_stopped_whole_and_streamed() {
    let tools = "  tools: [{name: no-bash, tools: [Bash], action: Deny}]\n";
    let scripts = Scripts {
        vllm: |seen| {
            let asked: Value = serde_json::from_slice(&seen.body).unwrap();
            let call = json!({"index": 0, "id": "call_1", "type": "function", "function": {"name": "Bash", "arguments": "{\"command\":\"ls\"}"}});
            if asked["stream"] == json!(true) {
                return Some(stream(&[
                    json!({"choices": [{"index": 0, "delta": {"role": "assistant", "tool_calls": [call]}}]}),
                    json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}),
                ]));
            }
            let message = json!({"role": "assistant", "content": null, "tool_calls": [call]});
            let body = json!({"choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]});
            Some(Reply::of(200, body.to_string()).header("content-type", "application/json"))
        },
        ..Scripts::default()
    };
    let offered = json!([{"name": "Bash", "description": "runs", "input_schema": {"type": "object"}}]);
    let denying = routed(SMALL, tools, scripts);
    for stream in [false, true] {
        let body = request("claude-haiku-4-5", json!({"stream": stream, "tools": offered}));
        let answer = denying.ask(&body);
        let text = answer.text();
        assert!(text.contains("agents/p/no-bash") && !text.contains("tool_use\",\"id"), "{text}");
        assert!(!text.contains("\"command\""), "{text}");
    }
    // Without the rule the same call goes through, under the name that the agent knows.
    let scripts = Scripts { vllm: scripts_with_call, ..Scripts::default() };
    let allowing = routed(SMALL, "", scripts);
    let answer = allowing.ask(&request("claude-haiku-4-5", json!({"tools": offered})));
    let body = answer.json();
    assert_eq!(
        (&body["content"][0]["name"], &body["stop_reason"]),
        (&json!("Bash"), &json!("tool_use")),
        "{body}"
    );
}

fn scripts_with_call(_: &Seen) -> Option<Reply> {
    let call = json!({"id": "call_1", "type": "function", "function": {"name": "Bash", "arguments": "{\"command\":\"ls\"}"}});
    let message = json!({"role": "assistant", "content": null, "tool_calls": [call]});
    let body = json!({"choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]});
    Some(Reply::of(200, body.to_string()).header("content-type", "application/json"))
}

/// L8: what leaves is judged as its own vendor reads it.
#[test]
fn what_is_harmless_in_one_api_and_a_door_in_the_other_is_taken_out_or_refused() {
    let door = |more: &str| {
        policy(SMALL, more).replace(
            "{name: coder, provider: vllm, model: qwen3-coder}",
            "{name: coder, provider: vllm, model: qwen3-coder, params: {web_search_options: {}}}",
        )
    };
    let test = routed_by(&door(""), Scripts::default(), |setup| setup);
    assert_eq!(text_of(&test.ask(&request("claude-haiku-4-5", json!({})))), "vllm");
    let sent: Value = serde_json::from_slice(&test.vllm.requests().pop().unwrap().body).unwrap();
    assert!(sent.get("web_search_options").is_none(), "{sent}");

    let refusing = routed_by(&door("  hostedTools: {action: Deny}\n"), Scripts::default(), |setup| setup);
    refusing.ask(&request("claude-haiku-4-5", json!({}))).assert_refused_by_provider("agents/p/hostedTools");
    assert!(refusing.vllm.requests().is_empty() && refusing.spare.requests().is_empty());
}

/// L14: thinking of a stand-in does not go to Anthropic.
#[test]
fn a_session_that_changes_its_model_goes_on_without_the_thinking_of_the_other() {
    let route = "- {name: small, match: {models: ['claude-haiku-*']}, to: [coder]}";
    let thinks: Script = |_| {
        let message = json!({"role": "assistant", "content": "done", "reasoning_content": "let me see"});
        let choice = json!({"index": 0, "message": message, "finish_reason": "stop"});
        Some(
            Reply::of(200, json!({"choices": [choice]}).to_string())
                .header("content-type", "application/json"),
        )
    };
    let test = routed(route, "", Scripts { vllm: thinks, ..Scripts::default() });
    let thinking = json!({"thinking": {"type": "enabled", "budget_tokens": 1024}});
    let first = test.ask(&request("claude-haiku-4-5", thinking.clone())).json();
    let signature = first["content"][0]["signature"].as_str().unwrap();
    assert!(signature.starts_with("postern.1.coder."), "{first}");

    let mut next = request("claude-opus-4", thinking);
    next["messages"] = json!([
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": first["content"]},
        {"role": "user", "content": "on"},
    ]);
    assert_eq!(text_of(&test.ask(&next)), "origin");
    let sent: Value = serde_json::from_slice(&test.origin.requests().pop().unwrap().body).unwrap();
    assert_eq!(sent["messages"][1]["content"], json!([{"type": "text", "text": "done"}]));

    // The body of a subscription must stay as it is.
    next["system"] =
        json!([{"type": "text", "text": "x-anthropic-billing-header: cc_version=1; cch=00000;"}]);
    let url = format!("https://{ORIGIN}/v1/messages");
    let login = [("authorization", "Bearer sk-ant-oat01-aaaa"), ("content-type", "application/json")];
    let answer = test.gateway.agent().request("POST", &url, &login, next.to_string().as_bytes());
    answer.assert_refused_by_provider("postern/builtin/subscription-edit");
    // At a model of a route it may be another one.
    next["model"] = json!("claude-haiku-4-5");
    let answer = test.gateway.agent().request("POST", &url, &login, next.to_string().as_bytes());
    assert_eq!(answer.status, 200, "{}", answer.text());
}

#[test]
fn a_request_is_moved_to_a_server_that_speaks_the_agents_own_api() {
    let policy = policy(SMALL, "")
        .replace("dialect: OpenAIChat, credential: vllm", "dialect: Anthropic, credential: vllm");
    let scripts = Scripts {
        vllm: |_| {
            Some(
                Reply::of(200, message("moved"))
                    .header("content-type", "application/json")
                    .header("x-leak", "canary"),
            )
        },
        ..Scripts::default()
    };
    let test = routed_by(&policy, scripts, |setup| setup);
    let body = r#"{ "model" : "claude-haiku-4-5","max_tokens":1e2, "messages":[{"role":"user","content":"g\u006f"}], "x":1 }"#;
    let headers = [("x-api-key", "sk-agent-key"), ("content-type", "application/json"), ("cookie", "canary")];
    let url = format!("https://{ORIGIN}/v1/messages");
    let answer = test.gateway.agent().request("POST", &url, &headers, body.as_bytes());
    assert_eq!((answer.status, text_of(&answer).as_str()), (200, "moved"), "{}", answer.text());
    assert_eq!(answer.header("x-leak"), None);
    let seen = test.vllm.requests().pop().unwrap();
    assert_eq!(seen.target, "/v1/messages");
    assert_eq!(seen.header("x-api-key"), Some(KEY));
    assert_eq!(seen.header("anthropic-version"), Some("2023-06-01"));
    assert_eq!(String::from_utf8_lossy(&seen.body), body.replace("claude-haiku-4-5", "qwen3-coder"));
    assert!(!format!("{:?}", seen.headers).contains("canary"));
}

#[test]
fn a_compressed_request_is_routed_by_its_marker_and_translated() {
    let route = "- {name: subagents, match: {marker: af83e9}, to: [coder, chat]}";
    let test = routed(route, "", Scripts::default());
    let system = "<!-- @proxy-local-route:af83e9 model=chat -->";
    let body = request("claude-opus-4", json!({"system": system})).to_string();
    for coding in ["gzip", "zstd"] {
        let coded = crate::support::coding::encode(coding, body.as_bytes());
        let headers = [("content-type", "application/json"), ("content-encoding", coding)];
        let url = format!("https://{ORIGIN}/v1/messages");
        let answer = test.gateway.agent().request("POST", &url, &headers, &coded);
        assert_eq!(text_of(&answer), "spare", "{}", answer.text());
    }
}

#[test]
fn a_secret_that_the_gateways_key_vouches_for_at_the_origin_does_not_go_to_a_model_without_one() {
    let token = "glpat-Zx3kQ9vB7mW2tR5yU8pL";
    let route = "- {name: small, match: {models: ['claude-*']}, to: [chat]}";
    let keyed = policy(route, "").replace(
        "  credentials:\n",
        &format!("  credentials:\n    - {{name: claude, hosts: [{ORIGIN}], secretKeyRef: {{name: keys, key: claude}}}}\n"),
    );
    let test =
        routed_by(&keyed, Scripts::default(), |setup| setup.credential("claude", "sk-ant-real-0123456789"));
    let body = request(
        "claude-opus-4",
        json!({"messages": [
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": format!("it is {token}")},
            {"role": "user", "content": "on"},
        ]}),
    );
    let url = format!("https://{ORIGIN}/v1/messages");
    let headers = [("x-api-key", "postern:claude"), ("content-type", "application/json")];
    let answer = test.gateway.agent().request("POST", &url, &headers, body.to_string().as_bytes());
    answer.assert_refused_by_provider("postern/builtin/outbound-exfiltration");
    assert!(test.spare.requests().is_empty());
}
