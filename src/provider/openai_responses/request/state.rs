//! Conversations that the provider keeps: refused, or not begun.

use super::super::super::request::RequestEditor;
use super::present;
use crate::call::{Denial, DenialForm};
use crate::wire::json::Value;

/// What OpenAI answers for a response that it has no longer. Clients that chain responses send all of the conversation
/// then.
const NOT_FOUND: DenialForm = DenialForm::Recoverable { status: 400, code: "previous_response_not_found" };

/// Asks about everything that reads from, or runs in, what the provider keeps.
///
/// # Errors
/// If policy does not allow it.
pub(super) fn refused<'d>(editor: &mut RequestEditor<'d>, root: Value<'d>) -> Result<(), Denial> {
    if present(editor, root, "previous_response_id")?.is_some() {
        editor.keeps_state("previous_response_id").map_err(|denial| denial.answered(NOT_FOUND))?;
        editor.facts.writes = true;
    }
    for name in ["conversation", "prompt"] {
        if present(editor, root, name)?.is_some() {
            editor.keeps_state(name)?;
            editor.facts.writes = true;
        }
    }
    if present(editor, root, "background")?.is_some_and(|background| background.as_bool() != Some(false)) {
        editor.keeps_state("background")?;
    }
    let items = editor.get(root, "input")?.and_then(Value::items);
    for item in items.into_iter().flatten() {
        if is_reference(editor, item)? {
            editor.keeps_state("input[].item_reference")?;
            editor.facts.writes = true;
            break;
        }
    }
    Ok(())
}

/// Whether an item refers to a stored one. Its `type` may be left out; every other item without a type has a role.
fn is_reference<'d>(editor: &RequestEditor<'d>, item: Value<'d>) -> Result<bool, Denial> {
    Ok(match present(editor, item, "type")? {
        Some(kind) => kind.says("item_reference"),
        None => editor.get(item, "id")?.is_some() && editor.get(item, "role")?.is_none(),
    })
}

/// Makes a response that is not kept: the provider keeps what does not say otherwise.
///
/// # Errors
/// If `store` cannot be read.
pub(super) fn unstored<'d>(editor: &mut RequestEditor<'d>, root: Value<'d>) -> Result<(), Denial> {
    let store = editor.get(root, "store")?;
    if store.is_some_and(|store| store.as_bool() == Some(false)) || editor.may_keep_state() {
        return Ok(());
    }
    match store {
        Some(store) => editor.replace(store, "false")?,
        None => editor.insert(root, "store", "false")?,
    }
    editor.changed("store");
    Ok(())
}
