//! Finds the calls inside a call: what wraps several calls in one, and scripts that call tools.

use serde_json::{Map, Value};

use super::{Form, script};
use crate::call::Input;
use crate::call::name::cut;
use crate::fold::fold;

/// Names of tools whose input is a list of calls: `{"tool_uses": [{"recipient_name", "parameters"}]}`, and
/// `{"tool_calls": [{"tool", "parameters"}]}`.
const WRAPPERS: &[&str] = &["parallel", "multi_tool_use.parallel", "batch"];

/// Tools that call one tool of an MCP server, and where their inputs have the server, the tool and its input.
const MCP_WRAPPERS: &[(&str, [&str; 3])] = &[
    // Cline 3.0.65, Roo Code, Kilo Code.
    ("use_mcp_tool", ["server_name", "tool_name", "arguments"]),
];

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
pub(in crate::provider) fn wraps(name: &str, form: Form) -> bool {
    let folded = fold(name);
    let name = cut(&folded);
    let is_mcp = || MCP_WRAPPERS.iter().any(|(wrapper, _)| *wrapper == name);
    if form == Form::Text { name == SCRIPT } else { WRAPPERS.contains(&name) || is_mcp() }
}

/// The calls inside a call.
pub(super) fn calls(name: &str, input: Input<'_>) -> Nested {
    let folded = fold(name);
    let name = cut(&folded);
    match input {
        Input::Text(text) if name == SCRIPT => match script::calls(text) {
            Some(calls) => {
                let inner = calls.into_iter().map(|call| Inner { name: call.name, input: call.input });
                Nested::Calls(inner.collect())
            }
            None => Nested::Unknown("The script does more than call tools with literal inputs"),
        },
        Input::Json(json) if WRAPPERS.contains(&name) => wrapped(json),
        Input::Json(json) => match MCP_WRAPPERS.iter().find(|(wrapper, _)| *wrapper == name) {
            Some((_, keys)) => of_server(json, *keys).map_or(
                Nested::Unknown("Which tool of which server is called cannot be understood"),
                |inner| Nested::Calls(vec![inner]),
            ),
            None => Nested::None,
        },
        Input::Text(_) => Nested::None,
    }
}

/// The call of a server's tool, under the name that most agents have for it.
fn of_server(json: &Value, [server, tool, input]: [&str; 3]) -> Option<Inner> {
    let text = |key| json.get(key).and_then(Value::as_str);
    let name = format!("mcp__{}__{}", text(server)?, text(tool)?);
    let input = match json.get(input) {
        None | Some(Value::Null) => Value::Object(Map::new()),
        Some(object @ Value::Object(_)) => object.clone(),
        // Agents that write their calls as text have the object as a text.
        Some(Value::String(text)) if text.trim().is_empty() => Value::Object(Map::new()),
        Some(Value::String(text)) => serde_json::from_str(text).ok().filter(Value::is_object)?,
        Some(Value::Bool(_) | Value::Number(_) | Value::Array(_)) => return None,
    };
    Some(Inner { name, input })
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
