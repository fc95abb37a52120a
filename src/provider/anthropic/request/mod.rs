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
    facts::read(draft, body, door)?;
    let continues = thread::read(draft, body, door)?;
    let mut offer = Offer::default();
    offer::read(draft, body, &mut offer)?;
    let found = walk::read(draft, body, &mut offer)?;
    facts::tools(draft, &offer, continues)?;
    corrections::make(draft, body, &offer)?;
    history::correct(draft, body, (&mut offer, &found))?;
    door.permits_edits(draft, body)
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
