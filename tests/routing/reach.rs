//! Hosts that routes alone answer: nothing is sent there, and what no route takes is said.

use serde_json::json;

use super::*;

const ALL: &str = "- {name: all, match: {models: ['claude-*', 'exact-name']}, to: [coder]}";

#[test]
fn a_host_that_routes_alone_answer_is_never_dialled() {
    let nowhere = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    nowhere.set_nonblocking(true).unwrap();
    let address = nowhere.local_addr().unwrap();
    let test =
        routed_by(&policy(ALL, "reach-routes"), Scripts::default(), |setup| setup.host(ORIGIN, address));
    assert_eq!(text_of(&test.ask(&request("claude-opus-4", json!({})))), "vllm");

    let unrouted = test.ask(&request("gpt-4", json!({})));
    unrouted.assert_refused_by_provider("postern/builtin/route");
    let get = |path: &str| test.gateway.agent().request("GET", &format!("https://{ORIGIN}{path}"), &[], b"");
    let models = get("/v1/models").json();
    let names: Vec<_> =
        models["data"].as_array().unwrap().iter().map(|model| model["id"].as_str().unwrap()).collect();
    assert_eq!(names, ["exact-name", "coder"]);
    assert_eq!(get("/v1/models/coder").json()["id"], "coder");
    assert_eq!(get("/v1/models/other").status, 404);
    assert_eq!(get("/v1/organizations").status, 403);
    // Without its 200 Claude Code in a terminal does not start.
    assert_eq!(get("/api/hello").json(), json!({"message": "hello"}));
    assert_eq!(get("/api/claude_code/settings").status, 404);

    let h2 = test.gateway.agent().h2(ORIGIN);
    let body = request("claude-opus-4", json!({})).to_string();
    let answered = h2.request("POST", &format!("https://{ORIGIN}/v1/messages"), &[], body.as_bytes());
    assert_eq!(text_of(&answered.unwrap()), "vllm");
    assert!(nowhere.accept().is_err(), "somebody dialled the origin");
}

#[test]
fn tokens_are_counted_here_and_the_count_follows_the_model() {
    let test = routed(ALL, "reach-routes", Scripts::default());
    let body =
        request("claude-opus-4", json!({"messages": [{"role": "user", "content": "word ".repeat(1_000)}]}));
    let count = || {
        let url = format!("https://{ORIGIN}/v1/messages/count_tokens");
        let answer = test.gateway.agent().request(
            "POST",
            &url,
            &[("content-type", "application/json")],
            body.to_string().as_bytes(),
        );
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.json()["input_tokens"].as_u64().unwrap()
    };
    // 5,000 bytes at 3.5 a token, and 4 for the message.
    assert_eq!(count(), 1_433);
    // The model says that it read 12 tokens: as few as are believed, 6 bytes a token.
    test.ask(&body);
    test.gateway.wait_for_event("the response", |event| event["kind"] == "Response");
    assert_eq!(count(), 838);
}

#[test]
fn codex_is_told_to_use_http_where_a_route_to_responses_could_apply() {
    let policy = policy(ALL, "")
        .replace("dialect: OpenAIChat, credential: vllm", "dialect: OpenAIResponses, credential: vllm")
        .replace(ORIGIN, "api.openai.com");
    let test = routed_by(&policy, Scripts::default(), |setup| setup);
    let headers = [
        ("connection", "Upgrade"),
        ("upgrade", "websocket"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ];
    let _ = &test.spare;
    let answer = test.gateway.agent().request("GET", "https://api.openai.com/v1/responses", &headers, b"");
    assert_eq!(answer.status, 426, "{}", answer.text());

    // A WebSocket to a host that is no model's is none of routes.
    let other =
        policy.replace("hosts: [api.openai.com]", "hosts: [api.openai.com, socket.example], upgrade: Allow");
    let upstreams = Pki::new("Upstream Test CA");
    let socket = Upstream::build().identity(upstreams.leaf(&["socket.example"])).start();
    let gateway = Setup::new(&upstreams)
        .policy(&other)
        .credential("vllm", KEY)
        .host("socket.example", socket.address())
        .start();
    let answer = gateway.agent().request("GET", "https://socket.example/ws", &headers, b"");
    assert_ne!(answer.status, 426, "{}", answer.text());
}
