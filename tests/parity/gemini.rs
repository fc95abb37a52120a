//! Gemini generateContent and streamGenerateContent, as server-sent events and as a JSON array.

use bytes::Bytes;
use serde_json::{Value, json};

use super::dialect::{Called, Dialect, Heard, HeardCall, Mode, Said, json as parse, server_sent, text};

const HOST: &str = "generativelanguage.googleapis.com";

/// Its streams are server-sent events.
pub(crate) struct Sse;

/// Its streams are one JSON array, whose elements come one after the other.
pub(crate) struct Array;

impl Dialect for Sse {
    fn place(&self, mode: Mode) -> Option<(&'static str, &'static str)> {
        Some(match mode {
            Mode::Whole => (HOST, "/v1beta/models/gemini-2.5-pro:generateContent"),
            Mode::Streamed => (HOST, "/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse"),
        })
    }

    fn request(&self, tools: &[String], _: Mode) -> Value {
        request(tools)
    }

    fn content_type(&self, mode: Mode) -> &'static str {
        if mode == Mode::Whole { "application/json" } else { "text/event-stream" }
    }

    fn answer(&self, said: &Said, mode: Mode) -> Vec<Bytes> {
        if mode == Mode::Whole {
            let parts: Vec<String> = parts(said);
            return vec![chunk(&parts.join(","), true).into()];
        }
        chunks(said).into_iter().map(|data| format!("data: {data}\r\n\r\n").into()).collect()
    }

    fn hear(&self, body: &[u8], mode: Mode) -> Heard {
        if mode == Mode::Whole {
            return hear(&[serde_json::from_slice(body).unwrap()]);
        }
        let chunk = |(name, data): (Option<String>, String)| {
            assert_eq!(name, None);
            parse(&data)
        };
        hear(&server_sent(body, "\r\n").into_iter().map(chunk).collect::<Vec<_>>())
    }
}

impl Dialect for Array {
    fn place(&self, mode: Mode) -> Option<(&'static str, &'static str)> {
        (mode == Mode::Streamed).then_some((HOST, "/v1beta/models/gemini-2.5-pro:streamGenerateContent"))
    }

    fn request(&self, tools: &[String], _: Mode) -> Value {
        request(tools)
    }

    fn content_type(&self, _: Mode) -> &'static str {
        "application/json"
    }

    fn answer(&self, said: &Said, _: Mode) -> Vec<Bytes> {
        let chunks = chunks(said).join("\n,\r\n");
        let body = format!("[{chunks}\n]");
        body.as_bytes().chunks(97).map(Bytes::copy_from_slice).collect()
    }

    fn hear(&self, body: &[u8], _: Mode) -> Heard {
        let chunks: Value = serde_json::from_slice(body).unwrap();
        hear(chunks.as_array().unwrap())
    }
}

fn request(tools: &[String]) -> Value {
    let parameters = json!({"type": "OBJECT", "properties": {}});
    let declare = |name: &String| json!({"name": name, "parameters": parameters});
    let declarations: Vec<Value> = tools.iter().map(declare).collect();
    let contents = json!([{"role": "user", "parts": [{"text": "go"}]}]);
    json!({"contents": contents, "tools": [{"functionDeclarations": declarations}]})
}

/// A chunk for the text, one for each call, and one that ends it.
fn chunks(said: &Said) -> Vec<String> {
    let mut chunks: Vec<String> = parts(said).iter().map(|part| chunk(part, false)).collect();
    chunks.push(chunk(r#"{"text":""}"#, true));
    chunks
}

fn parts(said: &Said) -> Vec<String> {
    let text = json!({"text": said.text}).to_string();
    std::iter::once(text).chain(said.calls.iter().map(part)).collect()
}

fn part(call: &Called) -> String {
    let (id, name, args) = (&call.id, json!(call.full_name()), call.input);
    format!(r#"{{"functionCall":{{"id":"{id}","name":{name},"args":{args}}}}}"#)
}

fn chunk(parts: &str, last: bool) -> String {
    let finish = if last { r#""finishReason":"STOP","# } else { "" };
    format!(
        r#"{{"candidates":[{{"content":{{"parts":[{parts}],"role":"model"}},{finish}"index":0}}],"usageMetadata":{{"promptTokenCount":7,"candidatesTokenCount":9,"totalTokenCount":16}},"modelVersion":"gemini-2.5-pro","responseId":"r1"}}"#
    )
}

/// It says STOP whether there are calls or not.
fn hear(chunks: &[Value]) -> Heard {
    let mut heard = Heard::default();
    for chunk in chunks {
        let parts = chunk["candidates"][0]["content"]["parts"].as_array().unwrap();
        assert!(!parts.is_empty(), "{chunk}");
        for part in parts {
            match part.get("functionCall") {
                Some(call) => {
                    let input = call["args"].to_string();
                    heard.calls.push(HeardCall::new(&call["id"], &call["name"], &input));
                }
                None => heard.text.push_str(&text(&part["text"])),
            }
        }
    }
    let last = chunks.last().unwrap();
    assert_eq!(last["candidates"][0]["finishReason"], "STOP");
    heard
}
