//! Reads content blocks: what the provider would fetch, and tools that come and go inside a conversation.

use super::tool_config::ConverseTools;
use crate::call::Denial;
use crate::provider::request::RequestEditor;
use crate::wire::json::{Entry, Value};

/// The block that replaces one that changed the tools.
const REMOVED: &str = r#"{"text":"[postern] A change of tools was removed by policy."}"#;

/// Members of a source that hold the media themselves; every other member is a place that the provider reads from.
const INLINE: [&str; 3] = ["bytes", "text", "content"];

/// Media by the name of their block, with the place of what is fetched in words.
const MEDIA: [(&str, &str); 4] = [
    ("image", "image.source"),
    ("document", "document.source"),
    ("video", "video.source"),
    ("audio", "audio.source"),
];

/// Reads the blocks of a message, or of `system`. Says whether a call of a tool or its result is among them.
pub(super) fn read<'d>(
    editor: &mut RequestEditor<'d>,
    content: Value<'d>,
    offer: &ConverseTools<'d>,
) -> Result<bool, Denial> {
    let mut calls = false;
    for block in content.items().into_iter().flatten() {
        if let Some(duplicate) = block.duplicate() {
            return Err(Denial::unparseable("content", duplicate));
        }
        for Entry { key, value } in
            block.entries().into_iter().flatten().filter(|entry| !entry.value.is_null())
        {
            if key.says("toolUse") || key.says("toolResult") {
                calls = true;
                if key.says("toolResult") {
                    editor.has_tool_result();
                }
                results(editor, value)?;
            } else if key.says("toolAddition") || key.says("toolRemoval") {
                if changes_what_is_gone(editor, value, offer)? {
                    editor.replace(block, REMOVED)?;
                }
            } else if key.says("guardContent") {
                media(editor, value)?;
            } else if is_unknown_tool(&key) {
                let member = key.text().unwrap_or_default();
                if editor.strips(&member)? {
                    editor.replace(block, REMOVED)?;
                }
            }
        }
        media(editor, block)?;
    }
    Ok(calls)
}

/// Reads the media in the result of a tool.
fn results<'d>(editor: &mut RequestEditor<'d>, result: Value<'d>) -> Result<(), Denial> {
    let Some(content) = editor.get(result, "content")? else { return Ok(()) };
    content.items().into_iter().flatten().try_for_each(|part| media(editor, part))
}

/// Asks about media that are not in the request itself.
fn media<'d>(editor: &mut RequestEditor<'d>, block: Value<'d>) -> Result<(), Denial> {
    for (member, place) in MEDIA {
        let Some(medium) = editor.get(block, member)? else { continue };
        if member == "image" && !medium.is_null() {
            editor.has_image();
        }
        let Some(source) = editor.get(medium, "source")? else { continue };
        let is_elsewhere =
            |entry: &Entry<'_>| !entry.value.is_null() && !INLINE.iter().any(|inline| entry.key.says(inline));
        if source.entries().into_iter().flatten().any(|entry| is_elsewhere(&entry)) {
            editor.fetches(place)?;
        }
    }
    Ok(())
}

/// Whether a change of tools is removed. It names a tool of the list, or of a server that the provider would talk to.
fn changes_what_is_gone<'d>(
    editor: &mut RequestEditor<'d>,
    change: Value<'d>,
    offer: &ConverseTools<'d>,
) -> Result<bool, Denial> {
    let Some(tool) = editor.get(change, "tool")? else { return editor.strips_tool("toolAddition") };
    let kind = editor.get(tool, "type")?.and_then(Value::text);
    let name = editor.get(tool, "name")?.and_then(Value::text);
    let is_plain =
        |entry: &Entry<'_>| entry.key.says("type") || entry.key.says("name") || entry.value.is_null();
    let refers = kind.as_deref().is_none_or(|kind| kind == "tool_reference")
        && tool.entries().into_iter().flatten().all(|entry| is_plain(&entry));
    if refers {
        let goes = name.is_none_or(|name| offer.is_removed(&name));
        if goes {
            editor.changed("a change of tools inside the conversation removed with its tool");
        }
        return Ok(goes);
    }
    editor.strips_tool(kind.as_deref().filter(|kind| *kind != "tool_reference").unwrap_or("toolAddition"))
}

/// Whether a block is about tools in an unknown way.
fn is_unknown_tool(key: &Value<'_>) -> bool {
    key.text().is_some_and(|key| key.get(..4).is_some_and(|start| start.eq_ignore_ascii_case("tool")))
}
