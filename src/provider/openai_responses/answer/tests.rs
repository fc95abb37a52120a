//! Streams, messages and whole answers, shape by shape, each with a benign twin.

use bytes::Bytes;
use serde_json::{Value, json};

use super::super::EVENTS;
use super::Responses;
use crate::provider::adapter::Framing;
use crate::provider::answer::testing::{Names, fed, guarded, settings};
use crate::provider::answer::{BrokenAnswer, Guard};

/// A stream of these events, numbered, between the beginning and the end of a response with this output.
fn stream(events: &[Value], output: &Value) -> String {
    let response = |status: &str, output: &Value| {
        json!({"id": "resp_1", "object": "response", "created_at": 7, "status": status, "model": "m",
            "output": output, "usage": {"input_tokens": 9, "input_tokens_details": {"cached_tokens": 4},
            "output_tokens": 5, "output_tokens_details": {"reasoning_tokens": 2}}})
    };
    let mut all = vec![json!({"type": "response.created", "response": response("in_progress", &json!([]))})];
    all.extend(events.iter().cloned());
    all.push(json!({"type": "response.completed", "response": response("completed", output)}));
    let numbered = all.into_iter().enumerate().map(|(number, mut event)| {
        event["sequence_number"] = json!(number);
        format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap())
    });
    numbered.collect()
}

fn added(index: u64, item: Value) -> Value {
    let mut event = json!({"type": "response.output_item.added", "output_index": index});
    event["item"] = item;
    event
}

fn done(index: u64, item: Value) -> Value {
    let mut event = json!({"type": "response.output_item.done", "output_index": index});
    event["item"] = item;
    event
}

fn delta(index: u64, text: &str) -> Value {
    json!({"type": "response.function_call_arguments.delta", "output_index": index, "delta": text})
}

fn function(name: &str, arguments: &str) -> Value {
    json!({"type": "function_call", "id": format!("fc_{name}"), "call_id": format!("call_{name}"), "name": name,
        "arguments": arguments})
}

/// A call that comes in pieces.
fn call(index: u64, name: &str, pieces: &[&str]) -> Vec<Value> {
    let whole = pieces.concat();
    let mut events = vec![added(index, function(name, ""))];
    events.extend(pieces.iter().map(|piece| delta(index, piece)));
    events.push(json!({"type": "response.function_call_arguments.done", "output_index": index,
        "name": name, "arguments": whole}));
    events.push(done(index, function(name, &whole)));
    events
}

fn message(index: u64, text: &str) -> Vec<Value> {
    let item =
        |content: Value| json!({"type": "message", "id": "msg_a", "role": "assistant", "content": content});
    let part = json!([{"type": "output_text", "text": text}]);
    vec![
        added(index, item(json!([]))),
        json!({"type": "response.output_text.delta", "output_index": index, "delta": text}),
        done(index, item(part)),
    ]
}

fn run(stream: &str) -> (String, Result<(), BrokenAnswer>) {
    let (bytes, result) = guarded(Box::new(Responses::default()), Framing::Events(EVENTS), stream.as_bytes());
    (String::from_utf8(bytes).unwrap(), result)
}

/// What goes on of a stream that does not break.
fn guarded_stream(stream: &str) -> String {
    let (text, result) = run(stream);
    assert_eq!(result, Ok(()), "{text}");
    for piece in [1, 7, 64] {
        let guard =
            Guard::new(Box::new(Responses::default()), Framing::Events(EVENTS), settings(Names::default()));
        assert_eq!(
            String::from_utf8(fed(guard, stream.as_bytes(), piece).0).unwrap(),
            text,
            "in pieces of {piece}"
        );
    }
    text
}

fn events(stream: &str) -> Vec<Value> {
    let data = stream.lines().filter_map(|line| line.strip_prefix("data: "));
    data.map(|data| serde_json::from_str(data).unwrap()).collect()
}

fn types(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["type"].as_str().unwrap().trim_start_matches("response.")).collect()
}

fn assert_contiguous(events: &[Value]) {
    for (number, event) in events.iter().enumerate() {
        assert_eq!(event["sequence_number"], number, "{event}");
    }
}

/// The events of a message in the place of a call.
const MESSAGE: [&str; 6] = [
    "output_item.added",
    "content_part.added",
    "output_text.delta",
    "output_text.done",
    "content_part.done",
    "output_item.done",
];

#[test]
fn what_is_allowed_goes_on_byte_by_byte() {
    let calls = [call(0, "Free", &["{\"a\":", "1}"]), call(1, "Held", &["{}"]), message(2, "hi")].concat();
    let output = json!([function("Free", "{\"a\":1}"), function("Held", "{}")]);
    let stream = stream(&calls, &output);
    assert_eq!(guarded_stream(&stream), stream);
}

#[test]
fn a_call_that_is_denied_is_a_message_in_every_copy() {
    for (name, pieces) in [("Denied", ["{}", ""]), ("Held", ["{\"a\":\"forb", "idden\"}"])] {
        let calls = [message(0, "hi"), call(1, name, &pieces), call(2, "Free", &["{}"])].concat();
        let output =
            json!([message(0, "hi")[2]["item"], function(name, &pieces.concat()), function("Free", "{}")]);
        let text = guarded_stream(&stream(&calls, &output));
        assert!(!text.contains("call_Held") && !text.contains("call_Denied"), "{text}");
        let events = events(&text);
        assert_contiguous(&events);
        let mut expected = vec!["created", "output_item.added", "output_text.delta", "output_item.done"];
        expected.extend(MESSAGE);
        expected.extend([
            "output_item.added",
            "function_call_arguments.delta",
            "function_call_arguments.done",
        ]);
        expected.extend(["output_item.done", "completed"]);
        assert_eq!(types(&events), expected);
        let item = &events[9]["item"];
        assert_eq!((&item["type"], &item["status"]), (&json!("message"), &json!("completed")));
        assert!(item["content"][0]["text"].as_str().unwrap().starts_with("[postern] Tool call blocked"));
        let output = &events[14]["response"]["output"];
        assert_eq!(output[1], *item);
        assert_eq!(output[2]["call_id"], "call_Free");
    }
}

#[test]
fn what_comes_after_a_call_that_is_held_waits_for_it() {
    let held = call(0, "Held", &["{\"a\":1}"]);
    let later = message(1, "later");
    let interleaved = [&held[..2], &later[..2], &held[2..], &later[2..]].concat();
    let stream = stream(&interleaved, &json!([]));
    let mut guard =
        Guard::new(Box::new(Responses::default()), Framing::Events(EVENTS), settings(Names::default()));
    let end = stream.find("event: response.function_call_arguments.done").unwrap();
    let mut out = Vec::new();
    guard.write(Bytes::copy_from_slice(&stream.as_bytes()[..end]), &mut out).unwrap();
    assert_eq!(types(&events(std::str::from_utf8(&out.concat()).unwrap())), ["created"]);
    assert!(guard.held() > 0);
    let comment = b": keep-alive\n\n";
    let said: Vec<_> = (0..8).map(|_| guard.keep_alive().unwrap()).collect();
    for (at, said) in said.iter().enumerate() {
        assert_eq!(said == &comment[..], at % 4 != 3, "{at}: every minute an event");
    }
    let event = &events(std::str::from_utf8(&said[3]).unwrap())[0];
    assert_eq!(event["type"], "response.in_progress");
    assert_eq!(event["sequence_number"], 0, "the number of `response.created`, which went on last");
    assert_eq!(event["response"]["status"], "in_progress");
    guard.write(Bytes::copy_from_slice(&stream.as_bytes()[end..]), &mut out).unwrap();
    assert_eq!(String::from_utf8(out.concat()).unwrap(), stream);
    assert_eq!(guard.held(), 0);
}

#[test]
fn a_call_without_events_of_its_own_is_judged_where_it_first_stands() {
    let forbidden = "{\"a\":\"forbidden\"}";
    let in_done = stream(&[done(0, function("Held", forbidden))], &json!([function("Held", forbidden)]));
    let events_of_done = events(&guarded_stream(&in_done));
    assert_contiguous(&events_of_done);
    assert_eq!(types(&events_of_done)[1..7], MESSAGE);
    let in_completed = stream(&[], &json!([function("Held", forbidden), function("Free", "{}")]));
    let events = events(&guarded_stream(&in_completed));
    let output = &events[1]["response"]["output"];
    assert_eq!((&output[0]["type"], &output[1]["type"]), (&json!("message"), &json!("function_call")));
    for benign in [
        stream(&[done(0, function("Held", "{}"))], &json!([function("Held", "{}")])),
        stream(&[], &json!([function("Held", "{}")])),
    ] {
        assert_eq!(guarded_stream(&benign), benign);
    }
}

#[test]
fn copies_that_disagree_stop_the_answer() {
    let good = call(0, "Held", &["{\"a\":1}"]);
    let with = |at: usize, pointer: &str, value: Value| {
        let mut events = good.clone();
        *events[at].pointer_mut(pointer).unwrap() = value;
        stream(&events, &json!([]))
    };
    let broken = [
        with(0, "/item/name", json!("Free")),
        with(0, "/item/call_id", json!("call_other")),
        with(0, "/item/arguments", json!("{\"b\":1}")),
        with(0, "/item/type", json!("custom_tool_call")),
        with(0, "/item/type", json!("message")),
        with(1, "/delta", json!("{\"a\":2}")),
        with(1, "/output_index", json!(5)),
        with(1, "/delta", json!(null)),
        with(2, "/arguments", json!("{}")),
        with(2, "/name", json!("Free")),
        with(3, "/item/arguments", json!("{\"a\":1 }")),
        with(3, "/item/name", json!("Free")),
        with(3, "/item/type", json!("message")),
        stream(&good, &json!([function("Held", "{\"a\":2}")])),
        stream(&[good.clone(), vec![done(0, function("Held", "{\"a\":1}"))]].concat(), &json!([])),
        stream(&[good.clone(), vec![added(0, function("Held", ""))]].concat(), &json!([])),
        stream(&[json!({"type": "response.new", "item": function("Free", "{}")})], &json!([])),
        stream(&good, &json!([])).replace("\"name\":\"Held\"", "\"name\":\"Free\",\"name\":\"Held\""),
    ];
    for stream in broken {
        let (text, result) = run(&stream);
        assert!(result.as_ref().is_err_and(|broken| !broken.forgivable), "{stream}");
        assert!(!text.contains("response.completed"), "{text}");
        let events = events(&text);
        assert_contiguous(&events);
        let failed = &events.last().unwrap()["response"];
        assert_eq!((&failed["id"], &failed["error"]["code"]), (&json!("resp_1"), &json!("invalid_prompt")));
    }
    let seeded = with(0, "/item/arguments", json!("{\"a\":1}"));
    assert_eq!(guarded_stream(&seeded), seeded);
}

#[test]
fn every_call_that_a_client_runs_is_judged_by_its_name_and_input() {
    for (item, name) in [
        (json!({"type": "custom_tool_call", "name": "Held", "input": "forbidden"}), "Held"),
        (
            json!({"type": "mcp_approval_request", "name": "Denied", "arguments": "{}", "server_label": "s"}),
            "s.Denied",
        ),
        (
            json!({"type": "function_call", "name": "Held", "namespace": "n", "arguments": {"a": "forbidden"}}),
            "n.Held",
        ),
        (json!({"type": "Denied_call", "id": "x"}), "Denied"),
        (json!({"type": "new", "call_id": "c", "arguments": "", "name": "Denied"}), "Denied"),
    ] {
        let text = guarded_stream(&stream(&[done(0, item.clone())], &json!([item])));
        assert!(text.contains(&format!("Tool: {name}\\n")), "{text}");
        assert!(!text.contains("\"_call\""), "{text}");
        let whole = json!({"object": "response", "output": [item]}).to_string();
        let edited = guard().whole(Bytes::from(whole)).unwrap();
        assert!(String::from_utf8_lossy(&edited).contains(&format!("Tool: {name}\\n")));
    }
    for (item, names) in [
        (json!({"type": "local_shell_call", "action": {"type": "exec", "command": ["ls"]}}), "local_shell"),
        (json!({"type": "shell_call", "action": {"commands": ["ls"]}}), "shell"),
        (
            json!({"type": "apply_patch_call", "operation": {"type": "delete_file", "path": "a"}}),
            "apply_patch",
        ),
        (json!({"type": "computer_call", "action": {"type": "click"}}), "computer"),
        (
            json!({"type": "tool_search_call", "execution": "client", "arguments": {"goal": "x"}}),
            "tool_search",
        ),
    ] {
        let mut guard = guard();
        let whole = json!({"object": "response", "output": [item]}).to_string();
        assert_eq!(guard.whole(Bytes::from(whole.clone())).unwrap(), whole);
        let notes = guard.take_notes();
        assert_eq!((notes[0].name.as_str(), notes[0].hosted), (names, false));
        assert!(notes[0].input.as_deref().unwrap().starts_with('{'), "{notes:?}");
    }
}

#[test]
fn a_call_that_ran_at_the_provider_is_noted_and_under_a_denial_goes_with_its_output() {
    let environment = json!({"type": "container_reference"});
    let shell = json!({"type": "shell_call", "id": "sh_1", "call_id": "c", "environment": environment,
        "action": {"commands": ["ls"]}});
    let whole =
        json!({"output": [shell, {"type": "web_search_call", "action": {"type": "search"}}]}).to_string();
    let mut guard = guard();
    assert_eq!(guard.whole(Bytes::from(whole.clone())).unwrap(), whole);
    assert!(guard.take_notes().iter().all(|note| note.hosted));
    let mcp = json!({"type": "mcp_call", "id": "mcp_1", "call_id": "c", "name": "Denied", "server_label": "s",
        "arguments": "{}", "output": "secret"});
    let output = json!({"type": "mcp_call_output", "id": "o_1", "call_id": "c", "output": "secret"});
    let running = json!({"type": "response.mcp_call.in_progress", "output_index": 0});
    let items = [
        added(0, mcp.clone()),
        running,
        done(0, mcp.clone()),
        added(1, output.clone()),
        done(1, output.clone()),
    ];
    let text = guarded_stream(&stream(&items, &json!([mcp, output])));
    assert!(!text.contains("secret") && !text.contains("mcp_call"), "{text}");
    let events = events(&text);
    assert_contiguous(&events);
    assert_eq!(types(&events), [&["created"], &MESSAGE[..], &MESSAGE[..], &["completed"]].concat());
}

#[test]
fn commands_and_patches_that_come_in_pieces_are_those_of_the_item() {
    let shell =
        |command: &str| json!({"type": "shell_call", "id": "sh_1", "action": {"commands": [command]}});
    let patch = |diff: &str| json!({"type": "apply_patch_call", "id": "a_1", "operation": {"type": "update_file", "path": "a", "diff": diff}});
    let command = |kind: &str, key: &str, text: &str| {
        let mut event = json!({"type": format!("response.shell_call_command.{kind}"), "output_index": 0});
        event["command_index"] = json!(0);
        event[key] = json!(text);
        event
    };
    let diff =
        json!({"type": "response.apply_patch_call_operation_diff.delta", "output_index": 0, "delta": "+x"});
    let of = |begun: Value, events: &[Value], done_item: Value| {
        stream(&[&[added(0, begun)], events, &[done(0, done_item)]].concat(), &json!([]))
    };
    let empty = json!({"type": "shell_call", "id": "sh_1", "action": {"commands": []}});
    let pieces =
        [command("added", "command", ""), command("delta", "delta", "ls"), command("done", "command", "ls")];
    let good =
        [of(empty.clone(), &pieces, shell("ls")), of(patch(""), std::slice::from_ref(&diff), patch("+x"))];
    for stream in good {
        assert_eq!(guarded_stream(&stream), stream);
    }
    let mut other_path = patch("+x");
    other_path["operation"]["path"] = json!("b");
    for stream in [
        of(empty, &pieces, shell("rm")),
        of(shell("rm"), &[], shell("ls")),
        of(patch(""), std::slice::from_ref(&diff), patch("+y")),
        of(patch(""), std::slice::from_ref(&diff), other_path),
    ] {
        assert!(run(&stream).1.is_err(), "{stream}");
    }
}

#[test]
fn an_answer_that_ends_inside_a_call_loses_it_and_says_so() {
    let calls = call(0, "Held", &["{}"]);
    let all = stream(&calls[..2], &json!([]));
    let cut = &all[..all.find("event: response.completed").unwrap()];
    let (text, result) = run(cut);
    assert!(result.is_err());
    assert_eq!(types(&events(&text)), ["created", "failed"]);
    assert_contiguous(&events(&text));
    // The response itself says that it failed.
    let failed = all.replace("response.completed", "response.failed");
    let text = guarded_stream(&failed);
    assert_eq!(types(&events(&text)), ["created", "failed"]);
    assert_contiguous(&events(&text));
    // The end has the call whole.
    let in_end = stream(&calls[..2], &json!([function("Held", "{}")]));
    assert_eq!(guarded_stream(&in_end), in_end);
}

#[test]
fn messages_of_a_websocket_are_the_same_events_response_after_response_and_lane_by_lane() {
    let calls = [call(0, "Denied", &["{}"]), call(1, "Free", &["{}"])].concat();
    let texts = stream(&calls, &json!([]));
    let messages: Vec<Value> = events(&texts);
    let mut guard = Guard::new(Box::new(Responses::default()), Framing::Whole, settings(Names::default()));
    for round in 0..2 {
        let mut out = Vec::new();
        for message in &messages {
            for lane in ["a", "b"] {
                let mut message = message.clone();
                message["stream_id"] = json!(lane);
                guard.message(Bytes::from(message.to_string()), &mut out).unwrap();
            }
        }
        for lane in ["a", "b"] {
            let events = out.iter().map(|bytes| serde_json::from_slice::<Value>(bytes).unwrap());
            let events: Vec<Value> = events.filter(|event| event["stream_id"] == lane).collect();
            assert_contiguous(&events);
            assert_eq!(types(&events)[1..7], MESSAGE, "round {round}");
        }
    }
}

#[test]
fn events_without_numbers_stay_without() {
    let calls = call(0, "Denied", &["{}"]);
    let numbered = stream(&calls, &json!([]));
    let bare: String = numbered
        .lines()
        .map(|line| line.split_once(",\"sequence_number\":").map_or(line, |(start, _)| start))
        .map(|line| if line.starts_with("data: ") { format!("{line}}}\n") } else { format!("{line}\n") })
        .collect();
    let events = events(&guarded_stream(&bare));
    assert!(events.iter().all(|event| event.get("sequence_number").is_none()));
    assert_eq!(types(&events)[1..7], MESSAGE);
}

#[test]
fn an_answer_says_who_it_is_from_and_what_it_cost() {
    let text = stream(&call(0, "Denied", &["{}"]), &json!([function("Denied", "{}")]));
    let mut guard = guard();
    let mut out = Vec::new();
    guard.write(Bytes::from(text), &mut out).unwrap();
    let facts = guard.facts().clone();
    assert_eq!((facts.id.as_deref(), facts.model.as_deref()), (Some("resp_1"), Some("m")));
    let usage = facts.usage;
    assert_eq!(
        (usage.input, usage.output, usage.cache_read, usage.reasoning),
        (Some(9), Some(5), Some(4), Some(2))
    );
    let blocked = guard.take_blocked();
    assert_eq!(blocked.len(), 1);
    assert_eq!((blocked[0].0.as_str(), blocked[0].1.id.as_str()), ("resp_1", "call_Denied"));
    assert_eq!(blocked[0].1.kind, "function_call");
}

#[test]
fn whole_answers_meet_the_same_verdicts_and_keep_every_other_byte() {
    let body = r#"{ "id":"resp_1", "output":[ {"type":"function_call","id":"fc_1","call_id":"c","name":"NAME","arguments":"{}"} , {"type":"message","content":[]} ],"x":1e0 }"#;
    let benign = body.replace("NAME", "Free");
    assert_eq!(guard().whole(Bytes::from(benign.clone())).unwrap(), benign);
    let edited = guard().whole(Bytes::from(body.replace("NAME", "Denied"))).unwrap();
    let edited = String::from_utf8(edited.to_vec()).unwrap();
    assert!(edited.starts_with(r#"{ "id":"resp_1", "output":[ {"id":"msg_1","type":"message""#), "{edited}");
    assert!(edited.ends_with(r#" , {"type":"message","content":[]} ],"x":1e0 }"#), "{edited}");
    for other in [r#"{"error":{"message":"no"}}"#, "[]", r#"{"output":null}"#] {
        assert_eq!(guard().whole(Bytes::from(other)).unwrap(), other);
    }
    assert!(guard().whole(Bytes::from(r#"{"output":[],"output":[{"type":"function_call"}]}"#)).is_err());
}

fn guard() -> Guard {
    Guard::new(Box::new(Responses::default()), Framing::Events(EVENTS), settings(Names::default()))
}
