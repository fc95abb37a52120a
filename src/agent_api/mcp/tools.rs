//! The tools: why something was denied, what the policies name, and what would become of a call or a request.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::super::{NOT_A_DENIAL, NOT_AN_ID, Source, plain};
use super::message::{INVALID_PARAMS, Request, Wrong};
use crate::event::Id;
use crate::policy::document::Explain;

const EXPLAIN: &str = "explain_denial";
const LIST: &str = "list_permissions";
const CHECK: &str = "check_action";

/// What an agent wants to know before it does it.
#[derive(Debug, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
pub enum Action {
    Call {
        tool: String,
        input: Option<Map<String, Value>>,
    },
    /// The head of a request.
    Request {
        url: String,
        /// GET where it is not said.
        method: Option<String>,
    },
}

/// Lists the tools that may be called.
pub(super) fn list(request: &Request, explains: Explain) -> Result<Value, Wrong> {
    if request.params.contains_key("cursor") {
        return Err(Wrong::new(200, INVALID_PARAMS, "There is one page: no cursor was given out"));
    }
    let mut tools = vec![tool(
        EXPLAIN,
        "Says why an event was denied: the rule, its reason, and the parameters of the tool call that the rule reads.",
        &json!({
            "event": {"type": "string", "description": "The id behind `Event:` in a refusal, or in the header x-postern-event"}
        }),
        &["event"],
    )];
    if explains == Explain::Policy {
        tools.push(tool(
            LIST,
            "Lists hosts with paths, tools and limits that the policies name, each with its rule.",
            &json!({}),
            &[],
        ));
        tools.push(tool(
            CHECK,
            "Says whether a tool call, or a request by its method and URL, would be denied. Nothing is run or sent. \
             Limits, secrets in it and rules over facts are not asked: it can still be denied when it is made.",
            &json!({
                "tool": {"type": "string", "description": "The tool's name; or give url"},
                "input": {"type": "object", "description": "The tool's input"},
                "url": {"type": "string", "description": "https://… or http://…; or give tool"},
                "method": {"type": "string", "description": "The request's method; GET if it is not given"}
            }),
            &[],
        ));
    }
    Ok(json!({"tools": tools}))
}

fn tool(name: &str, description: &str, properties: &Value, required: &[&str]) -> Value {
    json!({
        "name": name,
        "description": description,
        "inputSchema": {
            "type": "object", "properties": properties, "required": required, "additionalProperties": false
        },
        "annotations": {"readOnlyHint": true, "openWorldHint": false},
    })
}

/// Calls a tool. What is wrong with its input is told in its result, so that a model reads it.
///
/// # Errors
/// There is no such tool, or it may not be called.
pub(super) fn call(request: &Request, source: &impl Source) -> Result<Value, Wrong> {
    let empty = Map::new();
    let input = match request.params.get("arguments") {
        None => &empty,
        Some(Value::Object(input)) => input,
        Some(_) => return Err(Wrong::new(200, INVALID_PARAMS, "`arguments` is no object")),
    };
    let is_open = source.explains() == Explain::Policy;
    let outcome = match request.params.get("name").and_then(Value::as_str) {
        Some(EXPLAIN) => explain(input, source),
        Some(LIST) if is_open => Ok(source.permissions()),
        Some(CHECK) if is_open => check(input, source),
        Some(_) | None => {
            return Err(Wrong::new(200, INVALID_PARAMS, "There is no such tool; tools/list says which are"));
        }
    };
    Ok(match outcome {
        Ok(told) => json!({"content": [text(&plain(&told.to_string()))], "isError": false}),
        Err(why) => json!({"content": [text(&why)], "isError": true}),
    })
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn explain(input: &Map<String, Value>, source: &impl Source) -> Result<Value, String> {
    let id = input.get("event").and_then(Value::as_str).and_then(Id::parse).ok_or(NOT_AN_ID)?;
    let denial = source.denial(id).ok_or(NOT_A_DENIAL)?;
    // Of plain data no serialisation fails.
    Ok(serde_json::to_value(denial).unwrap_or_default())
}

fn check(input: &Map<String, Value>, source: &impl Source) -> Result<Value, String> {
    let action = serde_json::from_value(Value::Object(input.clone()))
        .map_err(|_| "Give either `tool` with its `input`, or `url` with its `method`")?;
    let decision = source.check(&action)?;
    Ok(match decision.verdict {
        "Deny" | "NeedsInput" => {
            json!({"verdict": decision.verdict, "rule": decision.rule, "reason": decision.reason})
        }
        // What lets something pass, and what is only recorded, is not told.
        _ => json!({"verdict": "Allow"}),
    })
}
