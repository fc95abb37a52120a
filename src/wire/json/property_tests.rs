//! What holds for any JSON, beside serde_json: the same readings, the same refusals, edits that touch nothing else.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::Value as Expected;

use super::testing::{all, value_of};
use super::*;

/// The nesting that serde_json accepts.
const LIKE_SERDE: Limits = Limits { depth: 127, nodes: usize::MAX };

fn whitespace() -> impl Strategy<Value = String> {
    prop_oneof![3 => Just(String::new()), 1 => "[ \n\r\t]{1,3}"]
}

/// A string with its quotes, of plain and escaped characters.
fn string() -> impl Strategy<Value = String> {
    let plain = any::<char>().prop_filter("escaped", |&c| c >= ' ' && c != '"' && c != '\\');
    let piece = prop_oneof![
        4 => "[a-z ,:\\[\\]{}]{0,8}",
        1 => "[a-z]{60,70}",
        1 => plain.prop_map(String::from),
        1 => "\\\\[\"\\\\/bfnrt]",
        1 => "\\\\u0[0-9a-fA-F]{3}",
        1 => prop::char::range('\u{10000}', char::MAX).prop_map(|c| {
            c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")).collect()
        }),
    ];
    prop::collection::vec(piece, 0..4).prop_map(|pieces| format!("\"{}\"", pieces.concat()))
}

fn scalar() -> impl Strategy<Value = String> {
    let literal = prop::sample::select(vec!["null", "true", "false"]).prop_map(str::to_owned);
    let number = "-?(0|[1-9][0-9]{0,22})(\\.[0-9]{1,5})?([eE][+-]?[0-9]{1,2})?";
    prop_oneof![literal, number, string()]
}

/// Any JSON; keys seldom stand twice.
fn json() -> impl Strategy<Value = String> {
    let value = scalar().prop_recursive(5, 64, 6, |inner| {
        let item =
            (whitespace(), inner.clone(), whitespace()).prop_map(|(a, item, b)| a + &item + &b).boxed();
        let key = prop_oneof![3 => "\"[a-z]{1,6}\"", 1 => string()];
        let entry = (whitespace(), key, whitespace(), item.clone())
            .prop_map(|(a, key, b, item)| format!("{a}{key}{b}:{item}"));
        let joined = |parts: Vec<String>, empty: String| {
            if parts.is_empty() { empty } else { parts.join(",") }
        };
        prop_oneof![
            (prop::collection::vec(item, 0..6), whitespace())
                .prop_map(move |(items, empty)| format!("[{}]", joined(items, empty))),
            (prop::collection::vec(entry, 0..6), whitespace())
                .prop_map(move |(entries, empty)| format!("{{{}}}", joined(entries, empty))),
        ]
    });
    (whitespace(), value, whitespace()).prop_map(|(a, value, b)| a + &value + &b)
}

/// JSON that has one reading.
fn unambiguous() -> impl Strategy<Value = String> {
    json().prop_filter("a key twice", |text| {
        Document::parse(text.as_bytes(), LIKE_SERDE).unwrap().first_duplicate().is_none()
    })
}

/// Keys that stand twice, found in another way.
fn duplicate_of(object: Value<'_>) -> Option<Duplicate> {
    let mut seen = HashMap::new();
    object.entries()?.find_map(|Entry { key, .. }| {
        let again = key.span().start;
        let first = *seen.entry(key.text().unwrap()).or_insert(again);
        (first != again).then_some(Duplicate { first, again })
    })
}

fn check_reading(text: &str) -> Result<(), TestCaseError> {
    let document = Document::parse(text.as_bytes(), LIKE_SERDE).unwrap();
    let values = all(document.root());
    for &value in &values {
        prop_assert_eq!(value.duplicate(), duplicate_of(value));
        let alone = Document::parse(value.raw().as_bytes(), LIKE_SERDE).unwrap();
        prop_assert_eq!(alone.root().raw(), value.raw());
        if let Some(said) = value.text() {
            prop_assert_eq!(&said, &serde_json::from_str::<String>(value.raw()).unwrap());
            let longer = format!("{said}.");
            prop_assert!(value.says(&said) && !value.says(&longer));
        }
    }
    let first = values.iter().filter_map(|value| value.duplicate()).min_by_key(|found| found.again);
    prop_assert_eq!(document.first_duplicate(), first);
    if first.is_none() {
        prop_assert_eq!(value_of(document.root()), serde_json::from_str::<Expected>(text).unwrap());
    }
    Ok(())
}

#[derive(Debug, Clone)]
enum Change {
    Remove,
    Replace(String),
    /// An entry of an object, or an item of an array.
    Add(String),
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        3 => Just(Change::Remove),
        1 => unambiguous().prop_map(Change::Replace),
        1 => unambiguous().prop_map(Change::Add),
    ]
}

const ADDED: &str = "an added \"key\"";

fn gather<'d>(edits: &mut Edits<'d>, value: Value<'d>, change: &Change) -> Result<(), EditError> {
    match change {
        Change::Remove => edits.remove(value),
        Change::Replace(json) => edits.replace(value, json.as_str()),
        Change::Add(json) if value.kind() == Kind::Array => edits.append(value, json.as_str()),
        Change::Add(json) => edits.insert(value, ADDED, json),
    }
}

/// What the changes (by the value's first byte) make of a value in serde_json's terms; `None` where it is removed.
/// Along with it, what is to stand in the result byte for byte.
fn model<'d>(
    value: Value<'d>,
    changes: &BTreeMap<usize, Change>,
    kept: &mut Vec<&'d str>,
) -> Option<Expected> {
    let added = match changes.get(&value.span().start) {
        Some(Change::Remove) => return None,
        Some(Change::Replace(json)) => return Some(serde_json::from_str(json).unwrap()),
        Some(Change::Add(json)) => Some(serde_json::from_str::<Expected>(json).unwrap()),
        None => None,
    };
    if changes.range(value.span()).next().is_none() {
        kept.push(value.raw());
        return Some(value_of(value));
    }
    if let Some(items) = value.items() {
        let items: Vec<Expected> = items.filter_map(|item| model(item, changes, kept)).collect();
        return Some(items.into_iter().chain(added).collect());
    }
    let mut entries = serde_json::Map::new();
    for Entry { key, value } in value.entries().unwrap() {
        let key = key.text().unwrap().into_owned();
        entries.extend(model(value, changes, kept).map(|value| (key, value)));
    }
    entries.extend(added.map(|added| (ADDED.to_owned(), added)));
    Some(Expected::Object(entries))
}

proptest! {
    #[test]
    fn any_json_is_read_as_serde_json_reads_it(text in json()) {
        check_reading(&text)?;
    }

    #[test]
    fn damaged_json_is_refused_where_serde_json_refuses_it(
        text in json(),
        damage in prop::collection::vec((any::<Index>(), 0_u8..3, prop::sample::select(
            b"\"\\{}[],:0-.eEu tn\0\n\x1f\x7f\x80\xc3\xed\xef\xff".to_vec())), 1..4),
    ) {
        let mut bytes = text.into_bytes();
        for (at, how, byte) in damage {
            let at = at.index(bytes.len() + 1);
            let gone = at..(at + usize::from(how > 0)).min(bytes.len());
            bytes.splice(gone, (how < 2).then_some(byte));
        }
        let ours = Document::parse(&bytes, LIKE_SERDE);
        let theirs = serde_json::from_slice::<Expected>(&bytes);
        match (ours, theirs) {
            (Ok(_), Ok(_)) => check_reading(str::from_utf8(&bytes).unwrap())?,
            (Err(error), Err(_)) => prop_assert!(error.offset <= bytes.len()),
            // RFC 8259 has no largest number.
            (Ok(_), Err(error)) => prop_assert!(error.to_string().starts_with("number out of range"), "{error}"),
            (Err(error), Ok(_)) => prop_assert!(false, "{error}"),
        }
    }

    #[test]
    fn edits_do_what_they_do_to_the_value_and_leave_all_other_bytes(
        text in unambiguous(),
        wanted in prop::collection::vec((any::<Index>(), change()), 1..8),
    ) {
        let document = Document::parse(text.as_bytes(), LIKE_SERDE).unwrap();
        let values = all(document.root());
        let mut edits = Edits::new(&document);
        let mut changes = BTreeMap::new();
        for (index, change) in wanted {
            let value = values[index.index(values.len())];
            if !changes.contains_key(&value.span().start) && gather(&mut edits, value, &change).is_ok() {
                changes.insert(value.span().start, change);
            }
        }
        let edited = edits.apply();
        let removed: Vec<Range<usize>> = values
            .iter()
            .map(|value| value.span())
            .filter(|span| matches!(changes.get(&span.start), Some(Change::Remove)))
            .collect();
        let mut kept = Vec::new();
        let expected = model(document.root(), &changes, &mut kept).unwrap();
        prop_assert_eq!(serde_json::from_slice::<Expected>(&edited).unwrap(), expected);
        let mut rest = str::from_utf8(&edited).unwrap();
        for raw in kept {
            let at = rest.find(raw);
            prop_assert!(at.is_some(), "{} is gone or moved", raw);
            rest = &rest[at.unwrap() + raw.len()..];
        }
        let mut again = Edits::new(&document);
        for (start, change) in changes.iter().rev() {
            let value = *values.iter().find(|value| value.span().start == *start).unwrap();
            let outcome = gather(&mut again, value, change);
            // What a removal takes with it may be refused before the removal comes.
            let is_lost = removed.iter().any(|around| around.start < *start && around.contains(start));
            prop_assert!(outcome.is_ok() || (is_lost && outcome == Err(EditError::Overlap)), "{:?}", outcome);
        }
        let plain = format!("{:?}", Document::parse(&edited, LIKE_SERDE).unwrap().nodes);
        let known = Document::parse_known(&edited, LIKE_SERDE, &edits.known(&edited)).unwrap();
        prop_assert_eq!(format!("{:?}", known.nodes), plain, "what is known");
        prop_assert_eq!(again.apply(), edited, "another order of calls");
        prop_assert_eq!(edits.is_empty(), changes.is_empty());
    }

    #[test]
    fn edits_inside_of_a_removed_value_change_nothing(
        text in unambiguous(),
        removed in any::<Index>(),
        wanted in prop::collection::vec((any::<Index>(), change(), any::<bool>()), 1..8),
    ) {
        let document = Document::parse(text.as_bytes(), LIKE_SERDE).unwrap();
        let values = all(document.root());
        let removed = values[removed.index(values.len())];
        let mut alone = Edits::new(&document);
        if alone.remove(removed).is_err() {
            return Ok(());
        }
        let inside: Vec<Value<'_>> =
            values.into_iter().filter(|value| removed.span().contains(&value.span().start)).collect();
        let mut edits = Edits::new(&document);
        let (before, after): (Vec<_>, Vec<_>) = wanted.into_iter().partition(|(.., is_before)| *is_before);
        for (index, change, _) in before {
            // Two of these may put text at the same bytes.
            let _ = gather(&mut edits, inside[index.index(inside.len())], &change);
        }
        prop_assert_eq!(edits.remove(removed), Ok(()));
        for (index, change, _) in after {
            let value = inside[index.index(inside.len())];
            let is_fit = gather(&mut Edits::new(&document), value, &change).is_ok();
            prop_assert_eq!(gather(&mut edits, value, &change).is_ok(), is_fit);
        }
        prop_assert_eq!(edits.apply(), alone.apply());
    }

    #[test]
    fn a_removal_is_one_cut_of_the_value_its_key_and_one_comma(text in unambiguous(), index in any::<Index>()) {
        let document = Document::parse(text.as_bytes(), LIKE_SERDE).unwrap();
        let values = all(document.root());
        let value = values[index.index(values.len())];
        let mut edits = Edits::new(&document);
        if edits.remove(value).is_err() {
            return Ok(());
        }
        let edited = edits.apply();
        let (text, length) = (text.as_bytes(), text.len() - edited.len());
        let cut = (0..=value.span().start).find(|&start| {
            text[..start] == edited[..start.min(edited.len())] && text[start + length..] == edited[start..]
                && start + length >= value.span().end
        });
        prop_assert!(cut.is_some());
        let cut = cut.unwrap();
        let before = str::from_utf8(&text[cut..value.span().start]).unwrap().trim_matches([' ', '\n', '\r', '\t', ',']);
        let after = str::from_utf8(&text[value.span().end..cut + length]).unwrap();
        prop_assert!(before.is_empty() || (before.starts_with('"') && before.ends_with(':')), "{}", before);
        prop_assert!(after.trim_matches([' ', '\n', '\r', '\t', ',']).is_empty(), "{}", after);
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        let ours = Document::parse(&bytes, LIKE_SERDE).is_ok();
        prop_assert_eq!(ours, serde_json::from_slice::<Expected>(&bytes).is_ok());
    }

    #[test]
    fn a_part_of_a_string_is_replaced_and_all_other_bytes_stay(
        before in json(), text in string(), from in any::<Index>(), to in any::<Index>(),
    ) {
        let whole = format!("[{before},{text}]");
        let document = Document::parse(whole.as_bytes(), LIKE_SERDE).unwrap();
        let value = document.root().items().unwrap().last().unwrap();
        let said = value.text().unwrap().into_owned();
        let bounds: Vec<usize> = said.char_indices().map(|(at, _)| at).chain([said.len()]).collect();
        let (one, other) = (bounds[from.index(bounds.len())], bounds[to.index(bounds.len())]);
        let range = one.min(other)..one.max(other);
        let mut edits = Edits::new(&document);
        edits.replace_within(value, range.clone(), "[x\"]").unwrap();
        let edited = edits.apply();
        let expected = format!("{}[x\"]{}", &said[..range.start], &said[range.end..]);
        let read: Expected = serde_json::from_slice(&edited).unwrap();
        prop_assert_eq!(read[1].as_str(), Some(expected.as_str()));
        // What stood around the part stands there as it was written, escapes and all.
        let (escaped, raw) = (r#"[x\"]"#, str::from_utf8(&edited).unwrap());
        let (head, tail) = raw.rsplit_once(escaped).unwrap();
        prop_assert!(whole.starts_with(head) && whole.ends_with(tail), "{}", raw);
    }
}
