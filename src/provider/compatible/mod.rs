//! What vendors add to OpenAI's APIs that makes the provider act: read, asked about, and closed. For Chat Completions
//! and Responses alike; what is where is data in [`extensions`].

mod extensions;
mod model;
#[cfg(test)]
pub(in crate::provider) mod testing;
#[cfg(test)]
mod tests;

use crate::call::{Denial, Vendor};
use crate::fold::is_other_case;
use crate::provider::request::RequestEditor;
use crate::wire::json::Value;
use extensions::{EXTENSIONS, KEYS, VendorExtension, WhenDenied};

pub(in crate::provider) use model::models;

/// The types by which policy knows parameters, each by its key, and models that search by themselves.
pub(in crate::provider) fn types() -> impl Iterator<Item = &'static str> {
    let keyed = |extension: &&VendorExtension| {
        matches!(
            extension.closed,
            WhenDenied::Removed | WhenDenied::RemovedBeside(_, _) | WhenDenied::Refused
        )
    };
    EXTENSIONS.iter().filter(keyed).map(|extension| extension.key).chain([extensions::SEARCH_MODEL])
}

/// Asks about every extension that the vendor has beside `tools`, and removes or refuses those that policy denies.
///
/// # Errors
/// If the request must not go on, or a key is written so that servers may read it in two ways.
pub(in crate::provider) fn close_extensions(
    editor: &mut RequestEditor<'_>,
    vendor: Vendor,
) -> Result<(), Denial> {
    let root = editor.root();
    let Some(mut entries) = root.entries() else {
        return Err(Denial::unparseable("", "it is not an object"));
    };
    // All names that are known are in lower case.
    if !root.has_plain_keys() {
        entries.try_for_each(|entry| check_key(entry.key))?;
    }
    for extension in EXTENSIONS.iter().filter(|extension| extension.at.covers(vendor)) {
        if let Some(value) = editor.get(root, extension.key)?.filter(|value| !is_off(*value)) {
            close(editor, extension, value)?;
        }
    }
    Ok(())
}

fn close<'d>(
    editor: &mut RequestEditor<'d>,
    extension: &VendorExtension,
    value: Value<'d>,
) -> Result<(), Denial> {
    match extension.closed {
        WhenDenied::Removed => remove(editor, extension.key, value),
        WhenDenied::RemovedBeside(outer, keys) => {
            if has_only(value, &[outer])
                && editor.get(value, outer)?.is_some_and(|inner| has_only(inner, keys))
            {
                return Ok(());
            }
            remove(editor, extension.key, value)
        }
        WhenDenied::Items(prefix) => close_items(editor, extension.key, prefix, value),
        WhenDenied::Refused => editor.refuses(extension.key),
        WhenDenied::State => editor.keeps_state(extension.key),
    }
}

fn remove<'d>(editor: &mut RequestEditor<'d>, key: &str, value: Value<'d>) -> Result<(), Denial> {
    if editor.strips(key)? { editor.remove(value) } else { Ok(()) }
}

/// Whether an object has no keys but these.
fn has_only(object: Value<'_>, keys: &[&str]) -> bool {
    object
        .entries()
        .is_some_and(|mut entries| entries.all(|entry| keys.iter().any(|key| entry.key.says(key))))
}

fn close_items<'d>(
    editor: &mut RequestEditor<'d>,
    key: &str,
    prefix: &str,
    list: Value<'d>,
) -> Result<(), Denial> {
    let items = list.items().ok_or_else(|| Denial::unparseable(key, "it is not a list"))?;
    let (mut stripped, mut kept) = (Vec::new(), 0);
    for item in items {
        let id = editor.get(item, "id")?.and_then(Value::text);
        let id = id.ok_or_else(|| Denial::unparseable(key, "an entry has no id"))?;
        let is_on = editor.get(item, "enabled")?.and_then(Value::as_bool) != Some(false);
        if is_on && editor.strips(&format!("{prefix}{id}"))? {
            stripped.push(item);
        } else {
            kept += 1;
        }
    }
    if kept == 0 {
        return editor.remove(list);
    }
    stripped.into_iter().try_for_each(|item| editor.remove(item))
}

/// Whether a value opens nothing.
fn is_off(value: Value<'_>) -> bool {
    value.is_null()
        || value.as_bool() == Some(false)
        || value.items().is_some_and(|mut items| items.next().is_none())
}

/// Some servers (those of Go's `encoding/json`) read `Tools` as `tools`, others do not.
fn check_key(key: Value<'_>) -> Result<(), Denial> {
    let Some(text) = key.text() else { return Ok(()) };
    let known = KEYS.iter().copied().chain(EXTENSIONS.iter().map(|extension| extension.key));
    for name in known {
        if is_other_case(&text, name) {
            return Err(Denial::unparseable(name, "the key is written in another case"));
        }
    }
    Ok(())
}
