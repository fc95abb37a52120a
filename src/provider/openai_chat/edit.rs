//! Takes calls out of a delta or a message, and puts text in their place: every other byte stays.

use super::choice::EntryEdit;
use super::chunk::entry;
use crate::provider::answer::BrokenAnswer;
use crate::wire::json::{EditError, Edits, Value};

/// Makes the edits for the calls of a delta or message. `actions` are one for each entry of `tool_calls`, in their
/// order, and one for `function_call`; `texts` stand in the content beside those of the actions; `spoke` says
/// whether text of the same message went before.
///
/// # Errors
/// If the content is of no kind to which text could be added.
pub(super) fn calls<'d>(
    edits: &mut Edits<'d>,
    said: Value<'d>,
    actions: Vec<EntryEdit>,
    mut texts: Vec<String>,
    spoke: bool,
) -> Result<(), BrokenAnswer> {
    let mut actions = actions.into_iter();
    if let Some(list) = entry(said, "tool_calls")? {
        let items: Vec<Value<'d>> = list.items().into_iter().flatten().collect();
        let edits_here: Vec<EntryEdit> = actions.by_ref().take(items.len()).collect();
        if !edits_here.is_empty() && edits_here.iter().all(|action| matches!(action, EntryEdit::Remove(_))) {
            edits.remove(list).map_err(broken)?;
        } else {
            items.into_iter().zip(&edits_here).try_for_each(|(item, action)| call(edits, item, action))?;
        }
        texts.extend(edits_here.into_iter().filter_map(text));
    }
    if let (Some(function), Some(action @ EntryEdit::Remove(_))) =
        (entry(said, "function_call")?, actions.next())
    {
        edits.remove(function).map_err(broken)?;
        texts.extend(text(action));
    }
    if texts.is_empty() { Ok(()) } else { say(edits, said, &texts.concat(), spoke) }
}

fn text(action: EntryEdit) -> Option<String> {
    match action {
        EntryEdit::Remove(text) => text,
        EntryEdit::Keep(_) => None,
    }
}

fn call<'d>(edits: &mut Edits<'d>, item: Value<'d>, action: &EntryEdit) -> Result<(), BrokenAnswer> {
    match action {
        EntryEdit::Remove(_) => edits.remove(item).map_err(broken),
        EntryEdit::Keep(None) => Ok(()),
        EntryEdit::Keep(Some(index)) => match entry(item, "index")? {
            Some(own) => edits.replace(own, index.to_string()).map_err(broken),
            None => Ok(()),
        },
    }
}

/// Adds text to the content, as a paragraph of its own.
fn say<'d>(edits: &mut Edits<'d>, said: Value<'d>, text: &str, spoke: bool) -> Result<(), BrokenAnswer> {
    let begun = if spoke { format!("\n\n{text}") } else { text.to_owned() };
    let Some(content) = said.get("content").map_err(|error| BrokenAnswer::ambiguous(error.to_string()))?
    else {
        return edits.insert(said, "content", &quoted(&begun)).map_err(broken);
    };
    if content.items().is_some() {
        let part = format!(r#"{{"type":"text","text":{}}}"#, quoted(&begun));
        return edits.append(content, part).map_err(broken);
    }
    if let Some(before) = content.text().filter(|before| !before.is_empty()) {
        // The text begins a paragraph: it needs two line ends, less those that are there.
        let line_ends = before.len() - before.trim_end_matches('\n').len();
        let added = quoted(&format!("{}{text}", &"\n\n"[line_ends.min(2)..]));
        let raw = content.raw();
        return edits.replace(content, format!("{}{}", &raw[..raw.len() - 1], &added[1..])).map_err(broken);
    }
    if content.is_null() || content.text().is_some() {
        return edits.replace(content, quoted(&begun)).map_err(broken);
    }
    Err(BrokenAnswer::ambiguous("`content` is neither text nor a list"))
}

/// Corrects the reason for which a choice ended where none of its calls goes on.
pub(super) fn finish<'d>(edits: &mut Edits<'d>, choice: Value<'d>) -> Result<(), BrokenAnswer> {
    let Some(reason) = entry(choice, "finish_reason")? else { return Ok(()) };
    if reason.says("tool_calls") || reason.says("function_call") {
        return edits.replace(reason, r#""stop""#).map_err(broken);
    }
    Ok(())
}

/// Text as JSON.
pub(super) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

pub(super) fn broken(error: EditError) -> BrokenAnswer {
    BrokenAnswer::ambiguous(error.to_string())
}
