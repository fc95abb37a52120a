//! Reads an answer that came whole.

use std::collections::BTreeMap;

use super::choice::EntryEdit;
use super::chunk::{self, ChunkChoice};
use super::{edit, hosted, usage};
use crate::provider::answer::{BrokenAnswer, CallHead, CallOutcome, Gate, InputForm};
use crate::wire::json::{Document, Edits};

/// Asks about every call of every choice. Returns the edited body; none where the original goes on.
///
/// # Errors
/// If it cannot be understood.
pub(super) fn read(body: &Document<'_>, gate: &mut Gate) -> Result<Option<Vec<u8>>, BrokenAnswer> {
    let root = body.root();
    let choices = chunk::choices(root, "message")?;
    usage::read(root, &choices, &mut gate.facts)?;
    if let Some(edited) = hosted::failed_generation(body, gate)? {
        for said in choices.iter().filter_map(|choice| choice.said) {
            if !chunk::pieces(said)?.is_empty() {
                return Err(BrokenAnswer::ambiguous("the answer is an error and has tool calls"));
            }
        }
        return Ok(Some(edited));
    }
    let mut edits = Edits::new(body);
    for choice in &choices {
        read_choice(&mut edits, choice, gate)?;
    }
    Ok((!edits.is_empty()).then(|| edits.apply()))
}

fn read_choice<'d>(
    edits: &mut Edits<'d>,
    choice: &ChunkChoice<'d>,
    gate: &mut Gate,
) -> Result<(), BrokenAnswer> {
    let Some(said) = choice.said else { return Ok(()) };
    let mut fates = BTreeMap::new();
    hosted::ask(said, &mut fates, gate)?;
    let texts = hosted::cut(edits, said, &mut fates)?;
    let actions: Vec<EntryEdit> = chunk::pieces(said)?
        .into_iter()
        .map(|piece| {
            let (id, name) = (piece.id.unwrap_or_default(), piece.name.unwrap_or_default());
            let form = piece.form.unwrap_or(InputForm::Json);
            match gate.whole(&CallHead { form, ..CallHead::new(&id, &name) }, &piece.input) {
                CallOutcome::Passes => EntryEdit::Keep(None),
                CallOutcome::Denied(text) => EntryEdit::Remove(Some(text)),
            }
        })
        .collect();
    let lost_all = !actions.is_empty() && actions.iter().all(|action| matches!(action, EntryEdit::Remove(_)));
    edit::calls(edits, said, actions, texts, false)?;
    if lost_all { edit::finish(edits, choice.value) } else { Ok(()) }
}
