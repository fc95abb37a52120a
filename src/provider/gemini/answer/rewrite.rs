//! Makes the changes of one chunk; every other byte stays.

use serde_json::json;

use super::chunk::{self, parts, unwrap};
use super::page::{Changes, PartChange, PartIndex};
use crate::provider::answer::BrokenAnswer;
use crate::wire::json::{Document, EditError, Edits, Value};

/// The chunk with its changes made.
///
/// # Errors
/// If two of them would change the same bytes, which none do.
pub(super) fn rewrite(document: &Document<'_>, changes: &Changes) -> Result<Vec<u8>, BrokenAnswer> {
    let answer = chunk::fields(unwrap(document.root())?)?;
    let mut edits = Edits::new(document);
    let candidates = answer.at("candidates").and_then(Value::items).into_iter().flatten();
    for (position, candidate) in candidates.enumerate() {
        let fields = chunk::fields(candidate)?;
        let parts = parts(&fields)?;
        if let Some(items) = parts.and_then(Value::items) {
            change_parts(&mut edits, items.collect(), |part| {
                changes.parts.get(&PartIndex { candidate: position, part })
            })?;
        }
        let gone = changes.metadata.iter().filter(|((candidate, _), _)| *candidate == position);
        for ((_, field), text) in gone {
            if let Some(value) = fields.at(field) {
                edits.remove(value).map_err(broken)?;
            }
            if let Some(text) = text {
                add(&mut edits, candidate, fields.at("content"), parts, text).map_err(broken)?;
            }
        }
    }
    Ok(edits.apply())
}

/// Changes the parts of one candidate. If all of them are removed, one empty text stays: clients and the provider
/// refuse content without parts.
fn change_parts<'d, 'c>(
    edits: &mut Edits<'d>,
    parts: Vec<Value<'d>>,
    change: impl Fn(usize) -> Option<&'c PartChange>,
) -> Result<(), BrokenAnswer> {
    let all_go = (0..parts.len()).all(|part| change(part) == Some(&PartChange::Gone));
    for (position, part) in parts.into_iter().enumerate() {
        match change(position) {
            None => Ok(()),
            Some(PartChange::Text(text)) => edits.replace(part, said(text)),
            Some(PartChange::Gone) if all_go && position == 0 => edits.replace(part, said("")),
            Some(PartChange::Gone) => edits.remove(part),
            Some(PartChange::Signature(signature)) => sign(edits, part, signature),
        }
        .map_err(broken)?;
    }
    Ok(())
}

/// Puts a signature into a part that has none, or an empty one.
fn sign<'d>(edits: &mut Edits<'d>, part: Value<'d>, json: &str) -> Result<(), EditError> {
    let is_signature = |key: Value<'_>| key.says("thoughtSignature") || key.says("thought_signature");
    let mut entries = part.entries().into_iter().flatten();
    match entries.find(|entry| is_signature(entry.key)) {
        Some(entry) => edits.replace(entry.value, json),
        None => edits.insert(part, "thoughtSignature", json),
    }
}

/// Adds a text to a candidate's parts, which it may not have.
fn add<'d>(
    edits: &mut Edits<'d>,
    candidate: Value<'d>,
    content: Option<Value<'d>>,
    parts: Option<Value<'d>>,
    text: &str,
) -> Result<(), EditError> {
    let part = said(text);
    match (content, parts) {
        (_, Some(parts)) => edits.append(parts, part),
        (Some(content), None) => edits.insert(content, "parts", &format!("[{part}]")),
        (None, None) => {
            edits.insert(candidate, "content", &format!("{{\"role\":\"model\",\"parts\":[{part}]}}"))
        }
    }
}

fn said(text: &str) -> String {
    json!({ "text": text }).to_string()
}

fn broken(error: EditError) -> BrokenAnswer {
    BrokenAnswer::ambiguous(format!("the answer cannot be edited: {error}"))
}
