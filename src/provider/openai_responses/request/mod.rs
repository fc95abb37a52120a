//! Reads a request to create a response: what it is, and what of it would act, fetch or be kept at the provider.
//!
//! The same walk reads the bodies of `/responses`, `/responses/compact` and `/responses/input_tokens`, and the
//! messages that a client sends over a WebSocket.

mod blocked;
mod choice;
mod input;
mod state;
#[cfg(test)]
mod tests;
mod tools;

use super::super::adapter::Asked;
use super::super::compatible;
use super::super::request::Draft;
use crate::call::{Api, Denial};
use crate::wire::json::{Kind, Value};
use tools::Offered;

/// Messages that a client sends over a WebSocket. A body that is posted has no type.
const MESSAGES: [&str; 3] = ["response.create", "response.steer", "response.cancel"];

/// Reads the document of one request.
///
/// # Errors
/// Where it must not go on, or has more than one reading.
pub(super) fn read<'d>(asked: &Asked<'_>, draft: &mut Draft<'d>) -> Result<(), Denial> {
    let root = draft.root();
    if root.kind() != Kind::Object {
        return Err(Denial::unparseable("", "it is no JSON object"));
    }
    let message = message_type(draft)?;
    facts(draft, root, message.is_some())?;
    state::refused(draft, root)?;
    compatible::models(draft, asked.service.vendor)?;
    compatible::close_doors(draft, asked.service.vendor)?;
    let creates = message.as_deref().is_none_or(|message| message == MESSAGES[0]) && creates(asked);
    if !creates || may_do_without(draft, root)? {
        draft.excuse();
    }
    let mut offered = Offered::default();
    input::read(draft, root, &mut offered)?;
    tools::read(draft, root, &mut offered)?;
    agents(draft, root)?;
    choice::correct(draft, root, &offered)?;
    choice::prune_include(draft, root, &offered)?;
    if creates {
        state::unstored(draft, root)?;
    }
    blocked::answer(draft, root)?;
    draft.facts.writes |= !draft.facts.tools.is_empty();
    Ok(())
}

/// Whether the model has tools beside those of the request, from what the provider keeps, or is to call none.
fn may_do_without<'d>(draft: &Draft<'d>, root: Value<'d>) -> Result<bool, Denial> {
    for key in ["previous_response_id", "conversation", "prompt"] {
        if present(draft, root, key)?.is_some() {
            return Ok(true);
        }
    }
    let is_none = present(draft, root, "tool_choice")?.is_some_and(|choice| choice.says("none"));
    let generates = present(draft, root, "generate")?.and_then(Value::as_bool) != Some(false);
    Ok(is_none || !generates)
}

/// Whether the endpoint makes responses that could be stored. The others have no `store`.
fn creates(asked: &Asked<'_>) -> bool {
    asked.service.api == Api::Responses && !asked.path.trim_end_matches('/').ends_with("/compact")
}

/// Which message it is, of a WebSocket. One that nobody knows could carry anything.
fn message_type(draft: &Draft<'_>) -> Result<Option<String>, Denial> {
    let Some(value) = draft.get(draft.root(), "type")? else { return Ok(None) };
    match value.text() {
        Some(text) if MESSAGES.contains(&text.as_ref()) => Ok(Some(text.into_owned())),
        _ => Err(Denial::unparseable("type", "it is no message that a client sends")),
    }
}

/// What the request says of itself.
fn facts<'d>(draft: &mut Draft<'d>, root: Value<'d>, is_message: bool) -> Result<(), Denial> {
    let stream = draft.get(root, "stream")?.is_some_and(|stream| stream.as_bool() == Some(true));
    draft.facts.stream = stream || is_message;
    draft.facts.session = draft.get(root, "prompt_cache_key")?.and_then(Value::text).map(Into::into);
    Ok(())
}

/// Agents that the provider would run beside the one that is asked.
fn agents<'d>(draft: &mut Draft<'d>, root: Value<'d>) -> Result<(), Denial> {
    let Some(agents) = present(draft, root, "multi_agent")? else { return Ok(()) };
    let enabled = draft.get(agents, "enabled")?;
    if enabled.is_none_or(|enabled| enabled.as_bool() != Some(false)) && draft.strips("multi_agent")? {
        draft.remove(agents)?;
    }
    Ok(())
}

/// The value of an entry, unless it is null.
fn present<'d>(draft: &Draft<'d>, object: Value<'d>, key: &str) -> Result<Option<Value<'d>>, Denial> {
    Ok(draft.get(object, key)?.filter(|value| !value.is_null()))
}
