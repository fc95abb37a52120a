//! `postern policy test`.

use serde_json::{Value, json};

use super::super::{Place, Said};

const HEAD: &str = "apiVersion: postern.dev/v1alpha1\nkind: PolicyTest\npolicy: [../policies]\nlabels: {app: coder}\ncases:\n";

const POLICY: &str = "\
apiVersion: postern.dev/v1alpha1
kind: EgressPolicy
metadata: {name: coding-agents, namespace: agents}
spec:
  podSelector: {matchLabels: {app: coder}}
  destinations:
    - {name: anthropic, hosts: [api.anthropic.com], action: Inspect}
    - {name: packages, hosts: [packages.example.com], action: Inspect, endpoints: [{methods: [GET], path: /**}]}
    - {name: registry, hosts: [registry.example.com], action: Tunnel}
  hostedTools: {action: Strip}
  tools:
    - name: no-force-remove
      kind: Shell
      action: Deny
      when: {param: command, operator: Contains, values: [rm -rf]}
      reason: Nothing is removed by force
";

/// A stream of Anthropic Messages in which the model calls `Bash` with this command.
fn stream(command: &str) -> String {
    let input = json!({"command": command}).to_string();
    let parts = [
        json!({"type": "message_start", "message": {"id": "msg_1", "type": "message", "role": "assistant",
            "model": "claude-sonnet-5-5", "content": [], "stop_reason": null, "stop_sequence": null,
            "usage": {"input_tokens": 1, "output_tokens": 1}}}),
        json!({"type": "content_block_start", "index": 0,
            "content_block": {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {}}}),
        json!({"type": "content_block_delta", "index": 0,
            "delta": {"type": "input_json_delta", "partial_json": input}}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use", "stop_sequence": null},
            "usage": {"output_tokens": 9}}),
        json!({"type": "message_stop"}),
    ];
    let event = |part: &Value| format!("event: {}\ndata: {part}\n\n", part["type"].as_str().unwrap());
    parts.iter().map(event).collect()
}

fn turn() -> String {
    json!({"model": "claude-sonnet-5-5", "max_tokens": 9, "stream": true,
        "messages": [{"role": "user", "content": "hi"}],
        "tools": [{"type": "web_search_20250305", "name": "web_search"},
            {"name": "Bash", "description": "", "input_schema": {"type": "object"}}]})
    .to_string()
}

fn place(cases: &str) -> Place {
    let place = Place::new();
    place.write("policies/coding-agents.yaml", POLICY);
    place.write("tests/agents.yaml", &format!("{HEAD}{cases}"));
    place.write("tests/turn.json", &turn());
    place.write("tests/stream.sse", &stream("rm -rf /"));
    place
}

fn tried(cases: &str) -> Said {
    place(cases).run(&["policy", "test", "tests/agents.yaml"])
}

#[track_caller]
fn holds(cases: &str) {
    let said = tried(cases);
    assert_eq!((said.code, said.stderr.as_str()), (Some(0), ""), "{said:?}");
}

#[test]
fn a_call_is_decided_as_in_the_gateway() {
    holds(
        "- {name: a, toolCall: {name: Bash, input: {command: rm -rf /}}, expect: {verdict: Deny, rule: agents/coding-agents/no-force-remove, reason: by force}}\n\
         - {name: b, toolCall: {name: Bash, input: {command: ls}}, expect: {verdict: Allow}}\n",
    );
    let said = tried(
        "- name: a\n  toolCall: {name: Bash, input: {command: ls}}\n  expect: {verdict: Deny}\n\
         - {name: b, toolCall: {name: Bash}, expect: {verdict: Allow}}\n",
    );
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(
        said.stdout.starts_with(
            "FAIL  tests/agents.yaml:6  a\n      expected Deny, it is Allow\nFAIL  tests/agents.yaml:9  b\n      cannot be said: "
        ),
        "{said:?}"
    );
    assert!(said.stdout.ends_with("2 cases: 0 hold, 2 do not\n"), "{said:?}");
}

#[test]
fn edits_are_judged_by_the_files_that_a_case_says() {
    let place = place("");
    let policy = format!("{POLICY}  edits: {{overwrite: Deny, match: Deny}}\n  shell: {{directory: /w}}\n");
    place.write("policies/coding-agents.yaml", &policy);
    let tried = |cases: &str| {
        place.write("tests/agents.yaml", &format!("{HEAD}{cases}"));
        place.run(&["policy", "test", "tests/agents.yaml"])
    };
    let edit = "toolCall: {name: Edit, input: {file_path: /w/a.rs, old_string: one, new_string: two}}";
    let denied = "expect: {verdict: Deny, rule: agents/coding-agents/edits";
    let said = tried(&format!(
        "- {{name: fits, {edit}, files: {{/w/a.rs: one}}, expect: {{verdict: Allow}}}}\n\
         - {{name: relative, {edit}, files: {{a.rs: three}}, {denied}, reason: stands there 0 times}}}}\n\
         - {{name: twice, {edit}, files: {{/w/a.rs: one one}}, {denied}, reason: stands there 2 times}}}}\n\
         - {{name: another, {edit}, files: {{/w/b.rs: three}}, expect: {{verdict: Allow}}}}\n\
         - {{name: no workspace, {edit}, expect: {{verdict: Allow}}}}\n\
         - {{name: over, toolCall: {{name: Write, input: {{file_path: /w/a.rs, content: x}}}}, files: {{/w/a.rs: y}}, {denied}}}}}\n"
    ));
    assert_eq!((said.code, said.stderr.as_str()), (Some(0), ""), "{said:?}");
    let input = r#"{"file_path":"/w/a.rs","old_string":"one","new_string":"two"}"#;
    place.write(
        "tests/stream.sse",
        &stream("ls").replace("Bash", "Edit").replace(&escaped(r#"{"command":"ls"}"#), &escaped(input)),
    );
    place.write("tests/turn.json", &turn().replace("\"Bash\"", "\"Edit\""));
    let turn = |files: &str, verdict: &str| {
        format!(
            "- name: turn\n  request: {{url: \"https://api.anthropic.com/v1/messages\", bodyFile: turn.json}}\n  \
             answer: {{contentType: text/event-stream, bodyFile: stream.sse}}\n  files: {{/w/a.rs: {files}}}\n  \
             expect: {{verdict: Allow, calls: [{{name: Edit, verdict: {verdict}}}]}}\n"
        )
    };
    for (files, verdict) in [("one", "Allow"), ("three", "Deny")] {
        let said = tried(&turn(files, verdict));
        assert_eq!((said.code, said.stderr.as_str()), (Some(0), ""), "{said:?}");
    }
    let said = tried("- {name: a, event: x, from: y, files: {}, expect: {verdict: Deny}}\n");
    assert!(said.code == Some(1) && said.stderr.contains("cases[0].files: files belong to"), "{said:?}");
}

/// A text as it stands in a string of JSON.
fn escaped(text: &str) -> String {
    let quoted = json!(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

#[test]
fn a_recorded_turn_is_edited_and_its_answer_guarded() {
    let turn = "- name: turn\n  request: {url: \"https://api.anthropic.com/v1/messages\", bodyFile: turn.json}\n  \
                answer: {contentType: text/event-stream, bodyFile: stream.sse}\n  expect:\n    verdict: Allow\n    \
                rule: agents/coding-agents/anthropic\n    removed: [web_search_20250305]\n    \
                calls: [{name: Bash, verdict: Deny, rule: agents/coding-agents/no-force-remove}]\n";
    holds(turn);
    let other = turn
        .replace("[web_search_20250305]", "[]")
        .replace("verdict: Deny", "verdict: Allow")
        .replace(", rule: agents/coding-agents/no-force-remove", "");
    let said = tried(&other);
    assert_eq!(said.code, Some(1), "{said:?}");
    for part in [
        "removed: expected none, it is web_search_20250305",
        "calls[0]: expected Bash Allow, it is Bash Deny by agents/coding-agents/no-force-remove",
    ] {
        assert!(said.stdout.contains(part), "{part}: {said:?}");
    }
}

#[test]
fn requests_are_decided_by_host_method_path_and_body() {
    holds(
        "- {name: a, request: {url: \"https://evil.example/\"}, expect: {verdict: Deny, rule: postern/builtin/default-deny}}\n\
         - {name: b, request: {url: \"https://packages.example.com/x\"}, expect: {verdict: Allow, rule: agents/coding-agents/packages}}\n\
         - {name: c, request: {url: \"https://packages.example.com/x\", body: x}, expect: {verdict: Deny}}\n\
         - {name: d, request: {url: \"https://registry.example.com/x\", body: x}, expect: {verdict: Allow, rule: agents/coding-agents/registry}}\n\
         - {name: e, request: {url: \"https://api.anthropic.com/v1/messages\", body: '{\"model\":'}, expect: {verdict: Deny, rule: postern/builtin/unparseable}}\n\
         - {name: f, request: {url: \"https://api.anthropic.com/v1/files\", body: {}}, expect: {verdict: Deny, rule: postern/builtin/endpoint}}\n\
         - {name: g, request: {url: \"https://packages.example.com/x\", headers: {x-http-method-override: DELETE, host: other.example}}, expect: {verdict: Deny, rule: postern/builtin/name-mismatch}}\n",
    );
}

#[test]
fn secrets_are_looked_for_in_heads_and_in_bodies_to_any_host() {
    let secret = ["glp", "at-Ab3dEf6hIj9kLm2nOp5q"].concat();
    let url = "https://packages.example.com/x";
    let turn =
        json!({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": secret}]}).to_string();
    holds(&format!(
        "- {{name: a, request: {{url: \"{url}\", headers: {{x-note: {secret}}}}}, expect: {{verdict: Deny, rule: postern/builtin/outbound-exfiltration, reason: header/x-note}}}}\n\
         - {{name: b, request: {{url: \"{url}?q={secret}\"}}, expect: {{verdict: Deny, reason: query/q}}}}\n\
         - {{name: c, request: {{url: \"{url}\", method: GET, body: \"a {secret}\"}}, expect: {{verdict: Deny, rule: postern/builtin/outbound-exfiltration}}}}\n\
         - {{name: d, request: {{url: \"{url}\", headers: {{x-note: glpat-is-how-they-begin-he}}}}, expect: {{verdict: Allow}}}}\n\
         - {{name: e, request: {{url: \"https://api.anthropic.com/v1/messages\", body: {turn}}}, expect: {{verdict: Allow, redacted: [gitlab-token]}}}}\n"
    ));
}

/// An event whose facts are these.
fn event(number: u64, facts: &Value) -> String {
    let mut event = json!({
        "apiVersion": "postern.dev/event/v1", "id": format!("01a2008d-747b-7101-8101-{number:012}"),
        "time": "2026-11-22T00:00:00.000Z", "sequence": number, "count": 1, "direction": "Outbound",
        "destination": {"host": "packages.example.com", "port": 443, "action": "Inspect", "intercepted": true},
        "decision": {"verdict": "Allow"},
    });
    event.as_object_mut().unwrap().extend(facts.as_object().unwrap().clone());
    format!("{event}\n")
}

#[test]
fn events_are_decided_anew_as_far_as_their_facts_allow() {
    let request =
        |path: &str| json!({"kind": "Request", "http": {"method": "GET", "path": path, "version": "HTTP/2"}});
    let call = |input: Value| json!({"kind": "ToolCall", "toolCall": {"name": "Bash", "kindsBy": "Catalogue", "inputBytes": 2, "input": input}});
    let lines = [
        event(1, &request("/x")),
        event(2, &call(json!("{\"command\":\"rm -rf /\"}"))),
        event(3, &call(Value::Null)),
        event(4, &json!({"kind": "Lifecycle"})),
        event(
            5,
            &json!({"kind": "Connection", "decision": {"verdict": "Deny", "rule": "postern/builtin/name-mismatch"}}),
        ),
    ]
    .concat();
    let case = |number: u64, expect: &str| {
        format!(
            "- {{name: n{number}, event: 01a2008d-747b-7101-8101-{number:012}, from: e.jsonl, expect: {expect}}}\n"
        )
    };
    let mut cases = case(1, "{verdict: Allow, rule: agents/coding-agents/packages}");
    cases += &case(2, "{verdict: Deny, rule: agents/coding-agents/no-force-remove}");
    let known = place(&cases);
    known.write("tests/e.jsonl", &lines);
    let said = known.run(&["policy", "test", "tests/agents.yaml"]);
    assert_eq!((said.code, said.stderr.as_str()), (Some(0), ""), "{said:?}");
    let unknown: String = (3..6).map(|number| case(number, "{verdict: Allow}")).collect();
    let unknown = place(&unknown);
    unknown.write("tests/e.jsonl", &lines);
    let said = unknown.run(&["policy", "test", "tests/agents.yaml"]);
    assert_eq!(said.code, Some(1), "{said:?}");
    for part in [
        "cannot be said: it needs the input of Bash, which the event does not keep (audit.toolInputs)",
        "cannot be said: an event of kind Lifecycle is about no decision",
        "cannot be said: it was denied by postern/builtin/name-mismatch",
    ] {
        assert!(said.stdout.contains(part), "{part}: {said:?}");
    }
}

/// Rules over facts of every kind.
const RULES: &str = "  rules:
    - {name: models, when: '!event.provider.models.all(m, m == \"claude-sonnet-5-5\")', action: Deny, reason: Not approved}
    - {name: hours, when: 'event.kind == \"Request\" && event.time.getHours() < 7', action: Deny, reason: Working hours}
    - {name: account, when: 'event.kind == \"Response\" && event.provider.organization == \"org-else\"', action: Deny}
    - {name: large, when: 'event.toolCall.inputBytes > 100', action: Deny, reason: Too much}
    - {name: shells, when: '\"Shell\" in event.toolCall.kinds', action: Audit}
";

fn with_rules(now: &str, cases: &str) -> Place {
    let place = place(cases);
    place.write("policies/coding-agents.yaml", &format!("{POLICY}{RULES}"));
    place.write("tests/agents.yaml", &format!("{}{cases}", HEAD.replace("cases:", &format!("{now}cases:"))));
    place.write("tests/opus.json", &turn().replace("sonnet", "opus"));
    place.write("tests/large.sse", &stream(&"x".repeat(100)));
    place
}

const NOON: &str = "now: 2026-11-23T12:00:00Z\n";
const URL: &str = "url: 'https://api.anthropic.com/v1/messages'";

#[test]
fn rules_over_facts_decide_requests_answers_and_calls() {
    let cases = format!(
        "- {{name: a, request: {{{URL}, bodyFile: turn.json}}, expect: {{verdict: Allow}}}}\n\
         - {{name: b, request: {{{URL}, bodyFile: opus.json}}, expect: {{verdict: Deny, rule: agents/coding-agents/models, reason: Not approved}}}}\n\
         - {{name: c, request: {{{URL}, bodyFile: turn.json}}, answer: {{contentType: text/event-stream, bodyFile: large.sse}}, \
            expect: {{verdict: Allow, calls: [{{name: Bash, verdict: Deny, rule: agents/coding-agents/large}}]}}}}\n\
         - {{name: d, request: {{{URL}, bodyFile: turn.json}}, answer: {{organization: org-else, body: {{}}}}, \
            expect: {{verdict: Deny, rule: agents/coding-agents/account}}}}\n"
    );
    let said = with_rules(NOON, &cases).run(&["policy", "test", "tests/agents.yaml"]);
    assert_eq!((said.code, said.stderr.as_str()), (Some(0), ""), "{said:?}");
    let night = "- {name: a, request: {url: 'https://packages.example.com/x'}, expect: {verdict: Deny, rule: agents/coding-agents/hours}}\n";
    let said = with_rules("now: 2026-11-23T03:00:00Z\n", night).run(&["policy", "test", "tests/agents.yaml"]);
    assert_eq!(said.code, Some(0), "{said:?}");
}

/// Routes to a model of one's own, in the place of the destination and the rules.
const ROUTED: &str = "\
apiVersion: postern.dev/v1alpha1
kind: EgressPolicy
metadata: {name: routed, namespace: agents}
spec:
  podSelector: {}
  destinations: [{name: anthropic, hosts: [api.anthropic.com], action: Inspect, reach: Routes}]
  modelProviders: [{name: vllm, endpoint: 'https://vllm.example/v1', dialect: OpenAIChat}]
  models: [{name: coder, provider: vllm, model: qwen3}, {name: chat, provider: vllm, model: glm}]
  routes:
    - {name: subagents, match: {marker: af83e9}, to: [chat]}
    - {name: small, match: {models: ['claude-haiku-*']}, to: [coder], fallback: [chat]}
  rules:
    - {name: no-glm, when: 'event.provider.models.exists(m, m == \"glm\") && event.provider.model == \"claude-haiku-5\"', action: Deny}
";

#[test]
fn routes_say_which_models_are_asked_and_rules_know_all_of_them() {
    let asked = |name: &str, model: &str, system: &str, expect: &str| {
        let body = json!({"model": model, "max_tokens": 9, "system": system,
            "messages": [{"role": "user", "content": "hi"}]});
        let body = serde_json::to_string(&body.to_string()).unwrap();
        format!("- {{name: {name}, request: {{{URL}, body: {body}}}, expect: {{{expect}}}}}\n")
    };
    let marker = |label: &str| format!("<!-- @proxy-local-route:af83e9 model={label} -->");
    let cases = [
        asked("a", "claude-haiku-4-5", "", "verdict: Allow, models: [coder, chat]"),
        asked("b", "claude-opus-5", &marker("chat"), "verdict: Allow, models: [chat]"),
        asked(
            "c",
            "claude-opus-5",
            &marker("coder"),
            "verdict: Deny, rule: postern/builtin/route, reason: 'Labels: chat'",
        ),
        asked("d", "claude-opus-5", "", "verdict: Deny, rule: postern/builtin/route"),
        asked("e", "claude-haiku-5", "", "verdict: Deny, rule: agents/routed/no-glm"),
    ]
    .concat();
    let tried = |cases: &str| {
        let place = place(cases);
        place.write("policies/coding-agents.yaml", ROUTED);
        place.run(&["policy", "test", "tests/agents.yaml"])
    };
    let said = tried(&cases);
    assert_eq!((said.code, said.stderr.as_str()), (Some(0), ""), "{said:?}");
    let said = tried(&asked("a", "claude-haiku-4-5", "", "verdict: Allow, models: [chat]"));
    assert!(said.stdout.contains("models: expected chat, it is coder, chat"), "{said:?}");
}

#[test]
fn what_a_rule_would_need_and_nobody_knows_is_said() {
    let cases = "- {name: a, toolCall: {name: Bash, input: {command: ls}}, expect: {verdict: Allow}}\n\
                 - {name: b, request: {url: 'https://packages.example.com/x'}, expect: {verdict: Allow}}\n";
    let said = with_rules("", cases).run(&["policy", "test", "tests/agents.yaml"]);
    assert_eq!(said.code, Some(1), "{said:?}");
    for part in [
        "cannot be said: agents/coding-agents/models reads event.provider.models, which is not known here",
        "cannot be said: agents/coding-agents/hours reads event.time, which is not known here",
    ] {
        assert!(said.stdout.contains(part), "{part}: {said:?}");
    }
}

#[test]
fn past_events_are_decided_by_rules_over_their_facts_and_explained() {
    let model = |model: &str| {
        json!({"kind": "Request", "http": {"method": "POST", "path": "/v1/messages", "version": "HTTP/2"},
            "destination": {"host": "api.anthropic.com", "port": 443, "action": "Inspect", "intercepted": true},
            "provider": {"name": "anthropic", "api": "messages", "model": model, "stream": true},
            "conversation": {"messages": 1, "images": 0, "toolResults": 0},
            "time": "2026-11-22T12:00:00.000Z"})
    };
    let case = |number: u64, expect: &str| {
        format!(
            "- {{name: n{number}, event: 01a2008d-747b-7101-8101-{number:012}, from: e.jsonl, expect: {expect}}}\n"
        )
    };
    let cases = case(1, "{verdict: Allow}") + &case(2, "{verdict: Deny, rule: agents/coding-agents/models}");
    let place = with_rules("", &cases);
    let lines = event(1, &model("claude-sonnet-5-5")) + &event(2, &model("claude-opus-5-5"));
    place.write("tests/e.jsonl", &lines);
    let said = place.run(&["policy", "test", "tests/agents.yaml"]);
    assert_eq!((said.code, said.stderr.as_str()), (Some(0), ""), "{said:?}");

    let explain =
        ["policy", "explain", "--policy", "policies", "--labels", "app=coder", "--ledger", "tests/e.jsonl"];
    let said = place.run(&[&explain[..], &["--event", "01a2008d-747b-7101-8101-000000000002"]].concat());
    assert!(said.stdout.contains("Deny by agents/coding-agents/models: Not approved"), "{said:?}");
    assert!(
        said.stdout
            .contains("agents/coding-agents/hours (Deny) does not apply: its expression does not hold"),
        "{said:?}"
    );

    place.write("old.yaml", POLICY);
    let diff =
        ["policy", "diff", "old.yaml", "policies/coding-agents.yaml", "--labels", "app=coder", "--ledger"];
    let said = place.run(&[&diff[..], &["tests/e.jsonl"]].concat());
    assert!(
        said.stdout.contains("2 decisions: 1 the same, 1 would be denied, 0 would be allowed"),
        "{said:?}"
    );
    assert!(said.stdout.contains("agents/coding-agents/models"), "{said:?}");
}

#[test]
fn a_mistake_in_a_file_has_its_place_and_no_case_is_tried() {
    for (cases, expected) in [
        (
            "- {name: a, toolCal: {name: Bash}, expect: {verdict: Deny}}\n",
            "tests/agents.yaml:6:13: cases[0].toolCal",
        ),
        (
            "- {name: a, toolCall: {name: Bash}, expect: {verdict: Deny, rule: agents/coding-agents/none}}\n",
            "cases[0].expect.rule: cannot be met: none of the policies has the rule",
        ),
        (
            "- {name: a, request: {url: \"https://a.example/\", bodyFile: gone.json}, expect: {verdict: Deny}}\n",
            "cases[0].request.bodyFile: tests/gone.json cannot be read",
        ),
        (
            "- {name: a, request: {url: a.example}, expect: {verdict: Deny}}\n",
            "cases[0].request.url: expected https",
        ),
        (
            "- {name: a, event: 01a2008d-747b-7101-8101-010101010101, from: gone.jsonl, expect: {verdict: Deny}}\n",
            "cases[0].event: tests/gone.jsonl cannot be opened",
        ),
    ] {
        let said = tried(cases);
        assert_eq!((said.code, said.stdout.as_str()), (Some(1), ""), "{said:?}");
        assert!(said.stderr.contains(expected), "{expected}: {said:?}");
    }
    let place = place("- {name: a, toolCall: {name: Bash}, expect: {verdict: Deny}}\n");
    place.write("policies/other.yaml", "kind: [");
    let said = place.run(&["policy", "test", "tests/agents.yaml"]);
    assert!(said.code == Some(1) && said.stderr.contains("policies/other.yaml"), "{said:?}");
    assert_eq!(place.run(&["policy", "test"]).code, Some(2));
}

#[test]
fn programs_and_continuous_integration_read_the_results() {
    let place = place(
        "- {name: a, toolCall: {name: Bash, input: {command: ls}}, expect: {verdict: Allow}}\n\
         - {name: b, toolCall: {name: Bash, input: {command: ls}}, expect: {verdict: Deny}}\n",
    );
    let said = place.run(&[
        "policy",
        "test",
        "tests/agents.yaml",
        "-o",
        "json",
        "--junit",
        "out.xml",
        "--sarif",
        "out.sarif",
    ]);
    assert_eq!(said.code, Some(1), "{said:?}");
    let report: Value = serde_json::from_str(&said.stdout).unwrap();
    assert_eq!(
        report,
        json!({"held": 1, "failed": 1, "cases": [
            {"file": "tests/agents.yaml", "name": "a", "holds": true, "decision": {"verdict": "Allow"}},
            {"file": "tests/agents.yaml", "name": "b", "holds": false, "decision": {"verdict": "Allow"},
                "differences": ["expected Deny, it is Allow"]},
        ]})
    );
    let xml = std::fs::read_to_string(place.path().join("out.xml")).unwrap();
    assert!(xml.contains("<testsuites tests=\"2\" failures=\"1\">"), "{xml}");
    assert!(xml.contains("<failure message=\"expected Deny, it is Allow\">"), "{xml}");
    let sarif = std::fs::read_to_string(place.path().join("out.sarif")).unwrap();
    let sarif: Value = serde_json::from_str(&sarif).unwrap();
    let place = &sarif["runs"][0]["results"][0]["locations"][0]["physicalLocation"];
    assert_eq!(place["artifactLocation"]["uri"], "tests/agents.yaml", "{sarif}");
}
