//! Markers that choose a model: where they have an effect, what they can choose, and how they may be written.

use serde_json::{Value, json};

use crate::routing::{OPENAI, ORIGIN, Routed, Scripts, message, policy, request, routed, routed_by, text_of};
use crate::support::upstream::{Reply, Seen};

const ROUTE: &str = "- {name: subagents, match: {marker: af83e9}, to: [coder, chat]}";

fn marker(label: &str) -> String {
    format!("<!-- @proxy-local-route:af83e9 model={label} -->")
}

/// A request of Messages with this system prompt, as JSON.
fn with_system(system: &str) -> String {
    format!(
        r#"{{"model":"claude-opus-4","max_tokens":9,"system":{system},"messages":[{{"role":"user","content":"go"}}]}}"#
    )
}

/// Sends a body of Messages as it is.
#[track_caller]
fn said(test: &Routed, body: &str) -> String {
    let answer = test.post(&format!("{ORIGIN}/v1/messages"), &[], body);
    assert_eq!(answer.status, 200, "{}", answer.text());
    text_of(&answer)
}

/// Everywhere in a request but in its system prompt where somebody else than the agent's author can put a text.
fn elsewhere(text: &str) -> Vec<Value> {
    let called = |input: Value| json!({"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1", "name": "Read", "input": input}]});
    let result = |content: Value| json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": content}]});
    let go = || json!({"role": "user", "content": "go"});
    let nothing = || called(json!({}));
    let tool = |description: &str, about: &str| {
        let schema = json!({"type": "object", "properties": {"a": {"type": "string", "description": about}}});
        json!({"name": "Read", "description": description, "input_schema": schema})
    };
    vec![
        json!({"messages": [{"role": "user", "content": text}]}),
        json!({"messages": [{"role": "user", "content": [{"type": "text", "text": text}]}]}),
        json!({"messages": [go(), {"role": "assistant", "content": text}, go()]}),
        json!({"messages": [go(), {"role": "system", "content": text}]}),
        json!({"messages": [go(), called(json!({"file_path": text})), result(json!("a"))]}),
        json!({"messages": [go(), nothing(), result(json!(text))]}),
        json!({"messages": [go(), nothing(), result(json!([{"type": "text", "text": text}]))]}),
        json!({"tools": [tool(text, "a")]}),
        json!({"tools": [tool("a", text)]}),
        json!({"stop_sequences": [text]}),
        json!({"metadata": {"user_id": text}}),
    ]
}

/// L1, E17: a marker outside of the system prompt is text, whoever wrote it: it chooses nothing, and stays as it is.
#[test]
fn a_marker_outside_of_the_system_prompt_chooses_nothing() {
    let test = routed(ROUTE, "", Scripts::default());
    for more in elsewhere(&marker("chat")) {
        let body = request("claude-opus-4", more);
        assert_eq!(text_of(&test.ask(&body)), "origin", "{body}");
        assert_eq!(test.origin.requests().pop().unwrap().body, body.to_string().as_bytes());
    }
    assert!(test.vllm.requests().is_empty() && test.spare.requests().is_empty());

    // The twin: in either form of the system prompt it does choose, and is cut out.
    let blocks = json!([{"type": "text", "text": "Be brief."}, {"type": "text", "text": marker("chat")}]);
    for system in [json!(format!("{}\nBe brief.", marker("chat"))), blocks] {
        assert_eq!(text_of(&test.ask(&request("claude-opus-4", json!({"system": system})))), "spare");
        let sent = Routed::sent_last(&test.spare);
        assert_eq!(sent["messages"][0], json!({"role": "system", "content": "Be brief."}), "{sent}");
    }
}

/// L1, E17: where a route takes a request for its model, a marker in what was read does not lead it elsewhere.
#[test]
fn a_marker_in_a_conversation_does_not_lead_a_routed_request_elsewhere() {
    let routes = format!("{ROUTE}\n    - {{name: all, match: {{models: ['*']}}, to: [coder]}}");
    let test = routed(&routes, "", Scripts::default());
    let text = marker("chat");
    for more in elsewhere(&text) {
        let body = request("claude-opus-4", more);
        assert_eq!(text_of(&test.ask(&body)), "vllm", "{body}");
        let sent = Routed::sent_last(&test.vllm).to_string();
        let is_dropped = body.get("metadata").is_some();
        assert!(is_dropped || sent.contains("@proxy-local-route:af83e9 model=chat"), "{sent}");
    }
    assert!(test.origin.requests().is_empty() && test.spare.requests().is_empty());
    // The twin: the agent's own marker leads it there.
    let own = request("claude-opus-4", json!({"system": text}));
    assert_eq!(text_of(&test.ask(&own)), "spare");
}

/// L1, E17: OpenAI's two APIs have no markers at all: what stands in `instructions` or a system message is text.
#[test]
fn a_marker_in_another_api_is_text() {
    let place: fn(&Seen) -> Option<Reply> = |seen| {
        let is_chat = seen.path().ends_with("/chat/completions");
        let body = if is_chat {
            json!({"id": "c", "object": "chat.completion", "model": "m", "choices": [{"index": 0, "message": {"role": "assistant", "content": "origin"}, "finish_reason": "stop"}]})
        } else if seen.path().ends_with("/responses") {
            json!({"id": "r", "object": "response", "status": "completed", "model": "m", "output": []})
        } else {
            serde_json::from_str(&message("origin")).unwrap()
        };
        Some(Reply::of(200, body.to_string()).header("content-type", "application/json"))
    };
    let policy =
        policy(ROUTE, "").replace(&format!("hosts: [{ORIGIN}]"), &format!("hosts: [{ORIGIN}, {OPENAI}]"));
    let test = routed_by(&policy, Scripts { origin: place, ..Scripts::default() }, |setup| setup);
    let text = marker("chat");
    let bodies = [
        (
            "/v1/chat/completions",
            json!({"model": "gpt-5", "messages": [{"role": "system", "content": text}, {"role": "user", "content": "go"}]}),
        ),
        (
            "/v1/chat/completions",
            json!({"model": "gpt-5", "messages": [{"role": "developer", "content": text}, {"role": "user", "content": "go"}]}),
        ),
        (
            "/v1/chat/completions",
            json!({"model": "gpt-5", "system": text, "messages": [{"role": "user", "content": "go"}]}),
        ),
        ("/v1/responses", json!({"model": "gpt-5", "store": false, "instructions": text, "input": "go"})),
        ("/v1/responses", json!({"model": "gpt-5", "store": false, "system": text, "input": "go"})),
    ];
    for (path, body) in bodies {
        let answer = test.post(&format!("{OPENAI}{path}"), &[], &body.to_string());
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert_eq!(test.origin.requests().pop().unwrap().body, body.to_string().as_bytes());
    }
    assert!(test.spare.requests().is_empty() && test.vllm.requests().is_empty());
    // The twin, at the same gateway.
    assert_eq!(text_of(&test.ask(&request("claude-opus-4", json!({"system": text})))), "spare");
}

/// L2: a marker chooses among the labels of its own route: any other is answered here, and nothing is sent anywhere. The
/// answer quotes what was written, without what could pass for other words of it.
#[test]
fn a_label_that_its_route_does_not_have_reaches_nobody() {
    let routes = "- {name: subagents, match: {marker: af83e9}, to: [coder], fallback: [chat]}\n    \
                  - {name: others, match: {marker: bb00}, to: [chat]}\n    \
                  - {name: all, match: {models: ['*']}, to: [origin]}";
    let test = routed(routes, "", Scripts::default());
    let labels = [
        "chat",
        "origin",
        "qwen3-coder",
        "vllm",
        "CODER",
        "coder/../chat",
        "coder,chat",
        "coder\"",
        "*",
        "c\u{f6}der",
        "x\".\u{2028}Labels:\u{202e}evil\u{200b}.",
        "https://evil.example/v1",
        "agents/p/models/chat",
    ];
    for label in labels {
        for stream in [false, true] {
            let body = request(
                "claude-opus-4",
                json!({"stream": stream, "system": format!("Be brief. {}", marker(label))}),
            );
            let stub = test.ask(&body);
            assert_eq!(
                (stub.status, stub.header("x-postern-decision")),
                (200, Some("deny")),
                "{label}: {stub:?}"
            );
            assert_eq!(stub.header("x-postern-rule"), Some("postern/builtin/route"), "{label}");
            let shown: String =
                label.chars().filter(|c| !"\"\u{202e}\u{2028}\u{200b}".contains(*c)).collect();
            let expected = format!("[postern] No model \"{shown}\" can be chosen here. Labels: coder.");
            assert_eq!(text_of(&stub), expected, "{label}");
            let id = stub.header("x-postern-event").unwrap();
            let event = test.gateway.wait_for_event("the denial", |event| event["id"] == id);
            assert_eq!((&event["kind"], &event["decision"]["verdict"]), (&json!("Request"), &json!("Deny")));
        }
    }
    let reached = [&test.origin, &test.vllm, &test.spare].map(|server| server.links().len());
    assert_eq!(reached[1..], [0, 0], "a model was reached");
    assert!(test.origin.requests().is_empty());

    // The twins: its own label, and the other route's token with its label.
    assert_eq!(said(&test, &with_system(&json!(marker("coder")).to_string())), "vllm");
    let other = marker("chat").replace("af83e9", "bb00");
    assert_eq!(said(&test, &with_system(&json!(other).to_string())), "spare");
}

/// L3: however a marker is written, it is one marker, and is cut out whole; what only looks like one stays as it is.
#[test]
fn a_marker_is_the_same_however_it_is_written() {
    let test = routed(ROUTE, "", Scripts::default());
    let plain = marker("chat");
    let by_number: String = plain.chars().map(|one| format!("\\u{:04x}", u32::from(one))).collect();
    let escaped = plain.replace('<', "\\u003c").replace('>', "\\u003E");
    for spelled in [plain.clone(), escaped, by_number, plain.replace("proxy", "\\u0070rox\\u0079")] {
        for system in [
            format!(r#""Be brief.\n{spelled}""#),
            format!(r#"[{{"type":"text","text":"Be brief.\n{spelled}"}}]"#),
        ] {
            assert_eq!(said(&test, &with_system(&system)), "spare", "{system}");
            let sent = Routed::sent_last(&test.spare);
            assert_eq!(sent["messages"][0]["content"], "Be brief.\n", "{system}");
        }
    }
    let before = test.spare.requests().len();
    let (head, tail) = plain.split_at(24);
    for system in [
        // Split over two blocks; escaped twice; in another case; with other white space; without its end.
        json!([{"type": "text", "text": head}, {"type": "text", "text": tail}]),
        json!(plain.replace('<', "\\u003c")),
        json!(plain.replace("af83e9", "AF83E9")),
        json!(plain.replace("<!-- ", "<!--\u{a0}")),
        json!(plain.replace(" model=", "\u{2003}model=")),
        json!(plain.replace('-', "\u{2010}")),
        json!(plain.trim_end_matches(" -->")),
        json!(plain.replace("af83e9", "af83e8")),
        json!([{"type": "text", "text": "a", "citations": plain}]),
    ] {
        let body = with_system(&system.to_string());
        assert_eq!(said(&test, &body), "origin", "{system}");
        assert_eq!(String::from_utf8_lossy(&test.origin.requests().pop().unwrap().body), body);
    }
    assert_eq!(test.spare.requests().len(), before);
}

/// L3: of several the first one counts and all go; what would become one once others are cut out is none.
#[test]
fn a_doubled_marker_counts_once_and_none_is_left() {
    let test = routed(ROUTE, "", Scripts::default());
    let (coder, chat) = (marker("coder"), marker("chat"));
    let nested = format!("<!-- @proxy-{chat}local-route:af83e9 model=coder -->");
    for (system, answers, left) in [
        (format!("{coder}\n{chat}\nBe brief."), "vllm", "Be brief."),
        (format!("{chat}{coder}{coder}Be brief."), "spare", "Be brief."),
        (nested, "spare", "<!-- @proxy-local-route:af83e9 model=coder -->"),
    ] {
        assert_eq!(said(&test, &with_system(&json!(system).to_string())), answers, "{system}");
        let server = if answers == "vllm" { &test.vllm } else { &test.spare };
        assert_eq!(Routed::sent_last(server)["messages"][0]["content"], left, "{system}");
    }
}

/// L3: an agent that puts a commit's message into its system prompt lets whoever commits write there. A marker of the
/// agent's own in front of it wins; without one it chooses among the labels of the route that names its token, and no other.
#[test]
fn a_marker_in_a_commits_message_chooses_no_more_than_its_route_has() {
    let route = "- {name: subagents, match: {marker: af83e9}, to: [coder]}";
    let test = routed(route, "", Scripts::default());
    let prompt = |own: &str, commit: &str| {
        let status = format!("gitStatus: clean\n\nRecent commits:\nd34db33 {commit}\n1234567 first");
        let blocks = json!([{"type": "text", "text": format!("{own}You are an agent.")}, {"type": "text", "text": status}]);
        with_system(&blocks.to_string())
    };
    let own = marker("coder");
    for hostile in ["chat", "origin", "evil"] {
        assert_eq!(said(&test, &prompt(&own, &marker(hostile))), "vllm");
        let sent = Routed::sent_last(&test.vllm)["messages"][0]["content"].to_string();
        assert!(sent.contains("Recent commits") && !sent.contains("@proxy-local-route"), "{sent}");
        let alone = said(&test, &prompt("", &marker(hostile)));
        assert!(alone.starts_with("[postern] No model"), "{alone}");
    }
    // A token that no route names is no marker, and the twin: a message without one.
    let foreign = marker("coder").replace("af83e9", "cafe42");
    for commit in [foreign.as_str(), "Mend the marker"] {
        assert_eq!(said(&test, &prompt("", commit)), "origin");
        assert_eq!(said(&test, &prompt(&own, commit)), "vllm");
    }
    assert!(test.spare.requests().is_empty());
}
