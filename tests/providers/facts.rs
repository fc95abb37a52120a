//! Rules in CEL decide about requests to models, their answers and the calls in them.

use serde_json::{Value, json};

use crate::support::setup::policy;
use crate::support::upstream::{Reply, Seen};
use crate::support::{Answer, Gateway, Pki, Setup, Upstream};

const HOST: &str = "api.anthropic.com";

fn model(rules: &str) -> (Gateway, Upstream) {
    let upstreams = Pki::new("Upstream Test CA");
    let message = json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "stop_sequence": null,
        "content": [{"type": "text", "text": "so"}], "stop_reason": "end_turn",
        "usage": {"input_tokens": 900, "output_tokens": 100},
    });
    let answer =
        move |_: &_| Some(Reply::of(200, message.to_string()).header("content-type", "application/json"));
    let upstream = Upstream::build().identity(upstreams.leaf(&[HOST])).script(answer).start();
    let text = policy(&[&format!("{{name: llm, hosts: [{HOST}], action: Inspect}}")])
        .replace("podSelector", &format!("rules:\n{rules}  podSelector"));
    let gateway = Setup::new(&upstreams).policy(&text).host(HOST, upstream.address()).start();
    (gateway, upstream)
}

fn ask(gateway: &Gateway, model: &str, tools: &[&str]) -> Answer {
    let tools: Vec<_> =
        tools.iter().map(|name| json!({"name": name, "input_schema": {"type": "object"}})).collect();
    let body = json!({
        "model": model, "max_tokens": 9, "tools": tools, "messages": [{"role": "user", "content": "go"}]
    });
    gateway.agent().request("POST", &format!("https://{HOST}/v1/messages"), &[], body.to_string().as_bytes())
}

/// E16: a model is what a policy approves.
#[test]
fn models_and_tools_that_a_rule_does_not_name_are_refused() {
    let (gateway, upstream) = model(
        "    - {name: models, when: '!event.provider.models.all(m, m in [\"claude-sonnet-5-5\"])', action: Deny, \
         reason: Not approved}\n    \
         - {name: new-mcp, when: 'event.provider.tools.exists(t, t.name.startsWith(\"mcp__\"))', action: Deny}\n",
    );

    let denied = ask(&gateway, "claude-opus-5", &[]);
    denied.assert_refused_by_provider("agents/test/models");
    assert!(denied.text().contains("Not approved"), "{}", denied.text());
    ask(&gateway, "claude-sonnet-5-5", &["Bash", "mcp__jira__search"])
        .assert_refused_by_provider("agents/test/new-mcp");
    assert!(upstream.requests().is_empty());

    assert_eq!(ask(&gateway, "claude-sonnet-5-5", &["Bash"]).status, 200);
}

#[test]
fn what_was_spent_is_known_to_rules() {
    let (gateway, upstream) = model(
        "    - {name: save, when: 'event.spent.tokensToday >= 1000 && event.provider.model.contains(\"opus\")', \
         action: Deny, reason: Use a smaller model}\n",
    );

    assert_eq!(ask(&gateway, "claude-opus-5", &[]).status, 200);
    gateway.wait_for("Response", "Allow");
    ask(&gateway, "claude-opus-5", &[]).assert_refused_by_provider("agents/test/save");
    assert_eq!(ask(&gateway, "claude-sonnet-5-5", &[]).status, 200);
    assert_eq!(upstream.requests().len(), 2);
}

/// J5: no pattern and no expression costs more than its bound.
#[test]
fn more_tools_than_a_rule_may_read_are_refused() {
    let (gateway, upstream) =
        model("    - {name: tools, when: 'event.provider.tools.exists(t, t.name == \"x\")', action: Deny}\n");
    let names: Vec<String> = (0..129).map(|number| format!("tool{number}")).collect();
    let tools: Vec<&str> = names.iter().map(String::as_str).collect();

    ask(&gateway, "m", &tools).assert_refused_by_provider("postern/builtin/evaluation-error");
    assert!(upstream.requests().is_empty());
    assert_eq!(ask(&gateway, "m", &tools[..128]).status, 200);
}

#[test]
fn how_much_a_conversation_holds_is_known_to_rules_and_events() {
    let (gateway, upstream) = model(
        "    - {name: long, when: 'event.conversation.messages > 1 || event.conversation.toolResults > 0', action: Deny}\n    \
         - {name: much, when: 'event.provider.maxTokens > 8 && event.provider.organization == \"org-1\"', action: Audit}\n    \
         - {name: where, when: 'event.conversation.images == 0 && event.workload.pod != \"\"', action: Deny}\n",
    );

    assert_eq!(ask(&gateway, "m", &[]).status, 200);
    let event = gateway.wait_for("Request", "Allow");
    assert_eq!(event["conversation"], json!({"messages": 1, "images": 0, "toolResults": 0}));
    assert_eq!(event["provider"]["maxTokens"], 9);
    let message = json!({"role": "user", "content": "go"});
    let body = json!({"model": "m", "max_tokens": 9, "messages": [message, message]}).to_string();
    let headers = [("openai-organization", "org-1")];
    let url = format!("https://{HOST}/v1/messages");
    let denied = gateway.agent().request("POST", &url, &headers, body.as_bytes());
    denied.assert_refused_by_provider("agents/test/long");
    let one = json!({"model": "m", "max_tokens": 9, "messages": [message]}).to_string();
    assert_eq!(gateway.agent().request("POST", &url, &headers, one.as_bytes()).status, 200);
    let recorded =
        gateway.wait_for_event("the record", |event| event["decision"]["rule"] == "agents/test/much");
    assert_eq!(recorded["provider"]["organization"], "org-1");
    assert_eq!(upstream.requests().len(), 2);
}

/// A gateway under rules, before a provider that answers so, in pieces where the request asks for a stream.
fn answering(rules: &str, reply: impl Fn(bool) -> Reply + Send + Sync + 'static) -> (Gateway, Upstream) {
    let upstreams = Pki::new("Upstream Test CA");
    let answer = move |seen: &Seen| {
        let asked: Value = serde_json::from_slice(&seen.body).unwrap_or_default();
        Some(reply(asked["stream"] == true))
    };
    let upstream = Upstream::build().identity(upstreams.leaf(&[HOST])).script(answer).start();
    let text = policy(&[&format!("{{name: llm, hosts: [{HOST}], action: Inspect}}")])
        .replace("podSelector", &format!("rules:\n{rules}  podSelector"));
    let gateway = Setup::new(&upstreams).policy(&text).host(HOST, upstream.address()).start();
    (gateway, upstream)
}

fn calling(command: &str, is_stream: bool) -> Reply {
    let kind = if is_stream { "text/event-stream" } else { "application/json" };
    Reply::of(200, call(command, is_stream)).header("content-type", kind)
}

/// The body of an answer that calls Bash with this command, whole or as a stream.
fn call(command: &str, is_stream: bool) -> String {
    let input = json!({"command": command});
    let usage = json!({"input_tokens": 900, "output_tokens": 100});
    let message = |content: Value, reason: Value| {
        json!({
            "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-other", "stop_sequence": null,
            "content": content, "stop_reason": reason, "usage": usage,
        })
    };
    if !is_stream {
        let call = json!({"type": "tool_use", "id": "t1", "name": "Bash", "input": input});
        return message(json!([call]), "tool_use".into()).to_string();
    }
    let block = json!({"type": "tool_use", "id": "t1", "name": "Bash", "input": {}});
    let delta = json!({"type": "input_json_delta", "partial_json": input.to_string()});
    let events = [
        json!({"type": "message_start", "message": message(json!([]), Value::Null)}),
        json!({"type": "content_block_start", "index": 0, "content_block": block}),
        json!({"type": "content_block_delta", "index": 0, "delta": delta}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use", "stop_sequence": null}, "usage": usage}),
        json!({"type": "message_stop"}),
    ];
    let text = |event: &Value| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap());
    events.iter().map(text).collect()
}

fn ask_for(gateway: &Gateway, is_stream: bool) -> Answer {
    let body = json!({
        "model": "m", "max_tokens": 9, "stream": is_stream, "messages": [{"role": "user", "content": "go"}]
    });
    gateway.agent().request("POST", &format!("https://{HOST}/v1/messages"), &[], body.to_string().as_bytes())
}

#[test]
fn a_call_for_which_a_rule_holds_is_replaced_by_a_text_that_names_the_rule() {
    let (gateway, _upstream) = answering(
        "    - {name: long, when: 'event.kind == \"ToolCall\" && event.toolCall.inputBytes > 90', action: Deny, \
         reason: Too much at once}\n    \
         - {name: runs, when: '\"Shell\" in event.toolCall.kinds && event.provider.model == \"m\"', action: Audit}\n",
        |is_stream| calling(&format!("echo {}", "x".repeat(if is_stream { 90 } else { 91 })), is_stream),
    );
    for is_stream in [false, true] {
        let answer = ask_for(&gateway, is_stream);
        assert_eq!(answer.status, 200);
        let text = answer.text();
        for part in [
            "[postern] Tool call blocked by policy",
            "Rule: agents/test/long",
            "Reason: Too much at once",
            "this use of it is not",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!text.contains("xxx"), "{text}");
    }
    let event = gateway.wait_for("ToolCall", "Deny");
    assert_eq!(event["decision"]["rule"], "agents/test/long");
    assert_eq!(event["toolCall"]["kinds"], json!(["Shell"]));
    gateway.wait_for_event("the record of the other rule", |event| {
        event["kind"] == "Policy"
            && event["decision"]["rule"] == "agents/test/runs"
            && event["toolCall"]["name"] == "Bash"
    });
}

#[test]
fn a_call_that_no_rule_denies_goes_on_byte_for_byte() {
    let (gateway, _upstream) = answering(
        "    - {name: long, when: 'event.toolCall.inputBytes > 90', action: Deny}\n    \
         - {name: found, when: 'event.dlp.exists(f, f.confidence == \"High\")', action: Deny}\n",
        |is_stream| calling("ls", is_stream),
    );
    for is_stream in [false, true] {
        assert_eq!(ask_for(&gateway, is_stream).text(), call("ls", is_stream));
    }
    assert_eq!(gateway.wait_for("ToolCall", "Allow")["decision"].get("rule"), None);
}

#[test]
fn a_call_is_denied_at_its_start_by_a_rule_that_asks_for_no_input() {
    let (gateway, _upstream) = answering(
        "    - {name: no-shell, when: 'event.toolCall.name.lowerAscii() == \"bash\"', action: Deny}\n",
        |is_stream| calling("ls", is_stream),
    );
    for is_stream in [false, true] {
        let text = ask_for(&gateway, is_stream).text();
        assert!(text.contains("Rule: agents/test/no-shell"), "{text}");
        assert!(text.contains("This tool is not available here."), "{text}");
    }
}

/// G11: whose account answers is the policy's to say.
#[test]
fn an_answer_whose_head_a_rule_denies_is_refused_and_nothing_of_it_is_sent() {
    let (gateway, _upstream) = answering(
        "    - {name: account, when: 'has(event.provider.organization) && event.provider.organization != \"org-acme\"', \
         action: Deny, reason: Not ours}\n    \
         - {name: failed, when: 'event.kind == \"Response\" && event.http.status >= 400', action: Audit}\n",
        |is_stream| calling("ls", is_stream).header("anthropic-organization-id", "org-else"),
    );
    for is_stream in [false, true] {
        let answer = ask_for(&gateway, is_stream);
        assert_eq!(answer.status, 403);
        answer.assert_refused_by_provider("agents/test/account");
        assert!(answer.text().contains("Not ours") && !answer.text().contains("msg_1"), "{}", answer.text());
    }
    let event = gateway.wait_for("Response", "Deny");
    assert_eq!(event["decision"]["rule"], "agents/test/account");
    assert_eq!(event["provider"]["organization"], "org-else");
}

/// G11: whose account answers is the policy's to say.
#[test]
fn an_answer_of_the_right_account_goes_on() {
    let (gateway, _upstream) = answering(
        "    - {name: account, when: 'has(event.provider.organization) && event.provider.organization != \"org-acme\"', \
         action: Deny, reason: Not ours}\n",
        |is_stream| calling("ls", is_stream).header("anthropic-organization-id", "org-acme"),
    );
    for is_stream in [false, true] {
        assert_eq!(ask_for(&gateway, is_stream).text(), call("ls", is_stream));
    }
    assert_eq!(gateway.wait_for("Response", "Allow")["provider"]["organization"], "org-acme");
}

/// E16: a model is what a policy approves.
#[test]
fn what_an_answer_cost_is_recorded_at_its_end() {
    for is_stream in [false, true] {
        assert_recorded_at_its_end(is_stream);
    }
}

fn assert_recorded_at_its_end(is_stream: bool) {
    let (gateway, _upstream) = answering(
        "    - {name: dear, when: 'event.usage.outputTokens >= 100 && event.provider.responseModel == \"claude-other\"', \
         action: Audit, reason: Dear}\n    \
         - {name: cheap, when: 'event.usage.outputTokens < 100', action: Audit}\n",
        |is_stream| calling("ls", is_stream),
    );
    assert_eq!(ask_for(&gateway, is_stream).status, 200);
    let recorded =
        gateway.wait_for_event("the record", |event| event["decision"]["rule"] == "agents/test/dear");
    assert_eq!(recorded["usage"]["outputTokens"], 100);
    assert_eq!((&recorded["kind"], &recorded["decision"]["verdict"]), (&"Policy".into(), &"Audit".into()));
    gateway.wait_for("Response", "Allow");
    let told = |rule: &str| {
        let events = gateway.events();
        events.iter().filter(|event| event["decision"]["rule"] == format!("agents/test/{rule}")).count()
    };
    assert_eq!((told("dear"), told("cheap")), (1, 0));
}

#[test]
fn calls_and_answers_go_on_under_audit_policies_and_are_recorded() {
    let rules = "    - {name: shell, when: 'event.toolCall.inputBytes > 0', action: Deny}\n    \
                 - {name: ok, when: 'event.kind == \"Response\" && event.http.status == 200', action: Deny}\n";
    let (gateway, _upstream) =
        answering(&format!("{rules}  enforcement: Audit\n"), |is_stream| calling("ls", is_stream));
    for is_stream in [false, true] {
        assert_eq!(ask_for(&gateway, is_stream).text(), call("ls", is_stream));
    }
    for rule in ["agents/test/shell", "agents/test/ok"] {
        gateway.wait_for_event(rule, |event| {
            event["decision"]["rule"] == rule && event["decision"]["verdict"] == "WouldDeny"
        });
    }
}
