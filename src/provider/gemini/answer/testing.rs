//! What tests of answers need: streams in both framings, and what a client makes of a stream.

use serde_json::Value;

use super::GeminiTranscript;
use crate::call::Judge;
use crate::provider::adapter::Framing;
use crate::provider::answer::testing::{fed, settings};
use crate::provider::answer::{BrokenAnswer, Guard};
use crate::provider::gemini::EVENTS;

pub(super) fn guard(judge: impl Judge + 'static, framing: Framing) -> Guard {
    Guard::new(Box::new(GeminiTranscript::default()), framing, settings(judge))
}

/// What a stream of events or an array becomes, which comes in pieces of so many bytes.
pub(super) fn guarded(
    judge: impl Judge + 'static,
    stream: &str,
    piece: usize,
) -> (String, Result<(), BrokenAnswer>) {
    let framing = if stream.starts_with('[') { Framing::Array } else { Framing::Events(EVENTS) };
    let (out, result) = fed(guard(judge, framing), stream.as_bytes(), piece.max(1));
    (String::from_utf8(out).unwrap(), result)
}

/// Chunks as server-sent events, as Google frames them.
pub(super) fn events<S: AsRef<str>>(chunks: &[S]) -> String {
    chunks.iter().map(|chunk| format!("data: {}\r\n\r\n", chunk.as_ref())).collect()
}

/// Chunks as an array, as Google frames it.
pub(super) fn array<S: AsRef<str>>(chunks: &[S]) -> String {
    format!("[{}\n]", chunks.iter().map(AsRef::as_ref).collect::<Vec<_>>().join("\n,\r\n"))
}

/// The chunks of a stream in either framing.
pub(super) fn chunks(stream: &str) -> Vec<Value> {
    if stream.starts_with('[') {
        return serde_json::from_str(stream).unwrap();
    }
    let data = stream.lines().filter_map(|line| line.strip_prefix("data: "));
    data.map(|data| serde_json::from_str(data).unwrap()).collect()
}

/// The names of calls that a client finds, having checked what clients rely on: content is never without parts, no
/// part is empty, and no piece of a call comes without one.
pub(super) fn calls(chunks: &[Value]) -> Vec<String> {
    let mut found = Vec::new();
    let mut is_open = false;
    for parts in chunks.iter().filter_map(|chunk| chunk.pointer("/candidates/0/content/parts")) {
        assert_ne!(parts.as_array().map(Vec::len), Some(0));
        for part in parts.as_array().unwrap() {
            assert!(part.as_object().is_some_and(|part| !part.is_empty()), "{part}");
            let Some(call) = part.get("functionCall") else { continue };
            if let Some(name) = call.get("name").and_then(Value::as_str) {
                found.push(name.to_owned());
                is_open = call.get("willContinue").is_some();
                continue;
            }
            assert!(is_open, "a piece without a call: {part}");
            is_open = call.as_object().is_some_and(|call| !call.is_empty());
        }
    }
    found
}
