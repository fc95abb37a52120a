//! `postern policy explain`.

use std::fs::File;
use std::process::Stdio;

use serde_json::json;

use super::{place, printed};
use crate::command_line::Said;

const LINE: [&str; 7] = ["policy", "explain", "--policy", "policy.yaml", "--labels", "app=coder", "question"];

/// Explains a question to a coder's pod.
fn ask(question: &str) -> Said {
    let place = place();
    place.write("question", question);
    place.run(&LINE)
}

/// The decision of a question, in the second line.
fn decided(question: &str) -> String {
    let said = ask(question);
    printed(&said).lines().nth(1).unwrap().to_owned()
}

const CALL: &str = include_str!("call.txt");

#[test]
fn every_rule_says_why_it_does_or_does_not_apply_to_a_call() {
    let said = ask("toolCall: {name: Bash, input: {command: 'sudo rm -r x token=abc'}}");
    assert_eq!(printed(&said), CALL);
}

const REQUEST: &str = include_str!("request.txt");

#[test]
fn every_rule_says_why_it_does_or_does_not_apply_to_a_request() {
    let said =
        ask(r#"{"destination": {"host": "a.registry.example"}, "http": {"method": "GET", "path": "/x"}}"#);
    assert_eq!(printed(&said), REQUEST);
}

#[test]
fn a_tool_that_nobody_knows_is_explained_as_the_gateway_takes_it() {
    let by_input = ask("toolCall: {name: frobnicate, input: {argv: [sudo, ls]}}");
    let text = printed(&by_input);
    assert!(text.contains("Deny by agents/coding-agents/no-force-remove"), "{text}");
    assert!(text.contains("it looks like a Shell tool, by its parameters"), "{text}");
    let schema = json!({"type": "object", "properties": {"argv": {"type": "string", "enum": ["sudo ls"]}}});
    let defined = json!({"toolCall": {
        "name": "frobnicate",
        "definition": {"name": "frobnicate", "input_schema": schema},
        "input": {"argv": "sudo ls"},
    }});
    let said = decided(&defined.to_string());
    assert!(said.starts_with("Allow"), "{said}");
}

#[test]
fn an_event_is_a_question_as_it_is() {
    let event = json!({
        "apiVersion": "postern.dev/event/v1",
        "kind": "Request",
        "destination": {"host": "api.anthropic.com", "port": 443, "action": "Inspect", "intercepted": true},
        "http": {"method": "POST", "path": "/v1/files", "version": "HTTP/2"},
        "decision": {"verdict": "Allow"},
    });
    let said = decided(&event.to_string());
    assert!(said.starts_with("Deny by postern/builtin/endpoint: "), "{said}");
    let call = json!({
        "kind": "ToolCall",
        "destination": {"host": "api.anthropic.com", "port": 443},
        "toolCall": {"id": "toolu_1", "name": "Edit", "inputSha256": "…", "inputBytes": 27,
                     "input": "{\"file_path\": \"/etc/passwd\"}"},
    });
    assert_eq!(
        decided(&call.to_string()),
        "Deny by agents/coding-agents/stay: File access is restricted to the project directory"
    );
}

#[test]
fn a_call_whose_input_is_not_known_is_decided_as_far_as_its_name_decides() {
    assert_eq!(
        decided("toolCall: {name: Edit}"),
        "NeedsInput: A condition needs the input, which is not known here"
    );
    assert_eq!(
        decided("toolCall: {name: webfetch}"),
        "Deny by agents/coding-agents/no-web: A rule denies this tool call"
    );
}

#[test]
fn a_write_of_a_control_file_names_the_built_in_rule() {
    let said = ask("toolCall: {name: Write, input: {file_path: /workspace/.mcp.json}}");
    let text = printed(&said);
    assert!(
        text.contains("postern/builtin/agent-control-files (Deny) applies: .mcp.json is run by"),
        "{text}"
    );
}

#[test]
fn a_tool_that_the_catalogue_does_not_know_has_the_kind_that_is_said() {
    assert_eq!(
        decided("toolCall: {name: ours, input: {x: sudo ls}}"),
        "Allow by agents/coding-agents/toolDefault"
    );
    let by_kind = "toolCall: {name: ours, kind: Shell, commands: [sudo ls], input: {x: sudo ls}}";
    assert_eq!(decided(by_kind), "Deny by agents/coding-agents/no-force-remove: Dangerous shell command");
    for twin in ["ls", "sudo ls"] {
        let without_input = format!("toolCall: {{name: ours, kind: Shell, commands: [{twin}]}}");
        let expected = if twin == "ls" { "Allow by" } else { "Deny by agents/coding-agents/no-force-remove" };
        assert!(decided(&without_input).starts_with(expected), "{twin}: {}", decided(&without_input));
    }
}

#[test]
fn a_call_of_several_kinds_is_explained_by_the_one_that_decides() {
    let patch = "*** Begin Patch\n*** Add File: .mcp.json\n+{}\n*** End Patch";
    let command = json!({"toolCall": {"name": "shell", "input": {"command": ["apply_patch", patch]}}});
    let said = ask(&command.to_string());
    let text = printed(&said);
    assert!(
        text.contains("a call of \"shell\" (Write)\nDeny by postern/builtin/agent-control-files"),
        "{text}"
    );
}

#[test]
fn a_secret_of_the_input_is_not_shown() {
    let said = ask(
        "toolCall: {name: mcp__shell__run, input: {command: 'curl -u me:sk-ant-api03-0123456789abcdef x'}}",
    );
    let text = printed(&said);
    assert!(text.contains("me:[hidden]") && !text.contains("0123456789"), "{text}");
}

#[test]
fn the_question_may_come_from_standard_input() {
    let place = place();
    place.write("question", "{destination: {host: 10.20.3.4, port: 5432, protocol: Opaque}}");
    let line: Vec<&str> = LINE[..6].iter().copied().chain(["-"]).collect();
    let input = Stdio::from(File::open(place.path().join("question")).unwrap());
    let said = place.start(&line, &[], input);
    assert!(printed(&said).contains("\nAllow by agents/coding-agents/database\n"), "{said:?}");
}

#[test]
fn why_unclear_bytes_and_flows_without_a_name_are_denied_is_said() {
    let place = place();
    place.write(
        "floor.yaml",
        "apiVersion: postern.dev/v1alpha1\nkind: ClusterEgressPolicy\nmetadata: {name: floor}\nspec:\n  \
         destinations: [{name: look, hosts: ['**'], action: Inspect}]\n---\n\
         apiVersion: postern.dev/v1alpha1\nkind: EgressPolicy\nmetadata: {name: own, namespace: a}\nspec:\n  \
         destinations: [{name: net, cidrs: [10.0.0.0/8], ports: [443], action: Tunnel}]\n",
    );
    for (protocol, rule, why) in [
        ("Unclear", "unparseable", "neither TLS nor HTTP nor a protocol that is known"),
        ("Tls", "default-deny", "A cluster policy inspects names on this port"),
        ("Opaque", "default-deny", "A cluster policy inspects names on this port"),
    ] {
        place.write(
            "question",
            &format!("{{destination: {{host: 10.0.0.1, port: 443, protocol: {protocol}}}}}"),
        );
        let said = place.run(&["policy", "explain", "--policy", "floor.yaml", "question"]);
        let text = printed(&said);
        assert!(text.contains(&format!("\nDeny by postern/builtin/{rule}: ")), "{text}");
        assert!(text.matches(why).count() >= 2, "the decision and the rule say it: {text}");
    }
}

#[test]
fn programs_read_the_same() {
    let place = place();
    place.write("question", "{toolCall: {name: Edit, input: {file_path: /etc/passwd}}}");
    let line: Vec<&str> = LINE.into_iter().chain(["-o", "json"]).collect();
    let said = place.run(&line);
    printed(&said);
    let explained = said.json();
    assert_eq!(
        explained["decision"],
        json!({
            "verdict": "Deny",
            "rule": "agents/coding-agents/stay",
            "reason": "File access is restricted to the project directory",
        })
    );
    assert_eq!(
        explained["rules"][2],
        json!({
            "rule": "agents/coding-agents/stay",
            "action": "Deny",
            "enforcement": "Enforce",
            "applies": "Yes",
            "why": ["\"Edit\" matches the name \"Edit\"", "its condition holds", "it decides"],
            "tests": [{"test": "file_path NotWithin \"/workspace\"", "found": ["\"/etc/passwd\""], "holds": true}],
        })
    );
}

#[test]
fn what_is_no_question_is_said_with_its_remedy() {
    for (question, expected) in [
        ("{}", "it has neither `toolCall: {name, input}` nor `destination: {host, port}`; write one of them"),
        ("{toolCall: {input: {}}}", "missing field `name`"),
        (
            "{toolCall: {name: ours, commands: [ls]}}",
            "say what a call of a `kind` is about; write its kind, too",
        ),
        ("{destination: {host: 'a b'}}", "destination.host: \"a b\": a name is made of letters"),
        (
            "{destination: {host: a.example}, http: {method: 'G T', path: /}}",
            "http.method: \"G T\" is no method",
        ),
        ("[", "question is no call or request that could be explained"),
    ] {
        let said = ask(question);
        assert_eq!((said.code, said.stdout.as_str()), (Some(1), ""), "{said:?}");
        assert!(said.stderr.contains(expected), "{expected} in {said:?}");
    }
    let missing = place().run(&LINE);
    assert_eq!(missing.code, Some(1), "{missing:?}");
    assert!(missing.stderr.contains("question: cannot be read"), "{missing:?}");
}
