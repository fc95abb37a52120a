//! Reads content blocks: what the provider would fetch, and tools that come and go inside a conversation.

use super::tool_config::Offer;
use crate::call::Denial;
use crate::provider::request::Draft;
use crate::wire::json::{Entry, Value};

/// What stands in the place of a block that changed the tools.
const REMOVED: &str = r#"{"text":"[postern] A change of tools was removed by policy."}"#;

/// Where the content of a block of media may stand; every other member is a place that the provider reads from.
const INLINE: [&str; 3] = ["bytes", "text", "content"];

/// Media by the name of their block, with the place of what is fetched in words.
const MEDIA: [(&str, &str); 4] = [
    ("image", "image.source"),
    ("document", "document.source"),
    ("video", "video.source"),
    ("audio", "audio.source"),
];

/// Reads the blocks of a message, or of `system`. Says whether a call of a tool or its result is among them.
pub(super) fn read<'d>(draft: &mut Draft<'d>, content: Value<'d>, offer: &Offer<'d>) -> Result<bool, Denial> {
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
                results(draft, value)?;
            } else if key.says("toolAddition") || key.says("toolRemoval") {
                if changes_what_is_gone(draft, value, offer)? {
                    draft.replace(block, REMOVED)?;
                }
            } else if key.says("guardContent") {
                media(draft, value)?;
            } else if is_unknown_tool(&key) {
                let member = key.text().unwrap_or_default();
                if draft.strips(&member)? {
                    draft.replace(block, REMOVED)?;
                }
            }
        }
        media(draft, block)?;
    }
    Ok(calls)
}

/// What a tool gave back may hold media of its own.
fn results<'d>(draft: &mut Draft<'d>, result: Value<'d>) -> Result<(), Denial> {
    let Some(content) = draft.get(result, "content")? else { return Ok(()) };
    content.items().into_iter().flatten().try_for_each(|part| media(draft, part))
}

/// Asks about a source that is not in the request itself.
fn media<'d>(draft: &mut Draft<'d>, block: Value<'d>) -> Result<(), Denial> {
    for (member, place) in MEDIA {
        let Some(medium) = draft.get(block, member)? else { continue };
        let Some(source) = draft.get(medium, "source")? else { continue };
        let is_elsewhere =
            |entry: &Entry<'_>| !entry.value.is_null() && !INLINE.iter().any(|inline| entry.key.says(inline));
        if source.entries().into_iter().flatten().any(|entry| is_elsewhere(&entry)) {
            draft.fetches(place)?;
        }
    }
    Ok(())
}

/// A change names a tool: of the list, or of a server that the provider would talk to. `true`: it goes.
fn changes_what_is_gone<'d>(
    draft: &mut Draft<'d>,
    change: Value<'d>,
    offer: &Offer<'d>,
) -> Result<bool, Denial> {
    let Some(tool) = draft.get(change, "tool")? else { return draft.strips_tool("toolAddition") };
    let said = draft.get(tool, "type")?.and_then(Value::text);
    let name = draft.get(tool, "name")?.and_then(Value::text);
    let is_plain =
        |entry: &Entry<'_>| entry.key.says("type") || entry.key.says("name") || entry.value.is_null();
    let refers = said.as_deref().is_none_or(|said| said == "tool_reference")
        && tool.entries().into_iter().flatten().all(|entry| is_plain(&entry));
    if refers {
        let goes = name.is_none_or(|name| offer.is_removed(&name));
        if goes {
            draft.changed("a change of tools inside the conversation removed with its tool");
        }
        return Ok(goes);
    }
    draft.strips_tool(said.as_deref().filter(|said| *said != "tool_reference").unwrap_or("toolAddition"))
}

/// Whether a block is about tools in a way that nobody here knows.
fn is_unknown_tool(key: &Value<'_>) -> bool {
    key.text().is_some_and(|key| key.get(..4).is_some_and(|start| start.eq_ignore_ascii_case("tool")))
}
