//! OpenAI Responses: the events, which a WebSocket carries too, and the whole response.

use bytes::Bytes;
use serde_json::{Value, json};

use super::dialect::{Called, Dialect, Heard, HeardCall, Mode, Said, json as parse, server_sent, text};

pub(crate) const HOST: &str = "api.openai.com";
pub(crate) const PATH: &str = "/v1/responses";

pub(crate) struct Responses;

impl Dialect for Responses {
    fn place(&self, _: Mode) -> Option<(&'static str, &'static str)> {
        Some((HOST, PATH))
    }

    fn request(&self, tools: &[String], mode: Mode) -> Value {
        let tool = |name: &String| json!({"type": "function", "name": name, "parameters": {"type": "object", "properties": {}}});
        let tools: Vec<Value> = tools.iter().map(tool).collect();
        json!({"model": "gpt-5", "stream": mode == Mode::Streamed, "input": "go", "tools": tools})
    }

    fn content_type(&self, mode: Mode) -> &'static str {
        if mode == Mode::Whole { "application/json" } else { "text/event-stream" }
    }

    fn answer(&self, said: &Said, mode: Mode) -> Vec<Bytes> {
        if mode == Mode::Whole {
            return vec![response(said, "completed").to_string().into()];
        }
        let event = |data: Value| format!("event: {}\ndata: {data}\n\n", text(&data["type"])).into();
        events(said).into_iter().map(event).collect()
    }

    fn hear(&self, body: &[u8], mode: Mode) -> Heard {
        if mode == Mode::Whole {
            return hear_response(&serde_json::from_slice(body).unwrap());
        }
        let named = server_sent(body, "\n").into_iter().map(|(name, data)| {
            let data = parse(&data);
            assert_eq!(name.as_deref(), data["type"].as_str());
            data
        });
        hear_events(&named.collect::<Vec<_>>())
    }
}

/// The events of a stream, numbered.
pub(crate) fn events(said: &Said) -> Vec<Value> {
    let mut events = vec![
        json!({"type": "response.created", "response": response(said, "in_progress")}),
        json!({"type": "response.in_progress", "response": response(said, "in_progress")}),
    ];
    message_events(said, &mut events);
    for (index, call) in (1..).zip(&said.calls) {
        call_events(index, call, &mut events);
    }
    events.push(json!({"type": "response.completed", "response": response(said, "completed")}));
    for (number, event) in events.iter_mut().enumerate() {
        event["sequence_number"] = number.into();
    }
    events
}

fn message_events(said: &Said, events: &mut Vec<Value>) {
    let part = |text: &str| json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []});
    let at = json!({"item_id": "msg_1", "output_index": 0, "content_index": 0});
    let item = json!({"id": "msg_1", "type": "message", "status": "in_progress", "role": "assistant", "content": []});
    let mut push = |name: &str, mut event: Value, more: Value| {
        event["type"] = format!("response.{name}").into();
        event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        events.push(event);
    };
    push("output_item.added", json!({"output_index": 0}), json!({"item": item}));
    push("content_part.added", at.clone(), json!({"part": part("")}));
    push("output_text.delta", at.clone(), json!({"delta": said.text, "logprobs": []}));
    push("output_text.done", at.clone(), json!({"text": said.text, "logprobs": []}));
    push("content_part.done", at, json!({"part": part(said.text)}));
    push("output_item.done", json!({"output_index": 0}), json!({"item": message(said)}));
}

fn call_events(index: usize, call: &Called, events: &mut Vec<Value>) {
    let (id, name) = (item_id(call), call.name);
    let added = item(call, "in_progress", "");
    events.push(json!({"type": "response.output_item.added", "output_index": index, "item": added}));
    for delta in call.fragments() {
        events.push(json!({
            "type": "response.function_call_arguments.delta", "item_id": id, "output_index": index, "delta": delta,
        }));
    }
    events.push(json!({
        "type": "response.function_call_arguments.done", "item_id": id, "output_index": index, "name": name,
        "arguments": call.input,
    }));
    let done = item(call, "completed", call.input);
    events.push(json!({"type": "response.output_item.done", "output_index": index, "item": done}));
}

/// The response; one in progress has no items yet.
fn response(said: &Said, status: &str) -> Value {
    let items = said.calls.iter().map(|call| item(call, "completed", call.input));
    let output: Vec<Value> = std::iter::once(message(said)).chain(items).collect();
    let usage = json!({
        "input_tokens": 7, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 9,
        "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 16,
    });
    let mut response = json!({
        "id": "resp_1", "object": "response", "created_at": 1, "status": status, "error": null, "model": "gpt-5",
        "output": [], "parallel_tool_calls": true, "tool_choice": "auto", "tools": [], "usage": null,
    });
    if status == "completed" {
        response["output"] = output.into();
        response["usage"] = usage;
    }
    response
}

fn message(said: &Said) -> Value {
    let part = json!({"type": "output_text", "text": said.text, "annotations": [], "logprobs": []});
    json!({"id": "msg_1", "type": "message", "status": "completed", "role": "assistant", "content": [part]})
}

fn item(call: &Called, status: &str, arguments: &str) -> Value {
    let mut item = json!({
        "id": item_id(call), "type": "function_call", "status": status, "call_id": call.id, "name": call.name,
        "arguments": arguments,
    });
    if let Some(namespace) = call.namespace {
        item["namespace"] = namespace.into();
    }
    item
}

fn item_id(call: &Called) -> String {
    format!("fc_{}", call.id)
}

fn hear_response(response: &Value) -> Heard {
    assert_eq!(response["status"], "completed");
    let mut heard = Heard::default();
    for item in response["output"].as_array().unwrap() {
        hear_item(item, &mut heard);
    }
    heard
}

/// Reads the events of a stream: numbers are contiguous, every item is added and done, and all copies agree.
pub(crate) fn hear_events(events: &[Value]) -> Heard {
    let (mut done, mut added, mut text_so_far) = (Vec::new(), 0, String::new());
    for (number, event) in events.iter().enumerate() {
        assert_eq!(event["sequence_number"], number, "{event}");
        match event["type"].as_str().unwrap() {
            "response.output_item.added" => {
                assert_eq!(event["output_index"], added, "{event}");
                added += 1;
            }
            "response.output_item.done" => done.push(event["item"].clone()),
            "response.output_text.delta" => text_so_far.push_str(&text(&event["delta"])),
            _ => {}
        }
    }
    let last = events.last().unwrap();
    assert_eq!(last["type"], "response.completed", "{last}");
    assert_eq!(last["response"]["output"], Value::Array(done), "the copies agree");
    let heard = hear_response(&last["response"]);
    assert_eq!(heard.text, text_so_far, "the copies agree");
    heard
}

fn hear_item(item: &Value, heard: &mut Heard) {
    if item["type"] == "message" {
        for part in item["content"].as_array().unwrap() {
            heard.text.push_str(&text(&part["text"]));
        }
        return;
    }
    assert_eq!(item["type"], "function_call", "{item}");
    let call = HeardCall::new(&item["call_id"], &item["name"], &text(&item["arguments"]));
    heard.calls.push(call.within(&item["namespace"]));
}
