//! Requests that are moved to another server of the agent's own API: the named edits are made, and every other byte stays, in
//! both directions.

use serde_json::json;

use super::*;

const ALL: &str = "- {name: all, match: {models: ['*']}, to: [coder]}";

/// The policy for agents of OpenAI's APIs, whose first server speaks this one.
fn moving(dialect: &str, model: &str) -> String {
    policy(ALL, "")
        .replace(ORIGIN, OPENAI)
        .replace("dialect: OpenAIChat, credential: vllm", &format!("dialect: {dialect}, credential: vllm"))
        .replace(
            "{name: coder, provider: vllm, model: qwen3-coder}",
            &format!("{{name: coder, provider: vllm{model}}}"),
        )
}

/// A stream as odd as it may be and still be read: comments, fields in any order, escapes, numbers as they came.
const CHAT_STREAM: &str = ": hello\n\n\
    data: {\"id\":\"c1\",\"object\":\"chat.completion.chunk\",\"created\":1e0,\"model\":\"served\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}],\"x\":{}}\n\n\
    data: {\"choices\":[{\"delta\":{\"content\":\"v\\u006clm\"},\"index\":0,\"logprobs\":null}],\"id\":\"c1\"}\n\n\
    data: {\"id\":\"c1\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n\
    data: {\"id\":\"c1\",\"choices\":[],\"usage\":{\"prompt_tokens\":12,\"completion_tokens\":5,\"total_tokens\":17}}\n\n\
    data: [DONE]\n\n";
const CHAT_WHOLE: &str = "{ \"id\":\"c1\", \"object\":\"chat.completion\",\"created\":1e0,\"model\":\"served\",\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":\"v\\u006clm\"},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":12,\"completion_tokens\":5,\"total_tokens\":17} }";

fn chat_server(seen: &Seen) -> Option<Reply> {
    let asked: Value = serde_json::from_slice(&seen.body).unwrap();
    let (kind, body) = if asked["stream"] == json!(true) {
        ("text/event-stream; charset=utf-8", CHAT_STREAM)
    } else {
        ("application/json", CHAT_WHOLE)
    };
    Some(
        Reply::of(200, body)
            .header("content-type", kind)
            .header("x-leak", "canary")
            .header("set-cookie", "a=canary"),
    )
}

/// Asserts what the agent has of a moved answer: the body as it came, and of the head nothing of the server.
#[track_caller]
fn assert_moved(answer: &Answer, body: &str, kind: &str) {
    assert_eq!((answer.status, answer.text().as_str()), (200, body));
    assert_eq!(answer.header("content-type"), Some(kind));
    assert_eq!(answer.header("cache-control"), Some("no-cache"));
    assert_eq!(answer.header("x-postern-route"), Some("coder"));
    assert!(!format!("{:?}", answer.headers).contains("canary"), "{answer:?}");
}

#[test]
fn chat_is_moved_byte_for_byte_but_for_what_policy_names() {
    let scripts = Scripts { vllm: chat_server, ..Scripts::default() };
    let rows = [
        // As asked.
        (
            "",
            r#"{ "model":"gpt-5", "messages":[{"role":"user","content":"g\u006f"}],"max_tokens":1e2 ,"y":[1.0]}"#,
            None,
        ),
        // The model alone.
        (
            ", model: qwen3-coder",
            r#"{"messages":[{"role":"user","content":"go"}],"model" : "gpt-5","z":{"model":"gpt-5"}}"#,
            Some(
                r#"{"messages":[{"role":"user","content":"go"}],"model" : "qwen3-coder","z":{"model":"gpt-5"}}"#,
            ),
        ),
        // A cap lowers, and raises nothing.
        (
            ", maxTokens: 50",
            r#"{"model":"gpt-5","max_tokens":1e2,"max_completion_tokens":20,"messages":[]}"#,
            Some(r#"{"model":"gpt-5","max_tokens":50,"max_completion_tokens":20,"messages":[]}"#),
        ),
        // Parameters where there are none.
        (
            ", params: {temperature: 0.3, top_k: 7}",
            r#"{"model":"gpt-5","temperature":1.0,"messages":[]}"#,
            Some(r#"{"model":"gpt-5","temperature":1.0,"messages":[],"top_k":7}"#),
        ),
    ];
    for (model, sent, expected) in rows {
        let test = routed_by(&moving("OpenAIChat", model), scripts, |setup| setup);
        let place = format!("{OPENAI}/v1/chat/completions");
        let headers =
            [("authorization", "Bearer sk-agent"), ("cookie", "canary"), ("openai-organization", "canary")];
        let answer = test.post(&place, &headers, sent);
        assert_moved(&answer, CHAT_WHOLE, "application/json");
        let seen = test.vllm.requests().pop().unwrap();
        assert_eq!(
            (seen.target.as_str(), String::from_utf8_lossy(&seen.body).as_ref()),
            ("/v1/chat/completions", expected.unwrap_or(sent))
        );
        assert_eq!(seen.header("authorization"), Some(format!("Bearer {KEY}").as_str()));
        assert!(!format!("{:?}", seen.headers).contains("canary"), "{:?}", seen.headers);

        let streamed = sent.replacen('{', r#"{"stream":true,"#, 1);
        assert_moved(&test.post(&place, &headers, &streamed), CHAT_STREAM, "text/event-stream");
        assert_eq!(test.vllm.requests().pop().unwrap().header("accept"), Some("text/event-stream"));
        assert!(test.origin.requests().is_empty());
    }
}

/// A response with one text, whole.
fn response() -> String {
    let output = r#"[{"id":"msg_1","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":"v\u006clm","annotations":[]}]}]"#;
    format!(
        r#"{{ "id":"resp_1","object":"response","created_at":1e0,"status":"completed","model":"served","output":{output},"usage":{{"input_tokens":12,"output_tokens":5,"total_tokens":17}} }}"#
    )
}

fn response_stream() -> String {
    let begun = response().replace("completed", "in_progress");
    let events = [
        ("response.created", format!(r#""response":{}"#, begun.replace(r#""usage""#, r#""u""#))),
        (
            "response.output_text.delta",
            r#""item_id":"msg_1","output_index":0,"content_index":0,"delta":"v\u006clm""#.to_owned(),
        ),
        ("response.completed", format!(r#""response":{}"#, response())),
    ];
    let event = |(number, (name, rest)): (usize, &(&str, String))| {
        format!("event: {name}\ndata: {{\"type\":\"{name}\",\"sequence_number\":{number},{rest}}}\n\n")
    };
    events.iter().enumerate().map(event).collect()
}

#[test]
fn responses_are_moved_byte_for_byte_but_for_what_policy_names() {
    let script: Script = |seen| {
        let asked: Value = serde_json::from_slice(&seen.body).unwrap();
        let (kind, body) = if asked["stream"] == json!(true) {
            ("text/event-stream", response_stream())
        } else {
            ("application/json", response())
        };
        Some(Reply::of(200, body).header("content-type", kind).header("x-leak", "canary"))
    };
    let rows = [
        ("", r#"{ "model":"gpt-5","store":false, "input":"g\u006f","max_output_tokens":1e2 }"#, None),
        (
            ", model: qwen3-coder",
            r#"{"input":[{"role":"user","content":"go"}],"store":false,"model" : "gpt-5"}"#,
            Some(r#"{"input":[{"role":"user","content":"go"}],"store":false,"model" : "qwen3-coder"}"#),
        ),
        (
            ", maxTokens: 50, params: {temperature: 0.3}",
            r#"{"model":"gpt-5","store":false,"max_output_tokens":1e2,"input":"go"}"#,
            Some(r#"{"model":"gpt-5","store":false,"max_output_tokens":50,"input":"go","temperature":0.3}"#),
        ),
    ];
    for (model, sent, expected) in rows {
        let test = routed_by(
            &moving("OpenAIResponses", model),
            Scripts { vllm: script, ..Scripts::default() },
            |setup| setup,
        );
        let place = format!("{OPENAI}/v1/responses");
        let headers = [("authorization", "Bearer sk-agent"), ("session-id", "canary")];
        assert_moved(&test.post(&place, &headers, sent), &response(), "application/json");
        let seen = test.vllm.requests().pop().unwrap();
        assert_eq!(
            (seen.target.as_str(), String::from_utf8_lossy(&seen.body).as_ref()),
            ("/v1/responses", expected.unwrap_or(sent))
        );
        assert_eq!(seen.header("authorization"), Some(format!("Bearer {KEY}").as_str()));
        assert!(!format!("{:?}", seen.headers).contains("canary"), "{:?}", seen.headers);

        let streamed = sent.replacen('{', r#"{"stream":true,"#, 1);
        assert_moved(&test.post(&place, &headers, &streamed), &response_stream(), "text/event-stream");
    }
}

#[test]
fn a_denied_call_of_a_moved_answer_is_stopped_and_an_allowed_one_passes_byte_for_byte() {
    let tools = "  tools: [{name: no-bash, tools: [Bash], action: Deny}]\n";
    let script: Script = |seen| {
        let asked: Value = serde_json::from_slice(&seen.body).unwrap();
        let call = json!({"id": "call_1", "type": "function", "function": {"name": asked["messages"][0]["content"], "arguments": "{\"command\":\"ls\"}"}});
        let message = json!({"role": "assistant", "content": null, "tool_calls": [call]});
        let body = json!({"id": "c", "object": "chat.completion", "model": "m", "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]});
        Some(Reply::of(200, body.to_string()).header("content-type", "application/json"))
    };
    let policy = moving("OpenAIChat", "") + tools;
    let test = routed_by(&policy, Scripts { vllm: script, ..Scripts::default() }, |setup| setup);
    for (name, passes) in [("Bash", false), ("Look", true)] {
        let body = json!({"model": "gpt-5", "messages": [{"role": "user", "content": name}]});
        let answer = test.post(&format!("{OPENAI}/v1/chat/completions"), &[], &body.to_string());
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert_eq!(answer.text().contains("call_1"), passes, "{}", answer.text());
        assert_eq!(answer.text().contains("agents/p/no-bash"), !passes, "{}", answer.text());
    }
}

#[test]
fn vertex_is_not_routed() {
    let host = "us-east5-aiplatform.googleapis.com";
    let policy =
        policy(ALL, "").replace(&format!("hosts: [{ORIGIN}]"), &format!("hosts: [{ORIGIN}, {host}]"));
    let upstreams = Pki::new("Vertex Test CA");
    let vertex = Upstream::build()
        .identity(upstreams.leaf(&[host]))
        .script(|_| Some(Reply::of(200, message("vertex")).header("content-type", "application/json")))
        .start();
    let vllm =
        Upstream::build().identity(upstreams.leaf(&[VLLM])).script(|seen| Some(chat(seen, "vllm"))).start();
    let setup = Setup::new(&upstreams).policy(&policy).credential("vllm", KEY);
    let gateway =
        setup.host(host, vertex.address()).host(VLLM, vllm.address()).host(ORIGIN, vertex.address()).start();
    for model in ["claude-sonnet-5:rawPredict", "claude-sonnet-5:streamRawPredict"] {
        let url =
            format!("https://{host}/v1/projects/p/locations/us-east5/publishers/anthropic/models/{model}");
        let body = r#"{ "anthropic_version":"vertex-2023-10-16","max_tokens":9,"messages":[{"role":"user","content":"go"}]}"#;
        let answer =
            gateway.agent().request("POST", &url, &[("content-type", "application/json")], body.as_bytes());
        assert_eq!((answer.status, answer.header("x-postern-route")), (200, None), "{}", answer.text());
        assert_eq!(vertex.requests().pop().unwrap().body, body.as_bytes());
    }
    assert!(vllm.links().is_empty());
}
