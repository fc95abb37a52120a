//! What the reader accepts and refuses, and what it knows of a value.

use super::testing::read;
use super::*;

fn refused(bytes: &[u8]) -> (usize, Reason) {
    let error = Document::parse(bytes, Limits::default()).unwrap_err();
    (error.offset, error.reason)
}

/// What is no JSON, its first wrong byte, and why.
#[rustfmt::skip]
const MALFORMED: &[(&[u8], usize, Reason)] = &[
    (b"", 0, Reason::End),
    (b" \n", 2, Reason::End),
    (b"[1", 2, Reason::End),
    (b"{\"a\"", 4, Reason::End),
    (b"{\"a\":", 5, Reason::End),
    (b"\"a", 2, Reason::End),
    (b"\"a\\", 3, Reason::End),
    (b"\"\\u00", 5, Reason::End),
    (b"-", 1, Reason::End),
    (b"[1,]", 3, Reason::Value),
    (b"[,1]", 1, Reason::Value),
    (b"nul", 0, Reason::Value),
    (b"NaN", 0, Reason::Value),
    (b"'a'", 0, Reason::Value),
    (b"/**/1", 0, Reason::Value),
    (b"+1", 0, Reason::Value),
    (b".5", 0, Reason::Value),
    (b"]", 0, Reason::Value),
    (b"\0", 0, Reason::Value),
    (b"1 2", 2, Reason::Trailing),
    (b"01", 1, Reason::Trailing),
    (b"1\0", 1, Reason::Trailing),
    (b"{}}", 2, Reason::Trailing),
    (b"truest", 4, Reason::Trailing),
    (b"1\x0c", 1, Reason::Trailing),
    (b"1.", 2, Reason::End),
    (b"[1.]", 3, Reason::Number),
    (b"[1e+]", 4, Reason::Number),
    (b"[-a]", 2, Reason::Number),
    (b"{a:1}", 1, Reason::Key),
    (b"{1:1}", 1, Reason::Key),
    (b"{\"a\":1,}", 7, Reason::Key),
    (b"{\"a\" 1}", 5, Reason::Colon),
    (b"{\"a\":1 \"b\":2}", 7, Reason::Entry),
    (b"{\"a\":1]", 6, Reason::Entry),
    (b"[1 2]", 3, Reason::Item),
    (b"[1}", 2, Reason::Item),
    (b"\"a\nb\"", 2, Reason::Control),
    (b"\"a\0\"", 2, Reason::Control),
    (b"\"\\n\x1f\"", 3, Reason::Control),
    (b"\"\\a\"", 1, Reason::Escape),
    (b"\"\\U0041\"", 1, Reason::Escape),
    (b"\"\\u00g0\"", 1, Reason::Escape),
    (b"\"\\u+041\"", 1, Reason::Escape),
    (b"\"\\ud800\"", 1, Reason::Surrogate),
    (b"\"\\udc00\"", 1, Reason::Surrogate),
    (b"\"\\ud800\\ud800\"", 1, Reason::Surrogate),
    (b"\"\\ud800\\n\"", 1, Reason::Surrogate),
    (b"\"\\ud800x\"", 1, Reason::Surrogate),
    (b"\xef\xbb\xbf{}", 0, Reason::ByteOrderMark),
    (b"\xff\xfe{\0}\0", 0, Reason::NotUtf8),
    (b"{\0}\0", 1, Reason::Key),
    (b"\"\xc0\xa2\"", 1, Reason::NotUtf8),
    (b"\"\xed\xa0\x80\"", 1, Reason::NotUtf8),
    (b"\"\xf4\x90\x80\x80\"", 1, Reason::NotUtf8),
    (b"\"a\xc3", 2, Reason::NotUtf8),
    (b"[1]\xc2\xa0", 3, Reason::Trailing),
];

#[test]
fn what_is_no_json_is_refused_at_its_first_wrong_byte() {
    for (bytes, offset, reason) in MALFORMED {
        assert_eq!(refused(bytes), (*offset, *reason), "{:?}", String::from_utf8_lossy(bytes));
    }
}

#[test]
fn an_error_says_where_and_why_and_quotes_nothing() {
    let error = Document::parse(b"{\"key\": sk-secret}", Limits::default()).unwrap_err();
    assert_eq!(error.to_string(), "no value at byte 8");
    let document = read(r#"{"key": "sk-secret"}"#);
    let shown = format!("{document:?} {:?}", document.root().get("key"));
    assert!(!shown.contains("secret"), "{shown}");
}

#[test]
fn nesting_goes_as_deep_as_allowed_and_no_deeper() {
    let nested = |depth: usize| format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
    assert!(Document::parse(nested(128).as_bytes(), Limits::default()).is_ok());
    assert_eq!(refused(nested(129).as_bytes()), (128, Reason::TooDeep));
    assert_eq!(refused("{\"a\":".repeat(1 << 20).as_bytes()), (128 * 5, Reason::TooDeep));
    let deep = Limits { depth: 1 << 20, ..Limits::default() };
    assert!(Document::parse(nested(1 << 20).as_bytes(), deep).is_ok(), "no recursion");
    let flat = Limits { depth: 0, ..Limits::default() };
    assert!(Document::parse(b"1", flat).is_ok() && Document::parse(b"[]", flat).is_err());
}

#[test]
fn a_document_has_no_more_values_than_allowed() {
    let limits = Limits { nodes: 5, ..Limits::default() };
    assert!(Document::parse(br#"{"a":[1,2]}"#, limits).is_ok());
    let error = Document::parse(br#"{"a":[1,2,3]}"#, limits).unwrap_err();
    assert_eq!((error.offset, error.reason), (10, Reason::TooMany));
    assert_eq!(size_of::<Node>(), 16, "as the limit says");
}

#[test]
fn a_value_knows_its_kind_its_bytes_and_what_it_says() {
    let text = " {\"a\" : [ null, true ,false, -1.50e+400, \"\\u0041\\n\\ud83d\\ude00\u{e9}\", {} ] } ";
    let document = read(text);
    let root = document.root();
    assert_eq!((root.kind(), root.span()), (Kind::Object, 1..text.len() - 1));
    let items: Vec<Value<'_>> = root.get("a").unwrap().unwrap().items().unwrap().collect();
    let raw: Vec<&str> = items.iter().map(|item| item.raw()).collect();
    assert_eq!(raw, ["null", "true", "false", "-1.50e+400", "\"\\u0041\\n\\ud83d\\ude00\u{e9}\"", "{}"]);
    assert!(items[0].is_null());
    assert_eq!((items[1].as_bool(), items[2].as_bool(), items[3].as_bool()), (Some(true), Some(false), None));
    assert_eq!(items[3].number_text(), Some("-1.50e+400"));
    assert_eq!(items[4].text().unwrap(), "A\n\u{1f600}\u{e9}");
    assert!(items[4].says("A\n\u{1f600}\u{e9}") && !items[4].says("A\n\u{1f600}"));
    assert_eq!(items[5].entries().unwrap().count(), 0);
    assert!(items[5].items().is_none() && items[0].entries().is_none() && items[0].text().is_none());
    assert_eq!(document.bytes(), text.as_bytes());
}

#[test]
fn a_string_without_escapes_is_borrowed() {
    let document = read(r#"["plain", "esc\u0061ped"]"#);
    let texts: Vec<_> = document.root().items().unwrap().filter_map(Value::text).collect();
    assert!(matches!(texts[..], [std::borrow::Cow::Borrowed("plain"), std::borrow::Cow::Owned(_)]));
}

#[test]
fn an_escaped_key_is_the_same_key() {
    let document = read(r#"{"t\u0079pe": "web\u005fsearch", "type\u0000": 1, "Type": 2}"#);
    let kind = document.root().get("type").unwrap().unwrap();
    assert!(kind.says("web_search"));
    assert_eq!(document.first_duplicate(), None, "a NUL and another case make another key");
    assert_eq!(document.root().get("typ").unwrap().map(Value::raw), None);
    assert_eq!(document.root().get("type\0").unwrap().map(Value::raw), Some("1"));
}

#[test]
fn a_path_goes_from_object_to_object() {
    let document = read(r#"{"a": {"b": {"c": 1}}, "d": [{"e": 1}]}"#);
    let at = |keys: &[&str]| document.root().at_path(keys).unwrap().map(Value::raw);
    assert_eq!(at(&["a", "b", "c"]), Some("1"));
    assert_eq!((at(&["a", "x", "c"]), at(&["d", "e"])), (None, None));
    assert_eq!(at(&[]), Some(document.root().raw()));
}

#[test]
fn a_key_that_stands_twice_is_found_at_any_depth_and_not_chosen_from() {
    let document = read(r#"{"a": [{"x": 1, "y": 2, "\u0078": 3}], "b": {"c": 1}}"#);
    let duplicate = Duplicate { first: 8, again: 24 };
    assert_eq!(document.first_duplicate(), Some(duplicate));
    let object = document.root().get("a").unwrap().unwrap().items().unwrap().next().unwrap();
    assert_eq!(object.duplicate(), Some(duplicate));
    assert_eq!(object.get("x").unwrap_err(), duplicate);
    assert_eq!(object.get("y").unwrap().map(Value::raw), Some("2"));
    assert_eq!(document.root().duplicate(), None, "only its own keys count");
    assert_eq!(object.entries().unwrap().count(), 3, "all of them can be looked at");
    assert_eq!(duplicate.to_string(), "a key stands twice in one object, at bytes 8 and 24");
    assert_eq!(read(r#"{"a": {"a": {"a": 1}}, "b": "a"}"#).first_duplicate(), None);
}

#[test]
fn the_first_repeated_key_is_found_among_many() {
    for count in [2_usize, 3, 11, 12, 13, 14, 500] {
        let keys: Vec<String> = (0..count).map(|key| format!("\"k{key}\":{key}")).collect();
        let twin = format!("{{{}}}", keys.join(","));
        assert_eq!(read(&twin).first_duplicate(), None);
        let text = format!("{{{},\"\\u006b1\":0,\"k0\":0,\"k1\":0}}", keys.join(","));
        let first = text.find("\"k1\"").unwrap();
        let again = text.find("\"\\u006b1\"").unwrap();
        assert_eq!(read(&text).first_duplicate(), Some(Duplicate { first, again }), "{count} keys");
    }
}

#[test]
fn a_long_string_is_read_alike_wherever_its_escapes_stand() {
    for before in 0..150 {
        let place = before + r#""\n"#.len();
        let text = |piece: &str| format!(r#""\n{}{piece}{}""#, "a".repeat(before), "é".repeat(150 - before));
        for piece in [r#"\""#, r"\\", r"\\\\", r"\/\b\f\n\r\t", r"\u0041", r"\ud83d\ude00", "a"] {
            let text = text(piece);
            let said = read(&text).root().text().map(std::borrow::Cow::into_owned);
            assert_eq!(said, serde_json::from_str(&text).unwrap(), "{text}");
        }
        for (piece, behind, reason) in [
            (r"\x", 0, Reason::Escape),
            (r"\u00g0", 0, Reason::Escape),
            (r"\ud83d\n", 0, Reason::Surrogate),
            ("\n", 0, Reason::Control),
            ("\"", 1, Reason::Trailing),
        ] {
            assert_eq!(refused(text(piece).as_bytes()), (place + behind, reason), "{piece:?} at {place}");
        }
    }
}

#[test]
fn a_key_is_found_among_any_number_of_others_and_one_that_is_not_there_is_not() {
    for count in 1..40 {
        let key = |number: usize| format!("{}{number}", "k".repeat(number % 5 + 1));
        let entries: Vec<String> = (0..count).map(|number| format!("\"{}\":{number}", key(number))).collect();
        let text = format!("{{{}}}", entries.join(","));
        let document = read(&text);
        for number in 0..count {
            let value = document.root().get(&key(number)).unwrap();
            assert_eq!(value.and_then(Value::number_text), Some(number.to_string().as_str()), "{text}");
        }
        assert!(document.root().get(&key(count)).unwrap().is_none(), "{text}");
    }
}

#[test]
fn a_key_that_is_written_otherwise_is_found_and_is_not_plain() {
    for (text, key) in
        [(r#"{"\u0061b":1}"#, "ab"), (r#"{"aB":1}"#, "aB"), (r#"{"ä":1}"#, "ä"), (r#"{"":1,"A":2}"#, "")]
    {
        let document = read(text);
        assert!(document.root().get(key).unwrap().is_some(), "{text}");
        assert!(!document.root().has_plain_keys(), "{text}");
    }
    assert!(read(r#"{"a_b":1,"":2}"#).root().has_plain_keys());
}
