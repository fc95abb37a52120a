//! Rewrites a chunk in which something is taken out.

use std::collections::BTreeMap;

use super::choice::{ChoiceState, EntryEdit};
use super::transcript::{ReadChunk, says};
use super::{chunk, edit, hosted};
use crate::provider::answer::BrokenAnswer;
use crate::wire::json::{Document, Edits, Value};

/// How a chunk goes on.
pub(super) enum Rewritten {
    Same,
    /// Nothing is left in it.
    Gone,
    Json(String),
}

/// Keys of a chunk that say which answer it belongs to, and nothing new.
const FRAME: &[&str] = &[
    "id",
    "object",
    "created",
    "model",
    "choices",
    "system_fingerprint",
    "service_tier",
    "provider",
    "obfuscation",
    "p",
];

/// The same of a choice, and of its delta.
const CHOICE: &[&str] = &["index", "delta", "logprobs", "content_filter_results", "content_filter_offsets"];
const DELTA: &[&str] = &["index", "role", "type", "tool_calls", "function_call"];

/// Makes the edits for what was decided about the calls of a chunk. Its role, content and everything else stay.
///
/// # Errors
/// If it cannot be edited.
pub(super) fn chunk(
    document: &Document<'_>,
    own: &ReadChunk,
    known: &mut BTreeMap<u64, ChoiceState>,
) -> Result<Rewritten, BrokenAnswer> {
    let root = document.root();
    let mut edits = Edits::new(document);
    let mut is_void = root
        .entries()
        .into_iter()
        .flatten()
        .all(|entry| FRAME.iter().any(|key| entry.key.says(key)) || !says(entry.value));
    for choice in chunk::choices(root, "delta")? {
        let Some(state) = known.get_mut(&choice.index) else { continue };
        let pieces = own.pieces.iter().filter(|piece| piece.choice == choice.index);
        let actions: Vec<EntryEdit> = pieces.map(|piece| state.action(piece.call)).collect();
        is_void &=
            actions.iter().all(|action| *action == EntryEdit::Remove(None)) && !is_said(&choice, state);
        if let Some(delta) = choice.said {
            let texts = hosted::cut(&mut edits, delta, &mut state.hosted)?;
            let tells = !texts.is_empty()
                || actions.iter().any(|action| matches!(action, EntryEdit::Remove(Some(_))));
            is_void &= !tells;
            edit::calls(&mut edits, delta, actions, texts, state.spoke)?;
            // What stands in a call's place is a paragraph of its own.
            state.spoke &= !tells;
        }
        if state.lost_all() {
            edit::finish(&mut edits, choice.value)?;
        }
    }
    if edits.is_empty() {
        return Ok(Rewritten::Same);
    }
    if is_void {
        return Ok(Rewritten::Gone);
    }
    Ok(Rewritten::Json(String::from_utf8_lossy(&edits.apply()).into_owned()))
}

/// Whether a choice says anything beside calls; a role only where none went on before.
fn is_said(choice: &chunk::ChunkChoice<'_>, state: &ChoiceState) -> bool {
    let is_new = |value: Value<'_>, ignored: &[&str]| {
        let mut entries = value.entries().into_iter().flatten();
        entries.any(|entry| !ignored.iter().any(|key| entry.key.says(key)) && says(entry.value))
    };
    let has_role =
        choice.said.is_some_and(|delta| delta.entries().into_iter().flatten().any(|e| e.key.says("role")));
    is_new(choice.value, CHOICE)
        || has_role && !state.role
        || choice.said.is_some_and(|delta| is_new(delta, DELTA))
}
