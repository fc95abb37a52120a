//! OpenAI Chat Completions.

use bytes::Bytes;
use serde_json::{Value, json};

use super::dialect::{Dialect, Heard, HeardCall, Mode, Said, json as parse, server_sent, text};

pub(crate) struct Chat;

impl Dialect for Chat {
    fn place(&self, _: Mode) -> Option<(&'static str, &'static str)> {
        Some(("api.openai.com", "/v1/chat/completions"))
    }

    fn request(&self, tools: &[String], mode: Mode) -> Value {
        let function =
            |name: &String| json!({"name": name, "parameters": {"type": "object", "properties": {}}});
        let tool = |name: &String| json!({"type": "function", "function": function(name)});
        let tools: Vec<Value> = tools.iter().map(tool).collect();
        let stream = mode == Mode::Streamed;
        json!({"model": "gpt-5", "stream": stream, "messages": [{"role": "user", "content": "go"}], "tools": tools})
    }

    fn content_type(&self, mode: Mode) -> &'static str {
        if mode == Mode::Whole { "application/json" } else { "text/event-stream" }
    }

    fn answer(&self, said: &Said, mode: Mode) -> Vec<Bytes> {
        if mode == Mode::Whole {
            return vec![completion(said).into()];
        }
        let event = |data: String| format!("data: {data}\n\n").into();
        chunks(said).into_iter().map(event).collect()
    }

    fn hear(&self, body: &[u8], mode: Mode) -> Heard {
        if mode == Mode::Whole { hear_completion(body) } else { hear_chunks(body) }
    }
}

fn completion(said: &Said) -> String {
    let calls: Vec<Value> = said
        .calls
        .iter()
        .map(|call| {
            let function = json!({"name": call.full_name(), "arguments": call.input});
            json!({"id": call.id, "type": "function", "function": function})
        })
        .collect();
    let mut message = json!({"role": "assistant", "content": said.text});
    if !calls.is_empty() {
        message["tool_calls"] = calls.into();
    }
    let choice = json!({"index": 0, "message": message, "logprobs": null, "finish_reason": finish(said)});
    let usage = json!({"prompt_tokens": 7, "completion_tokens": 9, "total_tokens": 16});
    json!({"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "gpt-5", "choices": [choice], "usage": usage})
        .to_string()
}

fn chunks(said: &Said) -> Vec<String> {
    let mut deltas = vec![json!({"role": "assistant", "content": ""}), json!({"content": said.text})];
    for (index, call) in said.calls.iter().enumerate() {
        let function = json!({"name": call.full_name(), "arguments": ""});
        let start = json!({"index": index, "id": call.id, "type": "function", "function": function});
        deltas.push(json!({"tool_calls": [start]}));
        for fragment in call.fragments() {
            deltas.push(json!({"tool_calls": [{"index": index, "function": {"arguments": fragment}}]}));
        }
    }
    let chunk = |delta: &Value, finish: Option<&str>| {
        let choice = json!({"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish});
        json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "gpt-5", "choices": [choice]})
            .to_string()
    };
    let mut chunks: Vec<String> = deltas.iter().map(|delta| chunk(delta, None)).collect();
    chunks.push(chunk(&json!({}), Some(finish(said))));
    chunks.push("[DONE]".to_owned());
    chunks
}

fn finish(said: &Said) -> &'static str {
    if said.calls.is_empty() { "stop" } else { "tool_calls" }
}

fn hear_completion(body: &[u8]) -> Heard {
    let completion: Value = serde_json::from_slice(body).unwrap();
    let choice = &completion["choices"][0];
    let message = &choice["message"];
    let none = Vec::new();
    let calls = message["tool_calls"].as_array().unwrap_or(&none).iter().map(hear_call);
    Heard {
        text: text(&message["content"]),
        calls: calls.collect(),
        ends_in_calls: Some(choice["finish_reason"] == "tool_calls"),
    }
}

fn hear_chunks(body: &[u8]) -> Heard {
    let mut heard = Heard::default();
    let mut calls: Vec<Value> = Vec::new();
    let mut events = server_sent(body, "\n");
    assert_eq!(events.pop(), Some((None, "[DONE]".to_owned())));
    for (_, data) in events {
        let chunk = parse(&data);
        let Some(choice) = chunk["choices"].get(0) else { continue };
        heard.text.push_str(choice["delta"]["content"].as_str().unwrap_or_default());
        for call in choice["delta"]["tool_calls"].as_array().unwrap_or(&Vec::new()) {
            hear_delta(call, &mut calls);
        }
        if let Some(finish) = choice["finish_reason"].as_str() {
            heard.ends_in_calls = Some(finish == "tool_calls");
        }
    }
    heard.calls = calls.iter().map(hear_call).collect();
    heard
}

/// A call starts at the next index, or continues the one of its index.
fn hear_delta(delta: &Value, calls: &mut Vec<Value>) {
    let index = usize::try_from(delta["index"].as_u64().unwrap()).unwrap();
    assert!(index <= calls.len(), "an index is left out: {delta}");
    if index == calls.len() {
        calls.push(delta.clone());
        return;
    }
    let more = delta["function"]["arguments"].as_str().unwrap_or_default();
    let whole = format!("{}{more}", text(&calls[index]["function"]["arguments"]));
    calls[index]["function"]["arguments"] = whole.into();
}

fn hear_call(call: &Value) -> HeardCall {
    HeardCall::new(&call["id"], &call["function"]["name"], &text(&call["function"]["arguments"]))
}
