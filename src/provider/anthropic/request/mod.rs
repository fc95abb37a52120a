//! Reads a request of Anthropic Messages: removes what the provider would execute, and keeps the rest valid.
//!
//! What is offered is gathered first, from `tools[]`, `mcp_servers` and everything that `messages` can hold; policy is
//! asked about each type; then the body is edited once. The same conversation is edited in the same way on every turn:
//! an edit depends on the body and on policy alone.

mod corrections;
mod facts;
mod history;
mod offer;
#[cfg(test)]
mod recording_tests;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod thread;
mod variant;
mod walk;

pub(in crate::provider) use variant::{MessagesVariant, is_subscription};

use super::catalogue;
use crate::call::Denial;
use crate::fold::is_other_case;
use crate::provider::request::RequestEditor;
use crate::wire::json::{Kind, Value};

use offer::MessagesTools;

/// Reads a body of Anthropic Messages, or the object of another body that has its fields (`body`; the root where the
/// body is no other's). Fills the facts and gathers the edits.
///
/// # Errors
/// If the request must not go on, or cannot be understood.
pub(in crate::provider) fn messages_request<'d>(
    editor: &mut RequestEditor<'d>,
    body: Value<'d>,
    variant: &MessagesVariant<'_>,
) -> Result<(), Denial> {
    if body.kind() != Kind::Object {
        return Err(Denial::unparseable("the body", "it is no JSON object"));
    }
    distinct(body, "the body")?;
    spelled(body, &KEYS)?;
    facts::read(editor, body, variant)?;
    let continues = thread::read(editor, body, variant)?;
    let mut offer = MessagesTools::default();
    offer::read(editor, body, &mut offer)?;
    let blocks = walk::read(editor, body, &mut offer)?;
    facts::tools(editor, &offer, continues)?;
    if continues || forbids_tools(editor, body)? {
        editor.excuse();
    }
    corrections::make(editor, body, &offer)?;
    history::correct(editor, body, &mut offer, &blocks)?;
    variant.permits_edits(editor, body)
}

/// The keys of a body by which anything is decided here.
const KEYS: [&str; 10] = [
    "container",
    "fallbacks",
    "mcp_servers",
    "messages",
    "model",
    "stream",
    "system",
    "thread",
    "tool_choice",
    "tools",
];

/// Whether the request forbids the model to call tools.
fn forbids_tools<'d>(editor: &RequestEditor<'d>, body: Value<'d>) -> Result<bool, Denial> {
    let Some(choice) = editor.get(body, "tool_choice")? else { return Ok(false) };
    Ok(editor.get(choice, "type")?.is_some_and(|kind| kind.says("none")))
}

/// Refuses an object with one of these keys in another case. Anthropic knows no such key, but vendors with servers in Go
/// that speak Messages read it all the same.
fn spelled(object: Value<'_>, names: &[&str]) -> Result<(), Denial> {
    if object.has_plain_keys() {
        return Ok(());
    }
    for key in object.entries().into_iter().flatten().filter_map(|entry| entry.key.text()) {
        if let Some(name) = names.iter().find(|name| is_other_case(&key, name)) {
            return Err(Denial::unparseable(name, "the key is written in another case"));
        }
    }
    Ok(())
}

/// Refuses an object with a duplicate key: readers may take different values.
fn distinct(object: Value<'_>, place: &str) -> Result<(), Denial> {
    object.duplicate().map_or(Ok(()), |duplicate| Err(Denial::unparseable(place, duplicate)))
}

/// A text block in the place of another block, which keeps the cache breakpoint of that.
fn text_block<'d>(editor: &RequestEditor<'d>, block: Value<'d>, text: &str) -> Result<String, Denial> {
    let text = serde_json::Value::from(text);
    let breakpoint = editor.get(block, "cache_control")?.filter(|value| !value.is_null());
    Ok(match breakpoint {
        None => format!(r#"{{"type":"text","text":{text}}}"#),
        Some(breakpoint) => {
            format!(r#"{{"type":"text","text":{text},"cache_control":{}}}"#, breakpoint.raw())
        }
    })
}
