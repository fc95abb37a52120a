//! Bedrock: Converse in its own words, and InvokeModel with those of Claude, both in AWS event-stream frames.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use serde_json::{Value, json};

use super::anthropic;
use super::dialect::{Called, Dialect, Heard, HeardCall, Mode, Said, text};
use super::frames::{frame, unframe};

const HOST: &str = "bedrock-runtime.us-east-1.amazonaws.com";
const FRAMES: &str = "application/vnd.amazon.eventstream";

pub(crate) struct Converse;

pub(crate) struct Invoke;

impl Dialect for Converse {
    fn place(&self, mode: Mode) -> Option<(&'static str, &'static str)> {
        Some(match mode {
            Mode::Whole => (HOST, "/model/anthropic.claude-sonnet-4-5-20250929-v1%3A0/converse"),
            Mode::Streamed => (HOST, "/model/anthropic.claude-sonnet-4-5-20250929-v1%3A0/converse-stream"),
        })
    }

    fn request(&self, tools: &[String], _: Mode) -> Value {
        let schema = json!({"json": {"type": "object", "properties": {}}});
        let tool = |name: &String| json!({"toolSpec": {"name": name, "inputSchema": schema}});
        let tools: Vec<Value> = tools.iter().map(tool).collect();
        json!({"messages": [{"role": "user", "content": [{"text": "go"}]}], "toolConfig": {"tools": tools}})
    }

    fn content_type(&self, mode: Mode) -> &'static str {
        if mode == Mode::Whole { "application/json" } else { FRAMES }
    }

    fn answer(&self, said: &Said, mode: Mode) -> Vec<Bytes> {
        if mode == Mode::Whole {
            return vec![answer(said).into()];
        }
        events(said).into_iter().map(|(kind, payload)| frame(kind, payload.to_string().as_bytes())).collect()
    }

    fn hear(&self, body: &[u8], mode: Mode) -> Heard {
        if mode == Mode::Whole { hear_answer(body) } else { hear_events(body) }
    }
}

impl Dialect for Invoke {
    fn place(&self, mode: Mode) -> Option<(&'static str, &'static str)> {
        Some(match mode {
            Mode::Whole => (HOST, "/model/anthropic.claude-sonnet-4-5-20250929-v1%3A0/invoke"),
            Mode::Streamed => {
                (HOST, "/model/anthropic.claude-sonnet-4-5-20250929-v1%3A0/invoke-with-response-stream")
            }
        })
    }

    fn request(&self, tools: &[String], _: Mode) -> Value {
        let mut request = anthropic::request(tools);
        request["anthropic_version"] = "bedrock-2023-05-31".into();
        request
    }

    fn content_type(&self, mode: Mode) -> &'static str {
        if mode == Mode::Whole { "application/json" } else { FRAMES }
    }

    fn answer(&self, said: &Said, mode: Mode) -> Vec<Bytes> {
        if mode == Mode::Whole {
            return vec![anthropic::message(said).into()];
        }
        let chunk = |event: String| {
            let payload = json!({"bytes": BASE64_STANDARD.encode(event), "p": "abcdef"});
            frame("chunk", payload.to_string().as_bytes())
        };
        anthropic::events(said).into_iter().map(chunk).collect()
    }

    fn hear(&self, body: &[u8], mode: Mode) -> Heard {
        if mode == Mode::Whole {
            return anthropic::hear_message(body);
        }
        let event = |(kind, payload): (String, Value)| -> Value {
            assert_eq!(kind, "chunk", "{payload}");
            serde_json::from_slice(&BASE64_STANDARD.decode(text(&payload["bytes"])).unwrap()).unwrap()
        };
        anthropic::hear_events(&unframe(body).into_iter().map(event).collect::<Vec<_>>())
    }
}

fn answer(said: &Said) -> String {
    let text = json!({"text": said.text});
    let calls: String = said.calls.iter().map(|call| format!(",{}", block(call))).collect();
    let stop = stop(said);
    format!(
        r#"{{"output":{{"message":{{"role":"assistant","content":[{text}{calls}]}}}},"stopReason":"{stop}","usage":{{"inputTokens":7,"outputTokens":9,"totalTokens":16}},"metrics":{{"latencyMs":5}}}}"#
    )
}

fn block(call: &Called) -> String {
    let (id, name, input) = (&call.id, json!(call.full_name()), call.input);
    format!(r#"{{"toolUse":{{"toolUseId":"{id}","name":{name},"input":{input}}}}}"#)
}

fn events(said: &Said) -> Vec<(&'static str, Value)> {
    let delta = |index: usize, delta: Value| {
        ("contentBlockDelta", json!({"contentBlockIndex": index, "delta": delta, "p": "abc"}))
    };
    let stop_at = |index: usize| ("contentBlockStop", json!({"contentBlockIndex": index, "p": "ab"}));
    let mut events = vec![
        ("messageStart", json!({"role": "assistant", "p": "abcd"})),
        delta(0, json!({"text": said.text})),
        stop_at(0),
    ];
    for (index, call) in (1..).zip(&said.calls) {
        let start = json!({"toolUse": {"toolUseId": call.id, "name": call.full_name()}});
        events.push(("contentBlockStart", json!({"contentBlockIndex": index, "start": start, "p": "a"})));
        events.extend(
            call.fragments().into_iter().map(|input| delta(index, json!({"toolUse": {"input": input}}))),
        );
        events.push(stop_at(index));
    }
    let usage = json!({"inputTokens": 7, "outputTokens": 9, "totalTokens": 16});
    events.push(("messageStop", json!({"stopReason": stop(said), "p": "abcde"})));
    events.push(("metadata", json!({"usage": usage, "metrics": {"latencyMs": 5}, "p": "abc"})));
    events
}

fn stop(said: &Said) -> &'static str {
    if said.calls.is_empty() { "end_turn" } else { "tool_use" }
}

fn hear_answer(body: &[u8]) -> Heard {
    let answer: Value = serde_json::from_slice(body).unwrap();
    let mut heard = Heard { ends_in_calls: Some(answer["stopReason"] == "tool_use"), ..Heard::default() };
    for block in answer["output"]["message"]["content"].as_array().unwrap() {
        match block.get("toolUse") {
            Some(call) => {
                let input = call["input"].to_string();
                heard.calls.push(HeardCall::new(&call["toolUseId"], &call["name"], &input));
            }
            None => heard.text.push_str(&text(&block["text"])),
        }
    }
    heard
}

/// Blocks come one after the other; those of text have no start.
fn hear_events(body: &[u8]) -> Heard {
    let mut heard = Heard::default();
    let (mut blocks, mut open) = (0, None);
    let events = unframe(body);
    for (kind, event) in &events {
        if kind.starts_with("contentBlock") {
            assert_eq!(event["contentBlockIndex"], blocks, "{event}");
        }
        match kind.as_str() {
            "contentBlockStart" => open = Some((event["start"]["toolUse"].clone(), String::new())),
            "contentBlockDelta" => match (event["delta"].get("text"), &mut open) {
                (Some(said), None) => heard.text.push_str(&text(said)),
                (None, Some((_, input))) => input.push_str(&text(&event["delta"]["toolUse"]["input"])),
                _ => panic!("{event}"),
            },
            "contentBlockStop" => {
                blocks += 1;
                if let Some((call, input)) = open.take() {
                    heard.calls.push(HeardCall::new(&call["toolUseId"], &call["name"], &input));
                }
            }
            "messageStop" => heard.ends_in_calls = Some(event["stopReason"] == "tool_use"),
            _ => {}
        }
    }
    assert_eq!(events.last().unwrap().0, "metadata");
    heard
}
