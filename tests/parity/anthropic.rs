//! Anthropic Messages: the events of a stream, which Bedrock frames otherwise, and the whole message.

use bytes::Bytes;
use serde_json::{Value, json};

use super::dialect::{Called, Dialect, Heard, HeardCall, Mode, Said, json as parse, server_sent, text};

pub(crate) struct Anthropic;

impl Dialect for Anthropic {
    fn place(&self, _: Mode) -> Option<(&'static str, &'static str)> {
        Some(("api.anthropic.com", "/v1/messages"))
    }

    fn request(&self, tools: &[String], mode: Mode) -> Value {
        let mut request = request(tools);
        request["model"] = "claude-sonnet-5".into();
        request["stream"] = (mode == Mode::Streamed).into();
        request
    }

    fn content_type(&self, mode: Mode) -> &'static str {
        if mode == Mode::Whole { "application/json" } else { "text/event-stream" }
    }

    fn answer(&self, said: &Said, mode: Mode) -> Vec<Bytes> {
        if mode == Mode::Whole {
            return vec![message(said).into()];
        }
        let event = |data: String| {
            let name = text(&parse(&data)["type"]);
            format!("event: {name}\ndata: {data}\n\n").into()
        };
        events(said).into_iter().map(event).collect()
    }

    fn hear(&self, body: &[u8], mode: Mode) -> Heard {
        if mode == Mode::Whole {
            return hear_message(body);
        }
        let named = server_sent(body, "\n").into_iter().map(|(name, data)| {
            let data = parse(&data);
            assert_eq!(name.as_deref(), data["type"].as_str());
            data
        });
        hear_events(&named.collect::<Vec<_>>())
    }
}

/// A request's body, without what stands in the path at Bedrock.
pub(crate) fn request(tools: &[String]) -> Value {
    let tool = |name: &String| json!({"name": name, "input_schema": {"type": "object", "properties": {}}});
    let tools: Vec<Value> = tools.iter().map(tool).collect();
    json!({"max_tokens": 64, "messages": [{"role": "user", "content": "go"}], "tools": tools})
}

/// The message, whole.
pub(crate) fn message(said: &Said) -> String {
    let blocks: String = said.calls.iter().map(|call| format!(",{}", block(call, call.input))).collect();
    let text = json!({"type": "text", "text": said.text});
    let stop = stop(said);
    format!(
        r#"{{"id":"msg_1","type":"message","role":"assistant","model":"claude-sonnet-5","content":[{text}{blocks}],"stop_reason":"{stop}","stop_sequence":null,"usage":{{"input_tokens":7,"output_tokens":9}}}}"#
    )
}

/// The events of a stream, each a JSON object.
pub(crate) fn events(said: &Said) -> Vec<String> {
    let mut events = vec![
        r#"{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude-sonnet-5","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":7,"output_tokens":1}}}"#.to_owned(),
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#.to_owned(),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": said.text}}).to_string(),
        r#"{"type":"content_block_stop","index":0}"#.to_owned(),
    ];
    for (index, call) in (1..).zip(&said.calls) {
        let start = block(call, "{}");
        events.push(format!(r#"{{"type":"content_block_start","index":{index},"content_block":{start}}}"#));
        for fragment in call.fragments() {
            let delta = json!({"type": "input_json_delta", "partial_json": fragment});
            events.push(json!({"type": "content_block_delta", "index": index, "delta": delta}).to_string());
        }
        events.push(format!(r#"{{"type":"content_block_stop","index":{index}}}"#));
    }
    let delta = json!({"stop_reason": stop(said), "stop_sequence": null});
    events.push(json!({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 9}}).to_string());
    events.push(r#"{"type":"message_stop"}"#.to_owned());
    events
}

/// A toolset is what Messages has for a namespace.
fn block(call: &Called, input: &str) -> String {
    let toolset = call.namespace.map_or_else(String::new, |name| format!(r#""toolset_name":"{name}","#));
    let (id, name) = (&call.id, json!(call.name));
    format!(r#"{{"type":"tool_use","id":"{id}","name":{name},{toolset}"input":{input}}}"#)
}

fn stop(said: &Said) -> &'static str {
    if said.calls.is_empty() { "end_turn" } else { "tool_use" }
}

/// Reads the message, whole.
pub(crate) fn hear_message(body: &[u8]) -> Heard {
    let message: Value = serde_json::from_slice(body).unwrap();
    let mut heard = Heard::default();
    for block in message["content"].as_array().unwrap() {
        hear_block(block, &block["input"].to_string(), &mut heard);
    }
    heard.ends_in_calls = Some(message["stop_reason"] == "tool_use");
    heard
}

/// Reads the events of a stream: indices are contiguous, each block is one after the other, and there is an end.
pub(crate) fn hear_events(events: &[Value]) -> Heard {
    let mut heard = Heard::default();
    let (mut blocks, mut open) = (0, None);
    for event in events {
        match event["type"].as_str().unwrap() {
            "content_block_start" => {
                assert_eq!(event["index"], blocks, "{event}");
                assert!(open.is_none(), "{event}");
                open = Some((event["content_block"].clone(), String::new()));
            }
            "content_block_delta" => {
                assert_eq!(event["index"], blocks, "{event}");
                let (_, content) = open.as_mut().unwrap();
                let delta = &event["delta"];
                content.push_str(&text(if delta["type"] == "text_delta" {
                    &delta["text"]
                } else {
                    &delta["partial_json"]
                }));
            }
            "content_block_stop" => {
                let (mut block, content) = open.take().unwrap();
                if block["type"] == "text" {
                    block["text"] = content.clone().into();
                }
                hear_block(&block, &content, &mut heard);
                blocks += 1;
            }
            "message_delta" => heard.ends_in_calls = Some(event["delta"]["stop_reason"] == "tool_use"),
            _ => {}
        }
    }
    assert_eq!(events.last().unwrap()["type"], "message_stop");
    heard
}

fn hear_block(block: &Value, input: &str, heard: &mut Heard) {
    if block["type"] == "text" {
        heard.text.push_str(&text(&block["text"]));
        return;
    }
    assert_eq!(block["type"], "tool_use", "{block}");
    heard.calls.push(HeardCall::new(&block["id"], &block["name"], input).within(&block["toolset_name"]));
}
