//! Adds outputs for calls that were blocked in a conversation which the provider keeps, because it waits for them.

use std::borrow::Cow;

use serde_json::json;

use super::super::super::request::RequestEditor;
use super::present;
use crate::call::{BlockedCall, Denial};
use crate::wire::json::Value;

/// The output of a blocked call, for the model.
const OUTPUT: &str = "Blocked by policy";

/// The smallest picture there is, in the place of a screenshot.
const PICTURE: &str = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/// Adds to `input` an output for each call that was blocked where this request goes on.
///
/// # Errors
/// If `input` cannot be read.
pub(super) fn answer<'d>(editor: &mut RequestEditor<'d>, root: Value<'d>) -> Result<(), Denial> {
    let Some(scope) = scope(editor, root)? else { return Ok(()) };
    let is_conversation = present(editor, root, "previous_response_id")?.is_none();
    let mut calls = editor.blocked(&scope);
    if calls.is_empty() {
        return Ok(());
    }
    let input = present(editor, root, "input")?;
    for item in input.and_then(Value::items).into_iter().flatten() {
        for key in ["call_id", "approval_request_id", "id"] {
            let answered = editor.get(item, key)?.and_then(Value::text);
            calls.retain(|call| answered.as_deref() != Some(&call.id));
        }
    }
    let mut outputs = calls.iter().map(|call| output(call).to_string());
    match input {
        Some(input) if input.items().is_some() => outputs.try_for_each(|json| editor.append(input, json)),
        Some(input) => {
            let user = format!("{{\"role\":\"user\",\"content\":{}}}", input.raw());
            let items: Vec<String> = outputs.chain([user]).collect();
            editor.replace(input, format!("[{}]", items.join(",")))
        }
        None => {
            let items: Vec<String> = outputs.collect();
            editor.insert(root, "input", &format!("[{}]", items.join(",")))
        }
    }?;
    editor.changed("blocked calls");
    if is_conversation {
        editor.facts.answered_conversation = Some(scope.into_owned());
    }
    Ok(())
}

/// Returns the id of the response, or of the conversation, that the request continues.
fn scope<'d>(editor: &RequestEditor<'d>, root: Value<'d>) -> Result<Option<Cow<'d, str>>, Denial> {
    if let Some(previous) = present(editor, root, "previous_response_id")? {
        return Ok(previous.text());
    }
    let Some(conversation) = present(editor, root, "conversation")? else { return Ok(None) };
    match conversation.text() {
        Some(id) => Ok(Some(id)),
        None => Ok(editor.get(conversation, "id")?.and_then(Value::text)),
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
