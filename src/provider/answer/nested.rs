//! Finds the calls inside a call: what wraps several calls in one, and scripts that call tools.

use serde_json::{Map, Value};

use super::script;
use crate::call::Input;
use crate::fold::{self, Member};

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
    /// It calls tools, and nobody can say which.
    Unknown(&'static str),
}

/// A call inside another.
pub(super) struct Inner {
    pub(super) name: String,
    /// A string is the input of a custom tool.
    pub(super) input: Value,
}

impl Inner {
    pub(super) fn input(&self) -> Input<'_> {
        self.input.as_str().map_or(Input::Json(&self.input), Input::Text)
    }

    /// Its input as text.
    pub(super) fn text(&self) -> String {
        self.input.as_str().map_or_else(|| self.input.to_string(), str::to_owned)
    }
}

/// Whether a call of this name may have others in it, so that its name alone does not decide.
pub(in crate::provider) fn wraps(name: &str) -> bool {
    WRAPPERS.contains(&name) || name == SCRIPT
}

/// The calls inside a call.
pub(super) fn calls(name: &str, input: Input<'_>) -> Nested {
    match input {
        Input::Text(text) if name == SCRIPT => match script::calls(text) {
            Some(calls) => {
                let inner = calls.into_iter().map(|call| Inner { name: call.name, input: call.input });
                Nested::Calls(inner.collect())
            }
            None => Nested::Unknown("The script does more than call tools with literal inputs"),
        },
        Input::Json(json) if WRAPPERS.contains(&name) => wrapped(json),
        Input::Text(_) | Input::Json(_) => Nested::None,
    }
}

fn wrapped(json: &Value) -> Nested {
    let (Some(uses), Some(calls)) = (exact(json, "tool_uses"), exact(json, "tool_calls")) else {
        return Nested::Unknown("The list of calls stands under a key in another case");
    };
    let uses = match (uses, calls) {
        (Some(uses), None) | (None, Some(uses)) => uses,
        (None, None) => return Nested::None,
        // Every agent reads the one that it knows.
        (Some(_), Some(_)) => return Nested::Unknown("A call has two lists of calls in it"),
    };
    let calls = uses.as_array().and_then(|uses| uses.iter().map(inner).collect::<Option<Vec<_>>>());
    calls.map_or(Nested::Unknown("The list of calls cannot be understood"), Nested::Calls)
}

/// What an object has under a key; none where a key is there that some agents take for it.
fn exact<'a>(json: &'a Value, key: &str) -> Option<Option<&'a Value>> {
    let Some(object) = json.as_object() else { return Some(None) };
    match fold::member(object, key) {
        Member::Missing => Some(None),
        Member::Exact(value) => Some(Some(value)),
        Member::Respelled(_, _) | Member::Several(_) => None,
    }
}

fn inner(one: &Value) -> Option<Inner> {
    let name = match (exact(one, "recipient_name")?, exact(one, "tool")?) {
        (Some(name), None) | (None, Some(name)) => name.as_str()?,
        (None, None) | (Some(_), Some(_)) => return None,
    };
    let name = name.strip_prefix("functions.").unwrap_or(name).to_owned();
    let input = match exact(one, "parameters")? {
        Some(input @ (Value::Object(_) | Value::String(_))) => input.clone(),
        None | Some(Value::Null) => Value::Object(Map::new()),
        Some(Value::Bool(_) | Value::Number(_) | Value::Array(_)) => return None,
    };
    Some(Inner { name, input })
}
