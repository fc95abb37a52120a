//! What vendors add to OpenAI's APIs that makes the provider act: read, asked about, and closed. For Chat Completions
//! and Responses alike; what is where is data in [`doors`].

mod doors;
mod model;
#[cfg(test)]
pub(in crate::provider) mod testing;
#[cfg(test)]
mod tests;

use crate::call::{Denial, Vendor};
use crate::fold::is_other_case;
use crate::provider::request::Draft;
use crate::wire::json::Value;
use doors::{Closed, DOORS, Door, KEYS};

pub(in crate::provider) use model::models;

/// The types by which policy knows parameters, each by its key, and models that search by themselves.
pub(in crate::provider) fn types() -> impl Iterator<Item = &'static str> {
    let keyed =
        |door: &&Door| matches!(door.closed, Closed::Removed | Closed::RemovedBeside(_, _) | Closed::Refused);
    DOORS.iter().filter(keyed).map(|door| door.key).chain([doors::SEARCH_MODEL])
}

/// Asks about every door that the vendor has beside `tools`, and closes those that policy does not open.
///
/// # Errors
/// Where the request must not go on, or a key is written so that servers may read it in two ways.
pub(in crate::provider) fn close_doors(draft: &mut Draft<'_>, vendor: Vendor) -> Result<(), Denial> {
    let root = draft.root();
    let Some(entries) = root.entries() else {
        return Err(Denial::unparseable("", "it is not an object"));
    };
    for entry in entries {
        check_key(entry.key)?;
    }
    for door in DOORS.iter().filter(|door| door.at.covers(vendor)) {
        if let Some(value) = draft.get(root, door.key)?.filter(|value| !is_off(*value)) {
            close(draft, door, value)?;
        }
    }
    Ok(())
}

fn close<'d>(draft: &mut Draft<'d>, door: &Door, value: Value<'d>) -> Result<(), Denial> {
    match door.closed {
        Closed::Removed => remove(draft, door.key, value),
        Closed::RemovedBeside(outer, keys) => {
            if has_only(value, &[outer])
                && draft.get(value, outer)?.is_some_and(|inner| has_only(inner, keys))
            {
                return Ok(());
            }
            remove(draft, door.key, value)
        }
        Closed::Items(prefix) => close_items(draft, door.key, prefix, value),
        Closed::Refused => draft.refuses(door.key),
        Closed::State => draft.keeps_state(door.key),
    }
}

fn remove<'d>(draft: &mut Draft<'d>, key: &str, value: Value<'d>) -> Result<(), Denial> {
    if draft.strips(key)? { draft.remove(value) } else { Ok(()) }
}

/// Whether an object has no keys but these.
fn has_only(object: Value<'_>, keys: &[&str]) -> bool {
    object
        .entries()
        .is_some_and(|mut entries| entries.all(|entry| keys.iter().any(|key| entry.key.says(key))))
}

fn close_items<'d>(draft: &mut Draft<'d>, key: &str, prefix: &str, list: Value<'d>) -> Result<(), Denial> {
    let items = list.items().ok_or_else(|| Denial::unparseable(key, "it is not a list"))?;
    let (mut stripped, mut kept) = (Vec::new(), 0);
    for item in items {
        let id = draft.get(item, "id")?.and_then(Value::text);
        let id = id.ok_or_else(|| Denial::unparseable(key, "an entry has no id"))?;
        let is_on = draft.get(item, "enabled")?.and_then(Value::as_bool) != Some(false);
        if is_on && draft.strips(&format!("{prefix}{id}"))? {
            stripped.push(item);
        } else {
            kept += 1;
        }
    }
    if kept == 0 {
        return draft.remove(list);
    }
    stripped.into_iter().try_for_each(|item| draft.remove(item))
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
    let known = KEYS.iter().copied().chain(DOORS.iter().map(|door| door.key));
    for name in known {
        if is_other_case(&text, name) {
            return Err(Denial::unparseable(name, "the key is written in another case"));
        }
    }
    Ok(())
}
