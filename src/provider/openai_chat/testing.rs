//! What tests of streams share: chunks made into a stream, and what a client makes of one.

use std::collections::BTreeMap;

use serde_json::Value;

use super::FORM;
use super::transcript::ChatTranscript;
use crate::call::Judge;
use crate::provider::adapter::Framing;
use crate::provider::answer::testing::{fed, settings};
use crate::provider::answer::{BrokenAnswer, Guard};

/// A stream of these chunks, with the marker at its end.
pub(super) fn stream(chunks: &[impl AsRef<str>]) -> String {
    let events: String = chunks.iter().map(|chunk| format!("data: {}\n\n", chunk.as_ref())).collect();
    events + "data: [DONE]\n\n"
}

/// What a stream becomes under a judge, fed in pieces of so many bytes.
pub(super) fn judged(
    stream: &str,
    judge: impl Judge + 'static,
    piece: usize,
) -> (String, Result<(), BrokenAnswer>) {
    let guard = Guard::new(Box::new(ChatTranscript::default()), Framing::Events(FORM), settings(judge));
    let (out, result) = fed(guard, stream.as_bytes(), piece);
    (String::from_utf8(out).unwrap(), result)
}

/// What a client has of one choice.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Choice {
    pub(super) role: String,
    pub(super) content: String,
    /// By the index under which the client has it.
    pub(super) calls: BTreeMap<u64, Called>,
    pub(super) finish: String,
}

#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Called {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) input: String,
}

impl Choice {
    /// Its calls, whose indices are contiguous.
    pub(super) fn contiguous(&self) -> Vec<Called> {
        let indices: Vec<u64> = self.calls.keys().copied().collect();
        assert_eq!(indices, (0..self.calls.len() as u64).collect::<Vec<_>>());
        self.calls.values().cloned().collect()
    }
}

/// The chunks of a stream.
pub(super) fn chunks(stream: &str) -> Vec<Value> {
    let lines = stream.lines().filter_map(|line| line.strip_prefix("data: "));
    lines.filter(|data| *data != "[DONE]").map(|data| serde_json::from_str(data).unwrap()).collect()
}

/// What a client puts together that goes by indices; a call without one is its own.
pub(super) fn read(stream: &str) -> BTreeMap<u64, Choice> {
    let mut choices: BTreeMap<u64, Choice> = BTreeMap::new();
    for chunk in chunks(stream) {
        for value in chunk["choices"].as_array().into_iter().flatten() {
            let choice = choices.entry(value["index"].as_u64().unwrap_or(0)).or_default();
            add(choice, value);
        }
    }
    choices
}

fn add(choice: &mut Choice, value: &Value) {
    let delta = &value["delta"];
    if let Some(role) = delta["role"].as_str() {
        choice.role = role.to_owned();
    }
    choice.content += delta["content"].as_str().unwrap_or("");
    if let Some(finish) = value["finish_reason"].as_str() {
        choice.finish = finish.to_owned();
    }
    for item in delta["tool_calls"].as_array().into_iter().flatten() {
        let index = item["index"].as_u64().unwrap_or(choice.calls.len() as u64);
        let body = if item["custom"].is_object() { &item["custom"] } else { &item["function"] };
        let call = choice.calls.entry(index).or_default();
        call.id += item["id"].as_str().unwrap_or("");
        call.name += body["name"].as_str().unwrap_or("");
        call.input += body["arguments"].as_str().or(body["input"].as_str()).unwrap_or("");
    }
    if delta["function_call"].is_object() {
        let call = choice.calls.entry(0).or_default();
        call.name += delta["function_call"]["name"].as_str().unwrap_or("");
        call.input += delta["function_call"]["arguments"].as_str().unwrap_or("");
    }
}
