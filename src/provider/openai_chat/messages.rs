//! What the messages of a request refer to instead of holding it: URLs that the provider fetches, files that it keeps.

use crate::call::Denial;
use crate::provider::request::Draft;
use crate::wire::json::{Kind, Value};

/// Keys below which a person or a model speaks: what looks like a URL there is text.
const SPEECH: &[&str] =
    &["text", "thinking", "refusal", "content", "output", "arguments", "name", "filename", "title"];

/// How much of a string is looked at for a scheme, in bytes.
const LONGEST_SCHEME: usize = 64;

/// Asks about every URL and every file of every message.
///
/// # Errors
/// Where policy does not allow one of them, or a message cannot be understood.
pub(super) fn check(draft: &mut Draft<'_>) -> Result<(), Denial> {
    let Some(list) = draft.get(draft.root(), "messages")?.filter(|list| !list.is_null()) else {
        return Ok(());
    };
    let messages = list.items().ok_or_else(|| Denial::unparseable("messages", "it is not a list"))?;
    for message in messages {
        if message.kind() != Kind::Object {
            return Err(Denial::unparseable("messages", "an entry is not an object"));
        }
        if draft.has_lost_all() && speaks_of_calls(draft, message)? {
            draft.excuse();
        }
        let Some(content) = draft.get(message, "content")? else { continue };
        for part in content.items().into_iter().flatten() {
            check_part(draft, part, "")?;
        }
        // One part that stands alone.
        if content.kind() == Kind::Object {
            check_part(draft, content, "")?;
        }
    }
    Ok(())
}

/// Whether a message has a call of the client's tools, or what came of one.
fn speaks_of_calls<'d>(draft: &Draft<'d>, message: Value<'d>) -> Result<bool, Denial> {
    let is_result = |role: Value<'_>| role.says("tool") || role.says("function");
    let calls = |value: Option<Value<'_>>| value.is_some_and(|value| !value.is_null());
    Ok(draft.get(message, "role")?.is_some_and(is_result)
        || calls(draft.get(message, "tool_calls")?)
        || calls(draft.get(message, "function_call")?))
}

/// Looks at every string in a part of a message: vendors differ in where they put URLs, and add kinds of parts.
/// `key` is that of the entry in which the part stands.
fn check_part<'d>(draft: &mut Draft<'d>, part: Value<'d>, key: &str) -> Result<(), Denial> {
    for item in part.items().into_iter().flatten() {
        check_part(draft, item, key)?;
    }
    for entry in part.entries().into_iter().flatten() {
        let key = entry.key.text().unwrap_or_default();
        if !SPEECH.contains(&key.as_ref()) || entry.value.kind() != Kind::String {
            check_part(draft, entry.value, &key)?;
        }
    }
    let Some(text) = part.text().filter(|_| !key.is_empty()) else { return Ok(()) };
    if key == "file_id" && !text.is_empty() {
        return draft.keeps_state("messages: file_id");
    }
    if is_fetched(key, text.trim_start()) {
        return draft.fetches(&format!("messages: {key}"));
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
