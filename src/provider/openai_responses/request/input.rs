//! Input items: tools that they carry, calls that they fire, and what the provider would fetch for them.

use super::super::super::request::RequestEditor;
use super::present;
use super::tools::{OfferedTools, Sifted, sift};
use crate::call::Denial;
use crate::wire::json::{Kind, Value};

/// Reads all that is sent to the model.
///
/// # Errors
/// If it must not go on, or cannot be read.
pub(super) fn read<'d>(
    editor: &mut RequestEditor<'d>,
    root: Value<'d>,
    offered: &mut OfferedTools,
) -> Result<(), Denial> {
    for place in ["input", "instructions"] {
        let value = present(editor, root, place)?;
        if value.is_some_and(|value| value.kind() == Kind::Object) {
            return Err(Denial::unparseable(place, "it is neither a text nor a list"));
        }
        if place == "input" && value.is_some_and(|value| value.kind() == Kind::String) {
            editor.has_message();
        }
        for item in value.and_then(Value::items).into_iter().flatten() {
            read_item(editor, item, offered)?;
        }
    }
    if let Some(prompt) = present(editor, root, "prompt")?
        && let Some(variables) = present(editor, prompt, "variables")?
    {
        ask_sources(editor, variables, "prompt.variables")?;
    }
    Ok(())
}

/// Items that show that the client has tools: calls and their outputs. An item that the provider keeps may be one.
const CALLS: [&str; 15] = [
    "function_call",
    "function_call_output",
    "custom_tool_call",
    "custom_tool_call_output",
    "local_shell_call",
    "local_shell_call_output",
    "shell_call",
    "shell_call_output",
    "apply_patch_call",
    "apply_patch_call_output",
    "computer_call",
    "computer_call_output",
    "tool_search_call",
    "tool_search_output",
    "item_reference",
];

fn read_item<'d>(
    editor: &mut RequestEditor<'d>,
    item: Value<'d>,
    offered: &mut OfferedTools,
) -> Result<(), Denial> {
    let kind = present(editor, item, "type")?.and_then(Value::text);
    if kind.as_deref().is_some_and(|kind| CALLS.contains(&kind)) {
        editor.excuse();
    }
    match kind.as_deref() {
        None | Some("message") => editor.has_message(),
        Some(kind) if kind.ends_with("_output") => editor.has_tool_result(),
        Some(_) => {}
    }
    if let Some(hosted) = hosted_door(kind.as_deref()) {
        if editor.strips(hosted)? {
            return editor.remove(item);
        }
    } else if sift_tools(editor, item, offered)? {
        return editor.remove(item);
    }
    if kind.as_deref() == Some("configuration_update") {
        for entry in item.entries().into_iter().flatten() {
            if sift_tools(editor, entry.value, offered)? {
                return editor.remove(item);
            }
        }
    }
    if let Some(model) = present(editor, item, "model")?.and_then(Value::text) {
        editor.facts.models.push(model.into());
    }
    for place in ["content", "output"] {
        if let Some(value) = present(editor, item, place)? {
            ask_sources(editor, value, place)?;
        }
    }
    Ok(())
}

/// Takes hosted tools out of an object's `tools`. Whether all of them would go, and so does what holds them.
fn sift_tools<'d>(
    editor: &mut RequestEditor<'d>,
    object: Value<'d>,
    offered: &mut OfferedTools,
) -> Result<bool, Denial> {
    let Some(tools) = present(editor, object, "tools")? else { return Ok(false) };
    match sift(editor, tools, None, offered)? {
        Sifted::Without(removed) => removed.into_iter().try_for_each(|tool| editor.remove(tool))?,
        Sifted::Nothing => return Ok(true),
    }
    Ok(false)
}

/// The type of the hosted tool that an item of this type acts for: a list of a server's tools, the approval that
/// fires a call of one, a program that goes on where it waited.
fn hosted_door(kind: Option<&str>) -> Option<&'static str> {
    match kind? {
        "mcp_list_tools" | "mcp_approval_response" => Some("mcp"),
        "program" | "program_output" => Some("programmatic_tool_calling"),
        _ => None,
    }
}

/// Asks about each URL of a picture, file or recording that the provider would fetch.
fn ask_sources<'d>(editor: &mut RequestEditor<'d>, value: Value<'d>, place: &str) -> Result<(), Denial> {
    for item in value.items().into_iter().flatten() {
        ask_sources(editor, item, place)?;
    }
    for entry in value.entries().into_iter().flatten() {
        let key = entry.key.text().unwrap_or_default();
        // A picture in a message, or of a screen in the output of a call.
        if key == "type" && (entry.value.says("input_image") || entry.value.says("computer_screenshot")) {
            editor.has_image();
        }
        let is_source = ["image_url", "file_url", "video_url", "audio_url"].contains(&key.as_ref());
        if !is_source {
            ask_sources(editor, entry.value, place)?;
            continue;
        }
        let is_object = entry.value.kind() == Kind::Object;
        let url = if is_object { editor.get(entry.value, "url")? } else { Some(entry.value) };
        let url = url.and_then(Value::text);
        if url.is_some_and(|url| is_fetched(&url)) {
            editor.fetches(&format!("{place}.{key}"))?;
        }
    }
    Ok(())
}

/// Whether the provider has to fetch it. Only a `data:` URL holds its content itself.
fn is_fetched(url: &str) -> bool {
    let url = url.trim();
    !url.is_empty() && !url.get(..5).is_some_and(|scheme| scheme.eq_ignore_ascii_case("data:"))
}
