//! The tools: why something was denied, what the policies name, and what would become of a call or a request.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::super::evidence::{EvidenceAccess, Lines, MOST_TOLD, excerpt};
use super::super::{NOT_A_DENIAL, NOT_AN_ID, Source, plain};
use super::message::{INVALID_PARAMS, Request, Wrong};
use crate::event::Id;
use crate::name::gateway::READ_EVIDENCE;
use crate::policy::document::Explain;
use crate::tool_output::evidence_id::EvidenceId;

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
pub(super) fn list(request: &Request, source: &impl Source) -> Result<Value, Wrong> {
    if request.params.contains_key("cursor") {
        return Err(Wrong::new(200, INVALID_PARAMS, "There is one page: no cursor was given out"));
    }
    let mut tools = Vec::new();
    if source.explains() != Explain::None {
        tools.push(explain_tool());
    }
    if source.explains() == Explain::Policy {
        tools.extend(policy_tools());
    }
    if source.evidence_access() == EvidenceAccess::ToolToo {
        tools.push(read_tool());
    }
    Ok(json!({"tools": tools}))
}

fn explain_tool() -> Value {
    tool(
        EXPLAIN,
        "Says why an event was denied: the rule, its reason, and the parameters of the tool call that the rule reads.",
        &json!({
            "event": {"type": "string", "description": "The id behind `Event:` in a refusal, or in the header x-postern-event"}
        }),
        &["event"],
    )
}

fn policy_tools() -> [Value; 2] {
    [
        tool(
            LIST,
            "Lists hosts with paths, tools and limits that the policies name, each with its rule.",
            &json!({}),
            &[],
        ),
        tool(
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
        ),
    ]
}

fn read_tool() -> Value {
    tool(
        READ_EVIDENCE,
        "Reads a tool result of this conversation that was cut: lines of the text that a `[postern]` line names.",
        &json!({
            "id": {"type": "string", "description": "The 20 hex digits that name the text"},
            "from": {"type": "integer", "minimum": 1, "description": "The first line; 1 if it is not given"},
            "to": {"type": "integer", "minimum": 1, "description": "The last line"},
            "match": {"type": "string", "description": "A plain text: lines that contain it, each with its number"}
        }),
        &["id"],
    )
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
    let has_evidence = source.evidence_access() == EvidenceAccess::ToolToo;
    let outcome = match request.params.get("name").and_then(Value::as_str) {
        Some(EXPLAIN) if source.explains() != Explain::None => explain(input, source),
        Some(READ_EVIDENCE) if has_evidence => return Ok(result(read(input, source))),
        Some(LIST) if is_open => Ok(source.permissions()),
        Some(CHECK) if is_open => check(input, source),
        Some(_) | None => {
            return Err(Wrong::new(200, INVALID_PARAMS, "There is no such tool; tools/list says which are"));
        }
    };
    Ok(result(outcome.map(|told| plain(&told.to_string()))))
}

fn result(told: Result<String, String>) -> Value {
    json!({"isError": told.is_err(), "content": [text(&told.unwrap_or_else(|why| why))]})
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

/// The text that a call of [`READ_EVIDENCE`] needs.
pub(super) fn wanted_evidence(request: &Request) -> Option<EvidenceId> {
    let is_read = request.method == "tools/call"
        && request.params.get("name").and_then(Value::as_str) == Some(READ_EVIDENCE);
    let id = request.params.get("arguments").filter(|_| is_read)?.get("id")?;
    EvidenceId::parse(id.as_str()?)
}

/// The input of [`READ_EVIDENCE`].
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ReadInput {
    id: String,
    from: Option<usize>,
    to: Option<usize>,
    #[serde(rename = "match")]
    matching: Option<String>,
}

fn read(input: &Map<String, Value>, source: &impl Source) -> Result<String, String> {
    let ReadInput { id, from, to, matching } = serde_json::from_value(Value::Object(input.clone()))
        .map_err(|_| "Give `id`, and if need be `from`, `to` (numbers of lines) and `match` (a text)")?;
    let lines = Lines::new(from, to, matching)?;
    let id = EvidenceId::parse(&id).ok_or("This is no id of a kept text: 20 lower-case hex digits")?;
    let kept = source.evidence(id).map_err(|why| why.words().to_owned())?;
    excerpt(&kept, &lines, MOST_TOLD)
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
