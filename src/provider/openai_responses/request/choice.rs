//! Corrects the places beside `tools` that name tools which were removed.

use super::super::super::request::RequestEditor;
use super::present;
use super::tools::OfferedTools;
use crate::call::Denial;
use crate::wire::json::Value;

const AUTO: &str = "\"auto\"";

/// Corrects a `tool_choice` that names, or demands, what was taken out.
///
/// # Errors
/// If it cannot be read.
pub(super) fn correct<'d>(
    editor: &mut RequestEditor<'d>,
    root: Value<'d>,
    offered: &OfferedTools,
) -> Result<(), Denial> {
    let Some(choice) = present(editor, root, "tool_choice")? else { return Ok(()) };
    if !offered.is_less() {
        return Ok(());
    }
    let is_word = choice.text().is_some();
    if offered.is_nothing() {
        // `auto` and `none` may stand without tools.
        if !is_word || choice.says("required") {
            editor.remove(choice)?;
            editor.changed("tool_choice");
        }
        return Ok(());
    }
    if is_word {
        return Ok(());
    }
    if editor.get(choice, "type")?.is_some_and(|kind| kind.says("allowed_tools")) {
        return prune_allowed(editor, choice, offered);
    }
    if offered.has_lost(editor, choice)? {
        editor.replace(choice, AUTO)?;
        editor.changed("tool_choice");
    }
    Ok(())
}

fn prune_allowed<'d>(
    editor: &mut RequestEditor<'d>,
    choice: Value<'d>,
    offered: &OfferedTools,
) -> Result<(), Denial> {
    // Chat Completions has the list one object deeper; some that speak both take either.
    let inner = editor.get(choice, "allowed_tools")?.unwrap_or(choice);
    let Some(items) = editor.get(inner, "tools")?.and_then(Value::items) else { return Ok(()) };
    let (mut lost, mut left) = (Vec::new(), 0);
    for name in items {
        if offered.has_lost(editor, name)? { lost.push(name) } else { left += 1 }
    }
    if lost.is_empty() {
        return Ok(());
    }
    editor.changed("tool_choice");
    if left == 0 {
        return editor.replace(choice, AUTO);
    }
    lost.into_iter().try_for_each(|name| editor.remove(name))
}

/// Removes from `include` the results of removed tools.
///
/// # Errors
/// If it cannot be read.
pub(super) fn prune_include<'d>(
    editor: &mut RequestEditor<'d>,
    root: Value<'d>,
    offered: &OfferedTools,
) -> Result<(), Denial> {
    let Some(include) = present(editor, root, "include")? else { return Ok(()) };
    let is_lost = |entry: &Value<'d>| {
        let text = entry.text();
        let family = text.as_deref().and_then(|text| text.split_once("_call"));
        family.is_some_and(|(family, _)| offered.has_lost_family(family))
    };
    let entries: Vec<Value<'d>> = include.items().into_iter().flatten().collect();
    let lost: Vec<Value<'d>> = entries.iter().copied().filter(is_lost).collect();
    if lost.is_empty() {
        return Ok(());
    }
    editor.changed("include");
    if lost.len() == entries.len() {
        return editor.remove(include);
    }
    lost.into_iter().try_for_each(|entry| editor.remove(entry))
}
