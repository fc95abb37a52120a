//! Input items: tools that they carry, calls that they fire, and what the provider would fetch for them.

use super::super::super::request::Draft;
use super::present;
use super::tools::{Offered, Sifted, sift};
use crate::call::Denial;
use crate::wire::json::{Kind, Value};

/// Reads all that is sent to the model.
///
/// # Errors
/// Where it must not go on, or cannot be read.
pub(super) fn read<'d>(draft: &mut Draft<'d>, root: Value<'d>, offered: &mut Offered) -> Result<(), Denial> {
    for place in ["input", "instructions"] {
        let said = present(draft, root, place)?;
        if said.is_some_and(|said| said.kind() == Kind::Object) {
            return Err(Denial::unparseable(place, "it is neither a text nor a list"));
        }
        for item in said.and_then(Value::items).into_iter().flatten() {
            read_item(draft, item, offered)?;
        }
    }
    if let Some(prompt) = present(draft, root, "prompt")?
        && let Some(variables) = present(draft, prompt, "variables")?
    {
        ask_sources(draft, variables, "prompt.variables")?;
    }
    Ok(())
}

/// Items that say that the client has tools: calls of them, and what came of them. One that the provider keeps may be one.
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

fn read_item<'d>(draft: &mut Draft<'d>, item: Value<'d>, offered: &mut Offered) -> Result<(), Denial> {
    let kind = present(draft, item, "type")?.and_then(Value::text);
    if kind.as_deref().is_some_and(|kind| CALLS.contains(&kind)) {
        draft.excuse();
    }
    if let Some(hosted) = hosted_door(kind.as_deref()) {
        if draft.strips(hosted)? {
            return draft.remove(item);
        }
    } else if sift_tools(draft, item, offered)? {
        return draft.remove(item);
    }
    if kind.as_deref() == Some("configuration_update") {
        for entry in item.entries().into_iter().flatten() {
            if sift_tools(draft, entry.value, offered)? {
                return draft.remove(item);
            }
        }
    }
    if let Some(model) = present(draft, item, "model")?.and_then(Value::text) {
        draft.facts.models.push(model.into());
    }
    for place in ["content", "output"] {
        if let Some(value) = present(draft, item, place)? {
            ask_sources(draft, value, place)?;
        }
    }
    Ok(())
}

/// Takes hosted tools out of an object's `tools`. Whether all of them would go, and so does what holds them.
fn sift_tools<'d>(draft: &mut Draft<'d>, object: Value<'d>, offered: &mut Offered) -> Result<bool, Denial> {
    let Some(tools) = present(draft, object, "tools")? else { return Ok(false) };
    match sift(draft, tools, None, offered)? {
        Sifted::Without(removed) => removed.into_iter().try_for_each(|tool| draft.remove(tool))?,
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
fn ask_sources<'d>(draft: &mut Draft<'d>, value: Value<'d>, place: &str) -> Result<(), Denial> {
    for item in value.items().into_iter().flatten() {
        ask_sources(draft, item, place)?;
    }
    for entry in value.entries().into_iter().flatten() {
        let key = entry.key.text().unwrap_or_default();
        let is_source = ["image_url", "file_url", "video_url", "audio_url"].contains(&key.as_ref());
        if !is_source {
            ask_sources(draft, entry.value, place)?;
            continue;
        }
        let is_object = entry.value.kind() == Kind::Object;
        let url = if is_object { draft.get(entry.value, "url")? } else { Some(entry.value) };
        let url = url.and_then(Value::text);
        if url.is_some_and(|url| is_fetched(&url)) {
            draft.fetches(&format!("{place}.{key}"))?;
        }
    }
    Ok(())
}

/// Whether the provider has to go somewhere for it. Only what stands in the URL itself is there already.
fn is_fetched(url: &str) -> bool {
    let url = url.trim();
    !url.is_empty() && !url.get(..5).is_some_and(|scheme| scheme.eq_ignore_ascii_case("data:"))
}
