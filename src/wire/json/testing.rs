//! What several tests of the reader share: reading, finding, and the same value as serde_json has it.

use std::cell::Cell;

use serde_json::Value as Expected;

use super::{Document, Limits, Value};

thread_local! {
    static READ: Cell<usize> = const { Cell::new(0) };
}

/// Counts the bytes that are read as JSON in this thread.
pub(super) fn count(bytes: usize) {
    READ.set(READ.get() + bytes);
}

/// How many bytes were read as JSON in this thread so far.
pub(crate) fn bytes_read() -> usize {
    READ.get()
}

pub(super) fn read(text: &str) -> Document<'_> {
    Document::parse(text.as_bytes(), Limits::default()).unwrap()
}

/// A value and all in it, in the order of the document, without keys.
pub(super) fn all(value: Value<'_>) -> Vec<Value<'_>> {
    let items = value.items().into_iter().flatten();
    let members = value.entries().into_iter().flatten().map(|entry| entry.value);
    std::iter::once(value).chain(items.chain(members).flat_map(all)).collect()
}

/// The same value as serde_json has it; serde_json itself reads scalars alone.
pub(super) fn value_of(value: Value<'_>) -> Expected {
    if let Some(items) = value.items() {
        return items.map(value_of).collect();
    }
    match value.entries() {
        Some(entries) => Expected::Object(
            entries.map(|e| (e.key.text().unwrap().into_owned(), value_of(e.value))).collect(),
        ),
        None => serde_json::from_str(value.raw()).unwrap(),
    }
}
