//! Edits a request of Anthropic Messages that another server of the same dialect answers.

use super::system;
use crate::call::turn::prompt::{SIGNATURE, Unsayable};
use crate::provider::translate::{MovedBody, MovedTerms, Moving, unsayable};
use crate::wire::json::{Document, Kind, Value};

/// Who answers in this dialect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessagesServer {
    /// The first party, Bedrock Mantle or Foundry: they check the signatures of thinking, and refuse those of others.
    Anthropic,
    /// Whoever speaks the dialect beside them.
    Other,
}

/// What a turn says of which nothing is left; an empty one is refused.
const NOTHING: &str = r#"[{"type":"text","text":"(no content)"}]"#;

/// Replaces the model, puts in `params`, lowers `max_tokens`, and takes out what the server would refuse; every other
/// byte stays.
///
/// # Errors
/// If the body is no object, has a key twice, or `params` is no object.
pub fn moved_messages(
    document: &Document<'_>,
    terms: &MovedTerms<'_>,
    server: MessagesServer,
) -> Result<MovedBody, Unsayable> {
    let mut moving = Moving::new(document, terms)?;
    moving.cap("max_tokens", terms.max_tokens)?;
    match server {
        MessagesServer::Anthropic => forget(&mut moving)?,
        MessagesServer::Other => {
            if let Some(system) = moving.member("system")
                && system::remove_billing(&mut moving.edits, system).map_err(unsayable)?
            {
                moving.notes.add("billing_header");
            }
        }
    }
    Ok(moving.finish())
}

/// Whether a conversation has thinking that this gateway signed. A body of which a hash vouches cannot go to Anthropic's
/// own then, since the thinking would have to be cut out.
pub fn has_own_thinking(document: &Document<'_>) -> bool {
    let messages = items(document.root(), "messages");
    messages.flat_map(|message| items(message, "content")).any(|block| is_thinking(block, false))
}

/// The items of a member that is a list.
fn items<'d>(object: Value<'d>, key: &str) -> impl Iterator<Item = Value<'d>> + use<'d> {
    object.get(key).ok().flatten().and_then(Value::items).into_iter().flatten()
}

/// Cuts out the thinking that the server did not sign: of this gateway's models, and all where another model is asked,
/// which may not take what the first one signed.
fn forget(moving: &mut Moving<'_>) -> Result<(), Unsayable> {
    let messages = moving.member("messages").and_then(Value::items);
    for message in messages.into_iter().flatten() {
        let Some(content) = message.get("content").ok().flatten() else { continue };
        let goes = |block: &Value<'_>| is_thinking(*block, moving.has_other_model);
        let count = content.items().into_iter().flatten().filter(goes).count();
        if count == 0 {
            continue;
        }
        moving.notes.add_some("thinking", count);
        if content.items().into_iter().flatten().count() == count {
            moving.edits.replace(content, NOTHING).map_err(unsayable)?;
            continue;
        }
        for block in content.items().into_iter().flatten().filter(goes) {
            moving.edits.remove(block).map_err(unsayable)?;
        }
    }
    Ok(())
}

/// Whether a block is thinking that goes: all of it, or what this gateway signed.
fn is_thinking(block: Value<'_>, every: bool) -> bool {
    if block.kind() != Kind::Object {
        return false;
    }
    let member = |key: &str| block.get(key).ok().flatten();
    let Some(kind) = member("type") else { return false };
    if kind.says("thinking") {
        let signature = member("signature").and_then(Value::text);
        return every || signature.is_some_and(|signature| signature.starts_with(SIGNATURE));
    }
    every && kind.says("redacted_thinking")
}
