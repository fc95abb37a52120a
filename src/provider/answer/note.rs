//! Writes down what an event may tell of a call.

use serde_json::Value;

use super::call::{Call, Form};
use super::decide::Ruled;
use crate::call::{CallNote, Inputs, Verdict};
use crate::digest::sha256_hex;

/// How a call came to its verdict.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct How {
    pub(super) incomplete: bool,
    /// Its input has come, whole.
    pub(super) has_input: bool,
}

/// The note of a call.
pub(super) fn note(call: Call, verdict: Verdict, how: How, inputs: Inputs) -> CallNote {
    let (input_sha256, input) = if how.has_input && !call.is_over() {
        told(&call.input, call.form == Form::Json, inputs)
    } else {
        (None, None)
    };
    CallNote {
        id: call.id,
        name: call.name,
        namespace: call.namespace,
        kinds_by: call.kinds_by,
        input_bytes: call.bytes as u64,
        input_sha256,
        input,
        verdict,
        hosted: call.hosted,
        incomplete: how.incomplete,
        inside: false,
    }
}

/// The note of a call inside another.
pub(super) fn inner(call: &Call, ruled: Ruled, how: How, inputs: Inputs) -> CallNote {
    let (input_sha256, input) = told(&ruled.input, ruled.is_json, inputs);
    CallNote {
        id: call.id.clone(),
        name: ruled.name,
        namespace: None,
        kinds_by: ruled.kinds_by,
        input_bytes: ruled.input.len() as u64,
        input_sha256,
        input,
        verdict: ruled.verdict,
        hosted: call.hosted,
        incomplete: how.incomplete,
        inside: true,
    }
}

/// SHA-256 in hex and text of an input, as far as they may be told.
fn told(input: &str, is_json: bool, inputs: Inputs) -> (Option<String>, Option<String>) {
    let sha256 = || sha256_hex(input.as_bytes());
    match inputs {
        Inputs::None => (None, None),
        Inputs::Hash => (Some(sha256()), None),
        Inputs::Redacted => (Some(sha256()), Some(redacted(input, is_json))),
        Inputs::Full => (Some(sha256()), Some(input.to_owned())),
    }
}

/// The JSON without what its strings say; of anything else, how long it is.
fn redacted(input: &str, is_json: bool) -> String {
    match serde_json::from_str::<Value>(input) {
        Ok(mut json) if is_json => {
            redact(&mut json);
            json.to_string()
        }
        Ok(_) | Err(_) if input.is_empty() => String::new(),
        Ok(_) | Err(_) => length(input),
    }
}

/// Recursion ends: the reader of JSON goes 128 deep.
fn redact(json: &mut Value) {
    match json {
        Value::String(text) if !text.is_empty() => *text = length(text),
        Value::Array(items) => items.iter_mut().for_each(redact),
        Value::Object(entries) => entries.values_mut().for_each(redact),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn length(text: &str) -> String {
    format!("[{} bytes]", text.len())
}
