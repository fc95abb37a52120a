//! The tools that carry commands, in every dialect and shape of answer: one answer calls them all, and is judged.

use bytes::Bytes;
use serde_json::{Value, json};

use super::model::Model;
use crate::parity::anthropic::Anthropic;
use crate::parity::bedrock::{Converse, Invoke};
use crate::parity::chat::Chat;
use crate::parity::dialect::Mode::{Streamed, Whole};
use crate::parity::dialect::{Called, Dialect, Mode, Said};
use crate::parity::responses::{self, Responses};
use crate::parity::routed::Routed;
use crate::parity::{gemini, websocket};
use crate::support::upstream::Step;

/// A command, and the rule of the policy that denies it, if any does.
pub(super) type Row<'a> = (&'a str, Option<&'a str>);

/// The tools that every dialect can call.
pub(super) const TOOLS: [&str; 5] =
    ["Bash", "exec_command", "run_shell_command", "write_stdin", "mcp__shell__run_command"];

/// The last one is Messages that a model of Chat Completions answers by a route.
pub(super) const DIALECTS: [&dyn Dialect; 8] =
    [&Anthropic, &Chat, &Responses, &gemini::Sse, &gemini::Array, &Converse, &Invoke, &Routed];

/// A model whose policy has these lines, leaves the WebSocket open, and lets a stand-in answer.
pub(super) fn under(spec: &str) -> Model {
    Model::routed(&format!("providerState: Allow\n{spec}"))
}

/// A call, and the rule that denies it.
pub(super) struct Judged<'a> {
    pub(super) tool: &'static str,
    pub(super) input: Value,
    pub(super) rule: Option<&'a str>,
}

/// The input of a tool that runs this command; what is typed ends its line.
pub(super) fn input(tool: &str, command: &str, session: usize) -> Value {
    match tool {
        "exec_command" => json!({"cmd": command}),
        "write_stdin" => json!({"session_id": session, "chars": format!("{command}\n")}),
        _ => json!({"command": command}),
    }
}

/// Every command by every one of these tools.
pub(super) fn calls<'a>(tools: &[&'static str], rows: &[Row<'a>]) -> Vec<Judged<'a>> {
    let of_row = |(session, (command, rule)): (usize, &Row<'a>)| {
        let of_tool =
            |tool: &&'static str| Judged { tool, input: input(tool, command, session), rule: *rule };
        tools.iter().map(of_tool).collect::<Vec<_>>()
    };
    rows.iter().enumerate().flat_map(of_row).collect()
}

/// Asserts that each call is denied by its rule, or passes, in every dialect, whole and in streams.
pub(super) fn assert_in_every_dialect(model: &Model, calls: &[Judged<'_>]) {
    for dialect in DIALECTS {
        for mode in [Whole, Streamed] {
            if dialect.place(mode).is_some() {
                assert_judged(model, dialect, mode, calls);
            }
        }
    }
    let heard = by_websocket(model, &responses::events(&said(calls)));
    let heard = responses::hear_events(&heard);
    let left: Vec<&str> = heard.calls.iter().map(|call| call.id.as_str()).collect();
    assert_left(&left, &heard.text, calls, "WebSocket");
}

/// An answer with these calls.
pub(super) fn answered(dialect: &dyn Dialect, mode: Mode, calls: &[Judged<'_>]) -> Bytes {
    dialect.answer(&said(calls), mode).concat().into()
}

/// The same in one dialect.
#[track_caller]
pub(super) fn assert_judged(model: &Model, dialect: &dyn Dialect, mode: Mode, calls: &[Judged<'_>]) {
    let heard = model.hear(dialect, mode, answered(dialect, mode, calls));
    let left: Vec<&str> = heard.calls.iter().map(|call| call.id.as_str()).collect();
    let place = format!("{:?} {mode:?}", dialect.place(mode));
    assert_left(&left, &heard.text, calls, &place);
}

/// Asserts that of an answer's calls these are left, and that its text has the rules of the others in their order.
#[track_caller]
pub(super) fn assert_left(left: &[&str], text: &str, calls: &[Judged<'_>], place: &str) {
    let denying: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("Rule: ")).collect();
    let mut denying = denying.into_iter();
    let mut wrong = Vec::new();
    for (number, call) in calls.iter().enumerate() {
        let is_left = left.contains(&id(number).as_str());
        let by = if is_left { None } else { denying.next() };
        let wanted = call.rule.map(whole);
        if by != wanted.as_deref() || is_left != wanted.is_none() {
            wrong.push(format!("{} {}: {by:?}, not {wanted:?}", call.tool, call.input));
        }
    }
    assert!(wrong.is_empty(), "{place}:\n{}", wrong.join("\n"));
    assert_eq!(denying.next(), None, "{place}");
}

/// A rule of the policy by its whole name.
fn whole(rule: &str) -> String {
    if rule.contains('/') { rule.to_owned() } else { format!("agents/test/{rule}") }
}

fn id(number: usize) -> String {
    format!("call_{number:03}")
}

fn said(calls: &[Judged<'_>]) -> Said {
    let called = |(number, call): (usize, &Judged<'_>)| Called {
        id: id(number),
        namespace: None,
        name: call.tool,
        input: call.input.to_string().leak(),
    };
    Said { text: "Let me see.", calls: calls.iter().enumerate().map(called).collect() }
}

/// Asserts the same of items that Responses alone has, whole, in a stream and by WebSocket: the commands of a row by a
/// shell of OpenAI's own, as arguments, and in code mode.
#[track_caller]
pub(super) fn assert_items_judged(model: &Model, shapes: &[Shape], rows: &[Row<'_>]) {
    for (shape, of_command) in shapes {
        let items: Vec<Value> =
            rows.iter().enumerate().map(|(number, (command, _))| of_command(&id(number), command)).collect();
        let events = events(&items);
        let named: String =
            events.iter().map(|e| format!("event: {}\ndata: {e}\n\n", e["type"].as_str().unwrap())).collect();
        let by_http = [(Whole, response(&items, "completed").to_string()), (Streamed, named)];
        let mut answers: Vec<(String, Value)> = by_http
            .into_iter()
            .map(|(mode, body)| {
                let answer = model.ask(&Responses, mode, body).text();
                let last = if mode == Whole { answer } else { last_event(&answer)["response"].to_string() };
                (format!("{shape} {mode:?}"), serde_json::from_str(&last).unwrap())
            })
            .collect();
        let last = by_websocket(model, &events).pop().unwrap();
        answers.push((format!("{shape} WebSocket"), last["response"].clone()));
        for (place, response) in answers {
            let calls: Vec<Judged<'_>> = rows
                .iter()
                .map(|(command, rule)| Judged { tool: shape, input: json!(command), rule: *rule })
                .collect();
            let output = response["output"].as_array().unwrap();
            let left: Vec<&str> = output.iter().filter_map(|item| item["call_id"].as_str()).collect();
            let texts = output.iter().filter_map(|item| item["content"][0]["text"].as_str());
            assert_left(&left, &texts.collect::<Vec<_>>().join("\n"), &calls, &place);
        }
    }
}

/// A name, and the item that runs a command.
pub(super) type Shape = (&'static str, fn(&str, &str) -> Value);

/// In what else a command comes; the last is known by what its name ends in.
pub(super) const SHAPES: [Shape; 7] = [
    ("local_shell_call", |id, command| {
        let action = json!({"type": "exec", "command": ["bash", "-lc", command], "env": {}});
        json!({"type": "local_shell_call", "id": format!("ls_{id}"), "call_id": id, "status": "completed", "action": action})
    }),
    ("shell_call", |id, command| {
        let action = json!({"commands": [command]});
        json!({"type": "shell_call", "id": format!("sh_{id}"), "call_id": id, "status": "completed", "action": action})
    }),
    ("shell by arguments", |id, command| {
        let arguments = json!({"command": ["/bin/bash", "-lc", command]}).to_string();
        json!({"type": "function_call", "id": format!("fc_{id}"), "call_id": id, "name": "shell", "arguments": arguments, "status": "completed"})
    }),
    ("a custom tool", |id, command| custom(id, "exec_command", command)),
    ("code mode", |id, command| {
        custom(
            id,
            "exec",
            &format!("const r = await tools.exec_command({{cmd: {}}});\ntext(r);", json!(command)),
        )
    }),
    ("typed in code mode", |id, command| {
        let typed = json!({"session_id": id, "chars": format!("{command}\n")});
        custom(id, "exec", &format!("await tools.write_stdin({typed})"))
    }),
    ("a call in a call", |id, command| {
        let arguments = json!({"tool_uses": [{"recipient_name": "functions.exec_command", "parameters": {"cmd": command}}]}).to_string();
        json!({"type": "function_call", "id": format!("fc_{id}"), "call_id": id, "name": "multi_tool_use.parallel", "arguments": arguments, "status": "completed"})
    }),
];

fn custom(id: &str, name: &str, text: &str) -> Value {
    json!({"type": "custom_tool_call", "id": format!("ct_{id}"), "call_id": id, "name": name, "input": text, "status": "completed"})
}

fn response(items: &[Value], status: &str) -> Value {
    json!({"id": "resp_1", "object": "response", "created_at": 1, "status": status, "error": null, "model": "gpt-5", "output": items, "tools": []})
}

fn events(items: &[Value]) -> Vec<Value> {
    let mut events = vec![json!({"type": "response.created", "response": response(&[], "in_progress")})];
    for (index, item) in items.iter().enumerate() {
        events.push(json!({"type": "response.output_item.added", "output_index": index, "item": item}));
        events.push(json!({"type": "response.output_item.done", "output_index": index, "item": item}));
    }
    events.push(json!({"type": "response.completed", "response": response(items, "completed")}));
    for (number, event) in events.iter_mut().enumerate() {
        event["sequence_number"] = number.into();
    }
    events
}

fn last_event(stream: &str) -> Value {
    let last = stream.trim_end().rsplit("data: ").next().unwrap();
    serde_json::from_str(last).unwrap_or_else(|error| panic!("{error}: {stream}"))
}

/// What comes of events in messages of a WebSocket.
fn by_websocket(model: &Model, events: &[Value]) -> Vec<Value> {
    let messages = events.iter().map(|event| Step::Data(Bytes::from(event.to_string())));
    model.says_with(101, &[], messages.collect());
    let mut request = Responses.request(&["exec_command".to_owned()], Streamed);
    request["type"] = "response.create".into();
    request.as_object_mut().unwrap().remove("stream");
    let heard = websocket::converse(&model.gateway.agent(), "", &request);
    heard.iter().map(|message| serde_json::from_str(message).unwrap()).collect()
}
