//! Recorded answers of every vendor: byte by byte where nothing is denied, without a call where all are.

use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use serde_json::Value;

use super::super::EVENTS;
use super::Responses;
use crate::call::{CallVerdict, Judge, ShellTerms, Start, Tool, ToolCall};
use crate::provider::adapter::Framing;
use crate::provider::answer::Guard;
use crate::provider::answer::testing::{fed, recorded, settings};

/// Denies every call of which the number, counted from one, is a multiple of this; none, where it is zero.
struct Nth {
    denied: usize,
    calls: AtomicUsize,
}

impl Judge for Nth {
    fn denies(&self, _: bool) -> bool {
        true
    }

    fn shell(&self) -> ShellTerms {
        ShellTerms::default()
    }

    fn start(&self, _: &Tool<'_>) -> Start {
        Start::NeedsInput
    }

    fn complete(&self, _: &ToolCall<'_>) -> CallVerdict {
        let number = self.calls.fetch_add(1, Ordering::Relaxed) + 1;
        let is_denied = number.checked_rem(self.denied) == Some(0);
        if is_denied { CallVerdict::builtin("test", "a test says so") } else { CallVerdict::allowed() }
    }
}

/// Recorded streams with their files' names.
fn recordings() -> Vec<(String, String)> {
    let vendors = ["openai-responses", "azure-openai", "xai", "groq", "openrouter", "deepseek"];
    let mut found = Vec::new();
    for path in vendors.into_iter().flat_map(recorded) {
        let name = path.display().to_string();
        let stream = match () {
            () if name.ends_with(".sse") => fs::read_to_string(&path).unwrap(),
            () if name.ends_with(".chunks.txt") => framed(&fs::read_to_string(&path).unwrap()),
            () => continue,
        };
        // Some are of another API, some were recorded because they are broken.
        let is_sound = events(&stream).is_some_and(|events| !events.is_empty());
        if is_sound && stream.contains("\"response.created\"") && stream.len() < 1 << 19 {
            found.push((name, stream));
        }
    }
    found
}

/// One event a line, as a stream. What follows the end belongs to another answer.
fn framed(lines: &str) -> String {
    let mut stream = String::new();
    for line in lines.lines().filter(|line| !line.trim().is_empty()) {
        let Ok(event) = serde_json::from_str::<Value>(line) else { break };
        let kind = event["type"].as_str().unwrap_or_default();
        stream += &format!("event: {kind}\ndata: {line}\n\n");
        if super::ENDS.contains(&kind) {
            break;
        }
    }
    stream
}

fn events(stream: &str) -> Option<Vec<Value>> {
    let data = stream.lines().filter_map(|line| line.strip_prefix("data: "));
    data.filter(|data| data.trim() != "[DONE]").map(|data| serde_json::from_str(data).ok()).collect()
}

fn guard(denied: usize) -> Guard {
    let mut settings = settings(Nth { denied, calls: AtomicUsize::new(0) });
    settings.limits.event_bytes = 8 << 20;
    Guard::new(Box::new(Responses::default()), Framing::Events(EVENTS), settings)
}

fn guarded(stream: &str, denied: usize, piece: usize) -> String {
    let (bytes, result) = fed(guard(denied), stream.as_bytes(), piece);
    assert_eq!(result, Ok(()));
    String::from_utf8(bytes).unwrap()
}

#[test]
fn a_recorded_answer_in_which_nothing_is_denied_goes_on_byte_by_byte() {
    for (name, stream) in recordings() {
        let guarded = guarded(&stream, 0, stream.len());
        let is_canonical = stream.starts_with("event: ") && !stream.contains("[DONE]");
        if is_canonical {
            assert_eq!(guarded, stream, "{name}");
        } else {
            assert_eq!(events(&guarded), events(&stream), "{name}");
        }
    }
}

#[test]
fn a_recorded_answer_in_which_all_is_denied_has_no_call_left_in_any_copy() {
    for (name, stream) in recordings() {
        let guarded = guarded(&stream, 1, stream.len());
        let events = events(&guarded).unwrap();
        for event in &events {
            assert!(!holds_call(event), "{name}: {event}");
        }
        assert_consistent(&name, &stream, &events);
    }
}

#[test]
fn a_recorded_answer_in_which_every_other_call_is_denied_is_still_one_answer_however_it_is_cut() {
    for (name, stream) in recordings() {
        let whole = guarded(&stream, 2, stream.len());
        assert_consistent(&name, &stream, &events(&whole).unwrap());
        let smallest = if stream.len() < 1 << 15 { 1 } else { 61 };
        for piece in [smallest, 1000] {
            assert_eq!(guarded(&stream, 2, piece), whole, "{name} in pieces of {piece}");
        }
    }
}

#[test]
fn recorded_answers_that_are_whole_meet_the_same_verdicts() {
    for (name, body) in whole_recordings() {
        let allowed = guard(0).whole(Bytes::from(body.clone())).unwrap();
        assert_eq!(allowed, body, "{name}");
        let denied = guard(1).whole(Bytes::from(body.clone())).unwrap();
        let (denied, before): (Value, Value) =
            (serde_json::from_slice(&denied).unwrap(), serde_json::from_str(&body).unwrap());
        let items = |answer: &Value| answer["output"].as_array().map_or(0, Vec::len);
        assert_eq!(items(&denied), items(&before), "{name}");
        assert!(!holds_call(&serde_json::json!({ "response": denied })), "{name}");
    }
}

/// Recorded answers that came whole.
fn whole_recordings() -> Vec<(String, String)> {
    let mut found = Vec::new();
    for path in ["openai-responses/live", "openai-responses/vercel"].into_iter().flat_map(recorded) {
        let name = path.display().to_string();
        let is_answer =
            name.ends_with(".response.json") || (name.contains("vercel") && name.ends_with(".json"));
        if is_answer && fs::metadata(&path).unwrap().len() < 1 << 20 {
            let body = fs::read_to_string(&path).unwrap();
            if serde_json::from_str::<Value>(&body).is_ok_and(|body| body["output"].is_array()) {
                found.push((name, body));
            }
        }
    }
    found
}

fn holds_call(event: &Value) -> bool {
    let items =
        [&event["item"]].into_iter().chain(event["response"]["output"].as_array().into_iter().flatten());
    let is_call = |item: &Value| {
        let kind = item["type"].as_str().unwrap_or_default();
        kind.ends_with("_call") || kind == "program" || kind == "mcp_approval_request"
    };
    items.into_iter().any(is_call)
}

/// Numbers without gaps, items that begin once and end once, and the same items in the end.
fn assert_consistent(name: &str, before: &str, events: &[Value]) {
    let numbers = |events: &[Value]| -> Vec<Value> {
        events.iter().map(|event| event["sequence_number"].clone()).collect()
    };
    let before = numbers(&self::events(before).unwrap());
    let first = before[0].as_u64().unwrap_or_default();
    // Some were recorded without numbers, or with some events cut out.
    if before.iter().map(Value::as_u64).eq((first..).take(before.len()).map(Some)) {
        let expected: Vec<Value> = (first..).take(events.len()).map(Value::from).collect();
        assert_eq!(numbers(events), expected, "{name}");
    }
    let of = |kind: &str| {
        let is_it = move |event: &&Value| event["type"] == format!("response.output_item.{kind}");
        events.iter().filter(is_it).map(|event| event["output_index"].clone()).collect::<Vec<Value>>()
    };
    assert_eq!(of("added"), of("done"), "{name}");
    let ended = events.last().unwrap()["response"]["output"].as_array();
    for event in events.iter().filter(|event| event["type"] == "response.output_item.done") {
        let index = event["output_index"].as_u64().unwrap() as usize;
        if let Some(ended) = ended.filter(|ended| !ended.is_empty())
            && let Some(copy) = ended.get(index)
            && event["item"]["type"] == "message"
            && !name.contains("id-rotation")
        {
            assert_eq!(copy["id"], event["item"]["id"], "{name}");
        }
    }
}
