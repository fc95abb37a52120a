//! Finds the calls inside a call: what wraps several calls in one, and scripts that call tools.

use serde_json::{Map, Value};

use super::script::{self, Script};
use crate::call::Input;

/// Names of tools whose input is a list of calls: `{"tool_uses": [{"recipient_name", "parameters"}]}`, and
/// `{"tool_calls": [{"tool", "parameters"}]}`.
const WRAPPERS: &[&str] = &["parallel", "multi_tool_use.parallel", "batch"];

/// The tool of code mode, whose input is a script.
const SCRIPT: &str = "exec";

/// What a call has in it.
pub(super) enum Nested {
    /// It is no wrapper.
    None,
    Calls(Vec<Inner>),
    /// It is a script.
    Script(Script),
    /// It calls tools, and nobody can say which.
    Unknown(&'static str),
    /// It is a script of which nobody can say what is code in it.
    Unread(&'static str),
}

/// A call inside another.
pub(super) struct Inner {
    pub(super) name: String,
    /// A string is the input of a custom tool.
    pub(super) input: Value,
}

/// Whether a call of this name may have others in it, so that its name alone does not decide.
pub(in crate::provider) fn wraps(name: &str) -> bool {
    WRAPPERS.contains(&name) || name == SCRIPT
}

/// The calls inside a call.
pub(super) fn calls(name: &str, input: Input<'_>) -> Nested {
    match input {
        Input::Text(text) if name == SCRIPT => script::read(text).map_or_else(Nested::Unread, Nested::Script),
        Input::Json(json) if WRAPPERS.contains(&name) => wrapped(json),
        Input::Text(_) | Input::Json(_) => Nested::None,
    }
}

fn wrapped(json: &Value) -> Nested {
    let uses = match (json.get("tool_uses"), json.get("tool_calls")) {
        (Some(uses), None) | (None, Some(uses)) => uses,
        (None, None) => return Nested::None,
        // Every agent reads the one that it knows.
        (Some(_), Some(_)) => return Nested::Unknown("A call has two lists of calls in it"),
    };
    let calls = uses.as_array().and_then(|uses| uses.iter().map(inner).collect::<Option<Vec<_>>>());
    calls.map_or(Nested::Unknown("The list of calls cannot be understood"), Nested::Calls)
}

fn inner(one: &Value) -> Option<Inner> {
    let text = |key| one.get(key).and_then(Value::as_str);
    let name = match (one.get("recipient_name"), one.get("tool")) {
        (Some(_), None) => text("recipient_name")?,
        (None, Some(_)) => text("tool")?,
        (None, None) | (Some(_), Some(_)) => return None,
    };
    let name = name.strip_prefix("functions.").unwrap_or(name).to_owned();
    let input = match one.get("parameters") {
        Some(input @ (Value::Object(_) | Value::String(_))) => input.clone(),
        None | Some(Value::Null) => Value::Object(Map::new()),
        Some(Value::Bool(_) | Value::Number(_) | Value::Array(_)) => return None,
    };
    Some(Inner { name, input })
}
