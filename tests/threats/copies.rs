//! Copies of a call that say different things, and inputs that are not one.

use serde_json::{Value, json};

use super::model::{Model, NO_FORCE, assert_without, choice, chunks, named};
use super::spelling::response_with;
use crate::parity::chat::Chat;
use crate::parity::dialect::Mode::Streamed;
use crate::parity::responses::Responses;

/// F9: the text of a custom tool and the arguments of a function are two inputs, also before a name has come.
#[test]
fn a_text_and_arguments_before_a_name_are_not_joined() {
    let model = Model::under(NO_FORCE);
    let stream = |pieces: &[Value]| {
        let mut choices: Vec<Value> = pieces
            .iter()
            .map(|piece| {
                let mut call = json!({"index": 0});
                call.as_object_mut().unwrap().extend(piece.as_object().unwrap().clone());
                choice(0, json!({"tool_calls": [call]}), None)
            })
            .collect();
        choices.push(choice(0, json!({}), Some("tool_calls")));
        chunks(&choices)
    };
    let custom = |text: &str| json!({"id": "call_1", "custom": {"input": text}});
    let function = |text: &str| json!({"function": {"arguments": text}});
    let name = json!({"function": {"name": "Bash"}});

    let quoted = custom(r#"{"description":""#);
    let joined = [quoted.clone(), function(r#"","command":"rm -rf /"}"#), name.clone()];
    assert_without(&model.ask(&Chat, Streamed, stream(&joined)), &["call_1", "rm -rf"]);
    let hidden = [function(r#"{"command":"ls","x":""#), custom(r#"rm -rf /"}"#), name.clone()];
    assert_without(&model.ask(&Chat, Streamed, stream(&hidden)), &["call_1", "rm -rf"]);

    let mut first = function(r#"{"comm"#);
    first["id"] = "call_2".into();
    model.assert_passes(&Chat, Streamed, stream(&[first, function(r#"and":"ls"}"#), name]));
    model.assert_verdict("call_2", None);
}

/// The events of one output item, from its beginning to its end, with these between.
fn item_events(begun: &Value, between: &[Value], done: &Value) -> Vec<Value> {
    let mut events = vec![json!({"type": "response.output_item.added", "output_index": 1, "item": begun})];
    events.extend(between.iter().cloned());
    events.push(json!({"type": "response.output_item.done", "output_index": 1, "item": done}));
    events
}

#[track_caller]
fn assert_ends(model: &Model, stream: &str) {
    let answer = model.ask(&Responses, Streamed, stream);
    let end = answer.text();
    assert!(end.contains("event: response.failed\n") && !end.contains("response.completed"), "{end}");
}

/// F10: pieces and copies of a call that ran at the provider must say the same too.
#[test]
fn copies_of_a_hosted_call_must_agree() {
    let model = Model::under(NO_FORCE);
    let code = |code: &str| json!({"type": "code_interpreter_call", "id": "ci_1", "status": "completed", "container_id": "c", "code": code});
    let server = |input: &str| json!({"type": "mcp_call", "id": "mcp_1", "server_label": "s", "name": "n", "arguments": input});
    let search = |query: &str| json!({"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": query}});
    let piece = |kind: &str, key: &str, text: &str| {
        let mut event = json!({"type": kind, "output_index": 1, "item_id": "x"});
        event[key] = text.into();
        event
    };
    let of_code = [
        piece("response.code_interpreter_call_code.delta", "delta", "print"),
        piece("response.code_interpreter_call_code.delta", "delta", "(1)"),
        piece("response.code_interpreter_call_code.done", "code", "print(1)"),
    ];
    let of_server = [
        piece("response.mcp_call_arguments.delta", "delta", r#"{"a":1}"#),
        piece("response.mcp_call_arguments.done", "arguments", r#"{"a":1}"#),
    ];
    let begun = json!({"type": "web_search_call", "id": "ws_1", "status": "in_progress", "action": {"type": "search", "query": "q"}});
    let bare = json!({"type": "web_search_call", "id": "ws_1", "status": "in_progress"});
    for (begun, between, good, bad) in [
        (code(""), &of_code[..], code("print(1)"), code("print(2)")),
        (server(""), &of_server[..], server(r#"{"a":1}"#), server(r#"{"a":2}"#)),
        (begun, &[], search("q"), search("other")),
    ] {
        model.assert_passes(&Responses, Streamed, response_with(&item_events(&begun, between, &good), &good));
        assert_ends(&model, &response_with(&item_events(&begun, between, &bad), &bad));
        assert_ends(&model, &response_with(&item_events(&begun, between, &good), &bad));
    }
    let late = response_with(&item_events(&bare, &[], &search("q")), &search("q"));
    model.assert_passes(&Responses, Streamed, late);
}

/// F10: a shell call that is not said to run at the provider in every copy runs at the client.
#[test]
fn a_shell_call_is_hosted_only_if_every_copy_says_so() {
    let model = Model::under(NO_FORCE);
    let shell = |id: &str, environment: Value, command: &str| {
        let action = json!({"commands": [command]});
        let mut item =
            json!({"type": "shell_call", "id": "sh", "call_id": id, "status": "completed", "action": action});
        if !environment.is_null() {
            item["environment"] = environment;
        }
        item
    };
    let container = || json!({"type": "container_reference", "container_id": "c"});
    let all = |id: &str, [begun, done, last]: [Value; 3], command: &str| {
        let [begun, done, last] = [begun, done, last].map(|environment| shell(id, environment, command));
        response_with(&item_events(&begun, &[], &done), &last)
    };
    model.assert_passes(&Responses, Streamed, all("call_1", [container(), container(), container()], "ls"));
    assert_eq!(model.event("call_1")["toolCall"]["hosted"], true);

    for (id, local) in [("call_2", Value::Null), ("call_3", json!({"type": "local"}))] {
        let stream = all(id, [container(), local.clone(), local], "rm -rf /");
        let answer = model.ask(&Responses, Streamed, stream);
        assert_without(&answer, &[id, "rm -rf"]);
        model.assert_verdict(id, Some("no-force"));
        assert_ne!(model.event(id)["toolCall"]["hosted"], true);
    }
    assert_ends(&model, &all("call_4", [container(), container(), Value::Null], "ls"));
}

/// F14: an event that says what it is in its `event:` line alone is one thing for some clients and nothing for others.
#[test]
fn an_event_that_says_its_type_beside_its_json_alone_ends_the_answer() {
    let model = Model::under(NO_FORCE);
    let input = r#"{"command":"rm -rf /"}"#;
    let call = json!({"type": "function_call", "id": "fc", "call_id": "call_1", "name": "Bash", "arguments": input, "status": "completed"});
    let whole = response_with(&[], &call);
    let hidden = whole.replace(r#""type":"response.completed""#, r#""kind":"response.completed""#);
    assert_ne!(whole, hidden);
    let answer = model.ask(&Responses, Streamed, hidden);
    assert_without(&answer, &["call_1", "rm -rf"]);
    assert!(answer.text().contains("event: response.failed\n"), "{}", answer.text());

    let text =
        json!({"type": "message", "id": "msg_2", "role": "assistant", "status": "completed", "content": []});
    model.assert_passes(&Responses, Streamed, response_with(&[], &text));
    let other = named(&[json!({"type": "ping"})]).replace("\"type\"", "\"kind\"");
    assert!(model.ask(&Responses, Streamed, response_with(&[], &text) + &other).complete);
}
