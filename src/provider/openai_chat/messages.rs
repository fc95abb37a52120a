//! Reads references in the messages of a request: URLs that the provider fetches, files that it keeps.

use crate::call::Denial;
use crate::provider::request::RequestEditor;
use crate::wire::json::{Kind, Value};

/// Keys below which a person or a model speaks: what looks like a URL there is text.
const SPEECH: &[&str] =
    &["text", "thinking", "refusal", "content", "output", "arguments", "name", "filename", "title"];

/// How much of a string is looked at for a scheme, in bytes.
const LONGEST_SCHEME: usize = 64;

/// Asks about every URL and every file of every message.
///
/// # Errors
/// If policy does not allow one of them, or a message cannot be understood.
pub(super) fn check(editor: &mut RequestEditor<'_>) -> Result<(), Denial> {
    let Some(list) = editor.get(editor.root(), "messages")?.filter(|list| !list.is_null()) else {
        return Ok(());
    };
    let messages = list.items().ok_or_else(|| Denial::unparseable("messages", "it is not a list"))?;
    for message in messages {
        if message.kind() != Kind::Object {
            return Err(Denial::unparseable("messages", "an entry is not an object"));
        }
        count(editor, message);
        if editor.has_lost_all() && speaks_of_calls(editor, message)? {
            editor.excuse();
        }
        let Some(content) = editor.get(message, "content")? else { continue };
        for part in content.items().into_iter().flatten() {
            check_part(editor, part, "")?;
        }
        // One part that stands alone.
        if content.kind() == Kind::Object {
            check_part(editor, content, "")?;
        }
    }
    Ok(())
}

/// Counts a message, and what it holds. The document has no key twice.
fn count<'d>(editor: &mut RequestEditor<'d>, message: Value<'d>) {
    let at = |object: Value<'d>, key: &str| object.get(key).ok().flatten();
    editor.has_message();
    if at(message, "role").is_some_and(is_of_tool) {
        editor.has_tool_result();
    }
    for part in at(message, "content").and_then(Value::items).into_iter().flatten() {
        // `image_url`, and what vendors call it beside.
        let kind = at(part, "type").and_then(Value::text);
        if kind.is_some_and(|kind| kind.starts_with("image") || kind == "input_image") {
            editor.has_image();
        }
    }
}

fn is_of_tool(role: Value<'_>) -> bool {
    role.says("tool") || role.says("function")
}

/// Whether a message has a call of the client's tools, or what came of one.
fn speaks_of_calls<'d>(editor: &RequestEditor<'d>, message: Value<'d>) -> Result<bool, Denial> {
    let calls = |value: Option<Value<'_>>| value.is_some_and(|value| !value.is_null());
    Ok(editor.get(message, "role")?.is_some_and(is_of_tool)
        || calls(editor.get(message, "tool_calls")?)
        || calls(editor.get(message, "function_call")?))
}

/// Looks at every string in a part of a message: vendors differ in where they put URLs, and add kinds of parts.
/// `key` is the key of the entry that holds the part.
fn check_part<'d>(editor: &mut RequestEditor<'d>, part: Value<'d>, key: &str) -> Result<(), Denial> {
    for item in part.items().into_iter().flatten() {
        check_part(editor, item, key)?;
    }
    for entry in part.entries().into_iter().flatten() {
        let key = entry.key.text().unwrap_or_default();
        if !SPEECH.contains(&key.as_ref()) || entry.value.kind() != Kind::String {
            check_part(editor, entry.value, &key)?;
        }
    }
    let Some(text) = part.text().filter(|_| !key.is_empty()) else { return Ok(()) };
    if key == "file_id" && !text.is_empty() {
        return editor.keeps_state("messages: file_id");
    }
    if is_fetched(key, text.trim_start()) {
        return editor.fetches(&format!("messages: {key}"));
    }
    Ok(())
}

/// Whether the provider would have to fetch what a string stands for: it has a scheme and `//`, or is where a URL
/// belongs and is no `data:`.
fn is_fetched(key: &str, text: &str) -> bool {
    let beginning = text.as_bytes().get(..5).unwrap_or_default();
    if beginning.eq_ignore_ascii_case(b"data:") {
        return false;
    }
    let head = &text[..text.floor_char_boundary(LONGEST_SCHEME)];
    let scheme = head.split_once("://").is_some_and(|(scheme, _)| is_scheme(scheme));
    scheme || (!text.is_empty() && (key == "url" || key.ends_with("_url")))
}

/// RFC 3986, section 3.1.
fn is_scheme(text: &str) -> bool {
    let mut characters = text.chars();
    characters.next().is_some_and(|first| first.is_ascii_alphabetic())
        && characters.all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
}
