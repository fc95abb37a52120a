//! Conversations that the provider keeps: refused, or not begun.

use super::super::super::request::Draft;
use super::present;
use crate::call::{Answer, Denial};
use crate::wire::json::Value;

/// What OpenAI answers for a response that it has no longer. Clients that chain responses send all of the conversation
/// then.
const NOT_FOUND: Answer = Answer::Recoverable { status: 400, code: "previous_response_not_found" };

/// Asks about everything that reads from, or runs in, what the provider keeps.
///
/// # Errors
/// Where policy does not allow it.
pub(super) fn refused<'d>(draft: &mut Draft<'d>, root: Value<'d>) -> Result<(), Denial> {
    if present(draft, root, "previous_response_id")?.is_some() {
        draft.keeps_state("previous_response_id").map_err(|denial| denial.answered(NOT_FOUND))?;
        draft.facts.writes = true;
    }
    for name in ["conversation", "prompt"] {
        if present(draft, root, name)?.is_some() {
            draft.keeps_state(name)?;
            draft.facts.writes = true;
        }
    }
    if present(draft, root, "background")?.is_some_and(|background| background.as_bool() != Some(false)) {
        draft.keeps_state("background")?;
    }
    let items = draft.get(root, "input")?.and_then(Value::items);
    for item in items.into_iter().flatten() {
        if is_reference(draft, item)? {
            draft.keeps_state("input[].item_reference")?;
            draft.facts.writes = true;
            break;
        }
    }
    Ok(())
}

/// Whether an item stands for one that is stored. Its `type` may be left out; every other item without one has a role.
fn is_reference<'d>(draft: &Draft<'d>, item: Value<'d>) -> Result<bool, Denial> {
    Ok(match present(draft, item, "type")? {
        Some(kind) => kind.says("item_reference"),
        None => draft.get(item, "id")?.is_some() && draft.get(item, "role")?.is_none(),
    })
}

/// Makes a response that is not kept: the provider keeps what does not say otherwise.
///
/// # Errors
/// Where `store` cannot be read.
pub(super) fn unstored<'d>(draft: &mut Draft<'d>, root: Value<'d>) -> Result<(), Denial> {
    let store = draft.get(root, "store")?;
    if store.is_some_and(|store| store.as_bool() == Some(false)) || draft.may_keep_state() {
        return Ok(());
    }
    match store {
        Some(store) => draft.replace(store, "false")?,
        None => draft.insert(root, "store", "false")?,
    }
    draft.changed("store");
    Ok(())
}
