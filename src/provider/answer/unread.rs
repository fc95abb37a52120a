//! Judges bytes that cannot be read: whether a tool call may be in them, and how the body of a failure is framed.

use super::BrokenAnswer;
use crate::provider::adapter::Framing;
use crate::wire::json::{JsonError, Kind, Reason, Value};

/// Words of tool calls in the JSON of every dialect, in lower case.
const OF_CALLS: [&[u8]; 8] = [
    b"tool_use",
    b"tooluse",
    b"tool_call",
    b"toolcall",
    b"function",
    b"_call\"",
    b"partial_json",
    b"partialargs",
];

/// Byte order marks of the encodings in which JSON may come.
const MARKS: [&[u8]; 3] = [b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff"];

/// Members of an error beside `error`, by whoever writes it.
const BESIDE_ERROR: [&str; 12] = [
    "type",
    "object",
    "code",
    "status",
    "message",
    "detail",
    "param",
    "request_id",
    "requestId",
    "event_id",
    "user_id",
    "sequence_number",
];

/// Whether bytes that are no JSON may hold a tool call that a more lenient reader finds. Text of two or four bytes a
/// character may hold anything.
pub(in crate::provider) fn may_hold_call(bytes: &[u8]) -> bool {
    // UTF-16 and UTF-32, which some JSON parsers detect by themselves.
    if bytes.contains(&0) {
        return true;
    }
    let plain = unescaped(bytes);
    OF_CALLS.iter().any(|word| memchr::memmem::find(&plain, word).is_some())
}

/// The bytes in lower case, with escapes of ASCII characters (`\u0074`) undone.
fn unescaped(bytes: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((first, behind)) = rest.split_first() {
        let escaped = rest.strip_prefix(b"\\u00").and_then(|digits| {
            let (digits, behind) = digits.split_at_checked(2)?;
            Some((u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?, behind))
        });
        let (byte, behind) = escaped.unwrap_or((*first, behind));
        plain.push(byte.to_ascii_lowercase());
        rest = behind;
    }
    plain
}

/// Whether an object is a provider's error and nothing else. `alone`: where clients take any object for a chunk of the
/// answer, which an error with more in it would be to them.
pub(super) fn is_error(json: Value<'_>, alone: bool) -> bool {
    let is_plain = json.kind() == Kind::Object && json.duplicate().is_none();
    let mut keys = json.entries().into_iter().flatten().map(|entry| entry.key);
    let is_known =
        |key: Value<'_>| key.says("error") || !alone && BESIDE_ERROR.iter().any(|known| key.says(known));
    let error = json.get("error").ok().flatten();
    is_plain
        && keys.all(is_known)
        && error.is_some_and(|error| matches!(error.kind(), Kind::Object | Kind::String))
}

/// How the body of an answer is framed that is no success; none where it holds nothing that a client could take for an
/// answer. It is not always what its content type says: proxies answer with pages of their own.
pub(super) fn framing_of_failure(body: &[u8], said: Framing, events: Framing) -> Option<Framing> {
    // A lenient client skips a byte order mark and looks at the first character, so this does the same.
    let text = MARKS.iter().find_map(|mark| body.strip_prefix(*mark)).unwrap_or(body);
    let first = text.iter().find(|byte| !byte.is_ascii_whitespace() && **byte != 0);
    match first? {
        b'{' => Some(Framing::Whole),
        b'[' if said == Framing::Array => Some(Framing::Array),
        b'[' => Some(Framing::Whole),
        // The length of a frame, of which the first byte is 0 or 1.
        _ if said == Framing::EventStream && body.first().is_some_and(|first| *first < 2) => {
            Some(Framing::EventStream)
        }
        _ if has_event(text) => Some(events),
        _ => None,
    }
}

/// Whether a line is one that readers of server-sent events take for data, however strict they are.
fn has_event(text: &[u8]) -> bool {
    let mut lines = text.split(|byte| matches!(byte, b'\n' | b'\r'));
    lines.any(|line| {
        let field = line.trim_ascii_start().get(..5);
        field.is_some_and(|field| field.eq_ignore_ascii_case(b"data:"))
    })
}

/// Returns why JSON cannot be read: beyond a bound, or malformed.
pub(super) fn json_error(what: &str, error: JsonError) -> BrokenAnswer {
    let reason = format!("{what} is not JSON that can be read: {error}");
    match error.reason {
        Reason::TooLong | Reason::TooMany | Reason::TooDeep => BrokenAnswer::bound(reason),
        Reason::NotUtf8
        | Reason::ByteOrderMark
        | Reason::End
        | Reason::Value
        | Reason::Number
        | Reason::Key
        | Reason::Colon
        | Reason::Item
        | Reason::Entry
        | Reason::Trailing
        | Reason::Control
        | Reason::Escape
        | Reason::Surrogate => BrokenAnswer::malformed(reason),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::json::{Document, Limits};
    use crate::wire::sse::{End, Form, NameLine};

    #[test]
    fn a_call_is_suspected_in_every_spelling() {
        for call in [
            r#"{"type":"tool_use","na"#,
            r#"{"type":"\u0074OOL_\u0075se""#,
            r#"{"functionCall":{"name":NaN}}"#,
            r#"{"toolUse":{"#,
            r#"{"type":"local_shell_call","#,
        ] {
            assert!(may_hold_call(call.as_bytes()), "{call}");
        }
        assert!(may_hold_call(b"{\0\"\0t\0") && !may_hold_call(b"{\"text\":\"\xe9\"}"));
        for text in [r#"{"delta":{"text":"a tool, "#, "{", r#"{"type":"ping" \u00"#, ""] {
            assert!(!may_hold_call(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn an_error_is_one_that_nobody_takes_for_an_answer() {
        let is = |json: &str, alone: bool| {
            is_error(Document::parse(json.as_bytes(), Limits::default()).unwrap().root(), alone)
        };
        assert!(is(r#"{"error":{"code":499}}"#, true) && is(r#"{"error":"no"}"#, true));
        assert!(is(r#"{"type":"error","error":{"message":"m"},"request_id":"r"}"#, false));
        for other in [
            r#"{"candidates":[],"error":{}}"#,
            r#"{"error":{},"choices":[]}"#,
            r#"{"error":{},"error":{}}"#,
            r#"{"error":null}"#,
            r#"{"message":"no"}"#,
            "[]",
        ] {
            assert!(!is(other, true) && !is(other, false), "{other}");
        }
        assert!(!is(r#"{"type":"error","error":{}}"#, true));
    }

    #[test]
    fn a_failure_is_framed_as_its_bytes_are() {
        let events = Framing::Events(Form { name: NameLine::Absent, comments: true, end: End::Body });
        let of = |body: &[u8], said: Framing| framing_of_failure(body, said, events);
        for (body, framing) in [
            (&b" {\"error\":1}"[..], Some(Framing::Whole)),
            (b"\xff\xfe{\0", Some(Framing::Whole)),
            (b"\xef\xbb\xbf{", Some(Framing::Whole)),
            (b"[{}]", Some(Framing::Whole)),
            (b": x\n\ndata: {}\n\n", Some(events)),
            (b"oops\r DATA:{}", Some(events)),
            (b"<html>503<p\ndata-x></html>", None),
            (b"upstream connect error", None),
            (b"", None),
        ] {
            assert_eq!(of(body, Framing::Whole), framing, "{body:?}");
        }
        assert_eq!(of(b"[{\"error\":{}}]", Framing::Array), Some(Framing::Array));
        assert_eq!(of(b"upstream connect error", Framing::EventStream), None);
        assert_eq!(of(b"\0\0\0\x10", Framing::EventStream), Some(Framing::EventStream));
    }
}
