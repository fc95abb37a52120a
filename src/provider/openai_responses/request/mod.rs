//! Reads a request to create a response: what it is, and what of it would act, fetch or be kept at the provider.
//!
//! The same walk reads the bodies of `/responses`, `/responses/compact` and `/responses/input_tokens`, and the
//! messages that a client sends over a WebSocket.

mod blocked;
mod choice;
mod input;
mod roles;
mod state;
#[cfg(test)]
mod tests;
mod tools;

pub(super) use roles::{keeps_answer, mark, mark_answer};

use super::super::adapter::ModelRequestHead;
use super::super::compatible;
use super::super::request::RequestEditor;
use crate::call::{Api, Denial};
use crate::wire::json::{Kind, Value};
use tools::OfferedTools;

/// Messages that a client sends over a WebSocket. A body that is posted has no type.
const MESSAGES: [&str; 3] = ["response.create", "response.steer", "response.cancel"];

/// Reads the document of one request.
///
/// # Errors
/// If it must not go on, or has more than one reading.
pub(super) fn read<'d>(head: &ModelRequestHead<'_>, editor: &mut RequestEditor<'d>) -> Result<(), Denial> {
    let root = editor.root();
    if root.kind() != Kind::Object {
        return Err(Denial::unparseable("", "it is no JSON object"));
    }
    let message = message_type(editor)?;
    facts(editor, root, message.is_some())?;
    state::refused(editor, root)?;
    compatible::models(editor, head.service.vendor)?;
    compatible::close_extensions(editor, head.service.vendor)?;
    let creates = message.as_deref().is_none_or(|message| message == MESSAGES[0]) && creates(head);
    if !creates || may_do_without(editor, root)? {
        editor.excuse();
    }
    let mut offered = OfferedTools::default();
    input::read(editor, root, &mut offered)?;
    tools::read(editor, root, &mut offered)?;
    agents(editor, root)?;
    choice::correct(editor, root, &offered)?;
    choice::prune_include(editor, root, &offered)?;
    if creates {
        state::unstored(editor, root)?;
    }
    blocked::answer(editor, root)?;
    editor.facts.writes |= !editor.facts.tools.is_empty();
    Ok(())
}

/// Whether the model has tools beside those of the request, from what the provider keeps, or is to call none.
fn may_do_without<'d>(editor: &RequestEditor<'d>, root: Value<'d>) -> Result<bool, Denial> {
    for key in ["previous_response_id", "conversation", "prompt"] {
        if present(editor, root, key)?.is_some() {
            return Ok(true);
        }
    }
    let is_none = present(editor, root, "tool_choice")?.is_some_and(|choice| choice.says("none"));
    let generates = present(editor, root, "generate")?.and_then(Value::as_bool) != Some(false);
    Ok(is_none || !generates)
}

/// Whether the endpoint makes responses that could be stored. The others have no `store`.
fn creates(head: &ModelRequestHead<'_>) -> bool {
    head.service.api == Api::Responses && !head.path.trim_end_matches('/').ends_with("/compact")
}

/// Reads the type of a message of a WebSocket. An unknown one could carry anything.
fn message_type(editor: &RequestEditor<'_>) -> Result<Option<String>, Denial> {
    let Some(value) = editor.get(editor.root(), "type")? else { return Ok(None) };
    match value.text() {
        Some(text) if MESSAGES.contains(&text.as_ref()) => Ok(Some(text.into_owned())),
        _ => Err(Denial::unparseable("type", "it is no message that a client sends")),
    }
}

/// Reads the facts of the request.
fn facts<'d>(editor: &mut RequestEditor<'d>, root: Value<'d>, is_message: bool) -> Result<(), Denial> {
    let stream = editor.get(root, "stream")?.is_some_and(|stream| stream.as_bool() == Some(true));
    editor.facts.stream = stream || is_message;
    let most = editor.get(root, "max_output_tokens")?;
    editor.bounds_tokens(most);
    editor.facts.session = editor.get(root, "prompt_cache_key")?.and_then(Value::text).map(Into::into);
    Ok(())
}

/// Agents that the provider would run beside the one that is asked.
fn agents<'d>(editor: &mut RequestEditor<'d>, root: Value<'d>) -> Result<(), Denial> {
    let Some(agents) = present(editor, root, "multi_agent")? else { return Ok(()) };
    let enabled = editor.get(agents, "enabled")?;
    if enabled.is_none_or(|enabled| enabled.as_bool() != Some(false)) && editor.strips("multi_agent")? {
        editor.remove(agents)?;
    }
    Ok(())
}

/// The value of an entry, unless it is null.
fn present<'d>(
    editor: &RequestEditor<'d>,
    object: Value<'d>,
    key: &str,
) -> Result<Option<Value<'d>>, Denial> {
    Ok(editor.get(object, key)?.filter(|value| !value.is_null()))
}
