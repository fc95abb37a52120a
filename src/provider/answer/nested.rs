//! Finds the calls inside a call: what wraps several calls in one, and scripts that call tools.

use serde_json::{Map, Value};

use super::script::{self, Script};
use crate::call::Input;
use crate::fold::{self, Member};
use crate::provider::kind::{Calling, SOURCE, Wrapper, wrapper};

/// The calls inside a call.
pub(super) enum Nested {
    /// It is no wrapper.
    None,
    Calls(Vec<InnerCall>),
    /// It is a script.
    Script(Script),
    /// It calls tools, and nobody can say which.
    Unknown(&'static str),
    /// It is a script of which nobody can say what is code in it.
    Unread(&'static str),
}

/// A call inside another.
pub(super) struct InnerCall {
    pub(super) name: String,
    /// A string is the input of a custom tool.
    pub(super) input: Value,
}

/// The calls inside a call.
pub(super) fn calls(name: &str, input: Input<'_>) -> Nested {
    match (wrapper(name), input) {
        (Some(Wrapper::Script), Input::Text(text)) => scripted(text),
        (Some(Wrapper::Script), Input::Json(json)) => match exact(json, SOURCE) {
            Some(None | Some(Value::Null)) => Nested::None,
            Some(Some(Value::String(text))) => scripted(text),
            Some(Some(_)) => Nested::Unknown("The script is no text"),
            None => Nested::Unknown("The script stands under a key in another case"),
        },
        (Some(Wrapper::List), Input::Json(json)) => wrapped(json),
        (Some(Wrapper::One(calling)), Input::Json(json)) => called(json, calling)
            .map_or(Nested::Unknown("Which tool is called cannot be understood"), |inner| {
                Nested::Calls(vec![inner])
            }),
        (Some(Wrapper::List | Wrapper::One(_)), Input::Text(_)) | (None, _) => Nested::None,
    }
}

fn scripted(text: &str) -> Nested {
    script::read(text).map_or_else(Nested::Unread, Nested::Script)
}

/// The call that another tool makes. A server's tool has the name that most agents have for it.
fn called(json: &Value, calling: &Calling) -> Option<InnerCall> {
    let text = |key| exact(json, key)?.and_then(Value::as_str);
    let tool = text(calling.tool)?;
    let name = match calling.server {
        Some(server) => format!("mcp__{}__{tool}", text(server)?),
        None => tool.to_owned(),
    };
    let input = match exact(json, calling.input)? {
        None | Some(Value::Null) => Value::Object(Map::new()),
        Some(object @ Value::Object(_)) => object.clone(),
        Some(Value::String(text)) => object(text)?,
        Some(Value::Bool(_) | Value::Number(_) | Value::Array(_)) => return None,
    };
    Some(InnerCall { name, input })
}

/// The object that a text is: agents that write their calls as text have inputs so.
fn object(text: &str) -> Option<Value> {
    if text.trim().is_empty() {
        return Some(Value::Object(Map::new()));
    }
    serde_json::from_str(text).ok().filter(Value::is_object)
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

/// The value of a key; none if another key is there that some agents take for it.
fn exact<'a>(json: &'a Value, key: &str) -> Option<Option<&'a Value>> {
    let Some(object) = json.as_object() else { return Some(None) };
    match fold::member(object, key) {
        Member::Missing => Some(None),
        Member::Exact(value) => Some(Some(value)),
        Member::Respelled(_, _) | Member::Several(_) => None,
    }
}

fn inner(one: &Value) -> Option<InnerCall> {
    let name = match (exact(one, "recipient_name")?, exact(one, "tool")?) {
        (Some(name), None) | (None, Some(name)) => name.as_str()?,
        (None, None) | (Some(_), Some(_)) => return None,
    };
    let name = name.strip_prefix("functions.").unwrap_or(name).to_owned();
    let input = match exact(one, "parameters")? {
        Some(input @ Value::Object(_)) => input.clone(),
        Some(input @ Value::String(text)) => object(text).unwrap_or_else(|| input.clone()),
        None | Some(Value::Null) => Value::Object(Map::new()),
        Some(Value::Bool(_) | Value::Number(_) | Value::Array(_)) => return None,
    };
    Some(InnerCall { name, input })
}
