//! Reads a request of Anthropic Messages: closes every door to what the provider would execute, and keeps the rest valid.
//!
//! What is offered is gathered first, from `tools[]`, `mcp_servers` and everything that `messages` can hold; policy is
//! asked about each type; then the body is edited once. The same conversation is edited in the same way on every turn:
//! an edit depends on the body and on policy alone.

mod corrections;
mod door;
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
mod walk;

pub(in crate::provider) use door::Door;

use super::catalogue;
use crate::call::Denial;
use crate::fold::is_other_case;
use crate::provider::request::Draft;
use crate::wire::json::{Kind, Value};

use offer::Offer;

/// Reads a body of Anthropic Messages, or the object of another body that has its fields (`body`; the root where the
/// body is no other's). Fills the facts and gathers the edits.
///
/// # Errors
/// Where the request must not go on, or cannot be understood.
pub(in crate::provider) fn messages_request<'d>(
    draft: &mut Draft<'d>,
    body: Value<'d>,
    door: &Door<'_>,
) -> Result<(), Denial> {
    if body.kind() != Kind::Object {
        return Err(Denial::unparseable("the body", "it is no JSON object"));
    }
    distinct(body, "the body")?;
    spelled(body, &KEYS)?;
    facts::read(draft, body, door)?;
    let continues = thread::read(draft, body, door)?;
    let mut offer = Offer::default();
    offer::read(draft, body, &mut offer)?;
    let found = walk::read(draft, body, &mut offer)?;
    facts::tools(draft, &offer, continues)?;
    if continues || forbids_tools(draft, body)? {
        draft.excuse();
    }
    corrections::make(draft, body, &offer)?;
    history::correct(draft, body, (&mut offer, &found))?;
    door.permits_edits(draft, body)
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

/// Whether the model is told to call no tool.
fn forbids_tools<'d>(draft: &Draft<'d>, body: Value<'d>) -> Result<bool, Denial> {
    let Some(choice) = draft.get(body, "tool_choice")? else { return Ok(false) };
    Ok(draft.get(choice, "type")?.is_some_and(|kind| kind.says("none")))
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

/// Refuses an object in which any key stands twice: its readers may see different objects.
fn distinct(object: Value<'_>, place: &str) -> Result<(), Denial> {
    object.duplicate().map_or(Ok(()), |duplicate| Err(Denial::unparseable(place, duplicate)))
}

/// A text block in the place of another block, which keeps the cache breakpoint of that.
fn text_block<'d>(draft: &Draft<'d>, block: Value<'d>, text: &str) -> Result<String, Denial> {
    let text = serde_json::Value::from(text);
    let breakpoint = draft.get(block, "cache_control")?.filter(|value| !value.is_null());
    Ok(match breakpoint {
        None => format!(r#"{{"type":"text","text":{text}}}"#),
        Some(breakpoint) => {
            format!(r#"{{"type":"text","text":{text},"cache_control":{}}}"#, breakpoint.raw())
        }
    })
}
