//! Answers calls that were blocked in a conversation which the provider keeps: it waits for their outputs.

use std::borrow::Cow;

use serde_json::json;

use super::super::super::request::Draft;
use super::present;
use crate::call::{BlockedCall, Denial};
use crate::wire::json::Value;

/// What the model reads of a call that was blocked.
const OUTPUT: &str = "Blocked by policy";

/// The smallest picture there is, in the place of a screenshot.
const PICTURE: &str = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/// Adds to `input` an output for each call that was blocked where this request goes on.
///
/// # Errors
/// Where `input` cannot be read.
pub(super) fn answer<'d>(draft: &mut Draft<'d>, root: Value<'d>) -> Result<(), Denial> {
    let Some(scope) = scope(draft, root)? else { return Ok(()) };
    let is_conversation = present(draft, root, "previous_response_id")?.is_none();
    let mut calls = draft.blocked(&scope);
    if calls.is_empty() {
        return Ok(());
    }
    let input = present(draft, root, "input")?;
    for item in input.and_then(Value::items).into_iter().flatten() {
        for key in ["call_id", "approval_request_id", "id"] {
            let answered = draft.get(item, key)?.and_then(Value::text);
            calls.retain(|call| answered.as_deref() != Some(&call.id));
        }
    }
    let mut outputs = calls.iter().map(|call| output(call).to_string());
    match input {
        Some(input) if input.items().is_some() => outputs.try_for_each(|json| draft.append(input, json)),
        Some(input) => {
            let user = format!("{{\"role\":\"user\",\"content\":{}}}", input.raw());
            let items: Vec<String> = outputs.chain([user]).collect();
            draft.replace(input, format!("[{}]", items.join(",")))
        }
        None => {
            let items: Vec<String> = outputs.collect();
            draft.insert(root, "input", &format!("[{}]", items.join(",")))
        }
    }?;
    draft.changed("blocked calls");
    if is_conversation {
        draft.facts.answered_conversation = Some(scope.into_owned());
    }
    Ok(())
}

/// What the request goes on from: a response, or a conversation.
fn scope<'d>(draft: &Draft<'d>, root: Value<'d>) -> Result<Option<Cow<'d, str>>, Denial> {
    if let Some(previous) = present(draft, root, "previous_response_id")? {
        return Ok(previous.text());
    }
    let Some(conversation) = present(draft, root, "conversation")? else { return Ok(None) };
    match conversation.text() {
        Some(id) => Ok(Some(id)),
        None => Ok(draft.get(conversation, "id")?.and_then(Value::text)),
    }
}

/// An item that answers a call, by the type of the call's own.
fn output(call: &BlockedCall) -> serde_json::Value {
    let id = &call.id;
    match call.kind.as_str() {
        "custom_tool_call" => json!({"type": "custom_tool_call_output", "call_id": id, "output": OUTPUT}),
        "local_shell_call" => json!({"type": "local_shell_call_output", "id": id, "output": OUTPUT}),
        "shell_call" => {
            let outcome = json!({"type": "exit", "exit_code": 1});
            let output = json!([{"stdout": "", "stderr": OUTPUT, "outcome": outcome}]);
            json!({"type": "shell_call_output", "call_id": id, "output": output})
        }
        "apply_patch_call" => {
            json!({"type": "apply_patch_call_output", "call_id": id, "status": "failed", "output": OUTPUT})
        }
        "computer_call" => {
            let output = json!({"type": "computer_screenshot", "image_url": PICTURE});
            json!({"type": "computer_call_output", "call_id": id, "output": output})
        }
        "tool_search_call" => {
            json!({"type": "tool_search_output", "call_id": id, "execution": "client", "tools": []})
        }
        "mcp_approval_request" => {
            json!({"type": "mcp_approval_response", "approval_request_id": id, "approve": false})
        }
        _ => json!({"type": "function_call_output", "call_id": id, "output": OUTPUT}),
    }
}
