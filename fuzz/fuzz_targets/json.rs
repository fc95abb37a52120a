//! What is read is what serde_json reads; an edit does the same to the bytes as to serde_json's value.
#![no_main]

use libfuzzer_sys::fuzz_target;
use postern::wire::json::{Document, EditError, Edits, Kind, Limits, Value};
use serde_json::Value as Expected;

/// The nesting that serde_json accepts.
const LIKE_SERDE: Limits = Limits { depth: 127, nodes: 1 << 20 };

fuzz_target!(|bytes: &[u8]| {
    let theirs = serde_json::from_slice::<Expected>(bytes);
    let document = match (Document::parse(bytes, LIKE_SERDE), &theirs) {
        (Ok(document), Ok(_)) => document,
        (Err(error), Err(_)) => return assert!(error.offset <= bytes.len()),
        (Err(error), Ok(_)) => panic!("{error}, and serde_json reads it"),
        // RFC 8259 has no largest number.
        (Ok(_), Err(error)) => {
            return assert!(error.to_string().starts_with("number out of range"), "{error}");
        }
    };
    let values = all(document.root());
    let ambiguous = values.iter().filter_map(|value| value.duplicate()).min_by_key(|found| found.again);
    assert_eq!(document.first_duplicate(), ambiguous);
    if ambiguous.is_some() {
        return;
    }
    assert_eq!(value_of(document.root(), &[]), theirs.ok());

    // Which values go is up to the bytes, so that an input is JSON and nothing else.
    let sum = bytes.iter().fold(0_usize, |sum, byte| sum.wrapping_mul(31).wrapping_add(usize::from(*byte)));
    let mut edits = Edits::new(&document);
    let mut removed = Vec::new();
    for value in values.iter().enumerate().filter(|(count, _)| (sum >> (count % 61)) % 4 == 1).map(|(_, v)| v)
    {
        match edits.remove(*value) {
            Ok(()) => removed.push(value.span().start),
            Err(error) => assert!(matches!(error, EditError::Overlap | EditError::Root)),
        }
    }
    let edited = edits.apply();
    assert_eq!(edits.is_empty(), removed.is_empty());
    let expected = value_of(document.root(), &removed);
    assert_eq!(serde_json::from_slice(&edited).ok(), expected, "{}", String::from_utf8_lossy(&edited));

    let added = if document.root().kind() == Kind::Array {
        edits.append(document.root(), "0")
    } else {
        edits.insert(document.root(), "\u{1f512}\"", "0")
    };
    if added.is_ok() {
        let edited = edits.apply();
        let edited = Document::parse(&edited, LIKE_SERDE).expect("JSON");
        assert_eq!(all(edited.root()).last().map(|value| value.raw()), Some("0"));
    }
});

/// A value and all in it, in the order of the document, without keys.
fn all(value: Value<'_>) -> Vec<Value<'_>> {
    let items = value.items().into_iter().flatten();
    let members = value.entries().into_iter().flatten().map(|entry| entry.value);
    std::iter::once(value).chain(items.chain(members).flat_map(all)).collect()
}

/// The same value as serde_json has it, without those that begin at these bytes.
fn value_of(value: Value<'_>, without: &[usize]) -> Option<Expected> {
    if without.binary_search(&value.span().start).is_ok() {
        return None;
    }
    if let Some(items) = value.items() {
        return Some(items.filter_map(|item| value_of(item, without)).collect());
    }
    let Some(entries) = value.entries() else { return serde_json::from_str(value.raw()).ok() };
    let entries = entries.filter_map(|entry| {
        let key = entry.key.text().expect("a key is a string").into_owned();
        assert!(entry.key.says(&key));
        Some((key, value_of(entry.value, without)?))
    });
    Some(Expected::Object(entries.collect()))
}
