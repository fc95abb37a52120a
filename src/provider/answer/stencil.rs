//! Knows an event again that differs from the one before it in its text alone.
//!
//! Most of a streamed answer is one event over and over, with another piece of text in it. A dialect's reader says of
//! an event that it has read in full which of its values could have been any other without anything coming of it
//! ([`Transcript::free`](super::Transcript::free)). The stencil is all else of that event, byte for byte, from the
//! first of its lines to the blank one.
//!
//! Bytes lie under it where they are the same outside of its holes and have in each hole one string, or one whole
//! number, that the reader of JSON would read. They are the same document then, in the same lines, but for those
//! values: the keys are the same, so none is new, escaped or there twice; nothing that could be a call has come in; and
//! a string ends no line. All that was found of the first holds of them too, so that they go on unparsed.
//!
//! Whatever does not fit, if only by a byte, is read in full. After every such part the stencil is cut anew or is gone,
//! because the reader may be in another state.

use crate::wire::json::{self, Kind, Value};

/// The most bytes that are kept of an event, beside its text.
const LONGEST: usize = 4 << 10;

/// How many digits a number may have: so many fit into every type that numbers are read into.
const DIGITS: usize = 15;

/// An event with holes; without holes, nothing lies under it.
#[derive(Debug, Default)]
pub(super) struct Stencil {
    /// The bytes outside of the holes.
    fixed: Vec<u8>,
    /// In their order.
    holes: Vec<Hole>,
    /// What stood in the holes of numbers, in the last part that lay under it.
    numbers: Vec<u64>,
    reading: Vec<u64>,
}

#[derive(Debug)]
struct Hole {
    /// How many bytes of `fixed` are before it.
    before: usize,
    kind: Kind,
}

/// Parts that lie under a stencil, one behind the other.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) parts: usize,
    pub(super) bytes: usize,
}

impl Stencil {
    /// From now on nothing lies under it.
    pub(super) fn forget(&mut self) {
        self.holes.clear();
        self.fixed.clear();
    }

    /// Takes the form of an event. `free` are its values, of the document that begins at byte `data`, in whose places
    /// there are to be holes. What none can be made of leaves no stencil.
    pub(super) fn cut(&mut self, raw: &[u8], data: usize, mut free: Vec<Value<'_>>) {
        self.forget();
        free.sort_by_key(|value| value.span().start);
        let mut copied = 0;
        for value in &free {
            let (start, end) = (data + value.span().start, data + value.span().end);
            let fixed = raw.get(copied..start).filter(|fixed| self.fixed.len() + fixed.len() <= LONGEST);
            let (Some(fixed), true) = (fixed, is_free(*value)) else { return self.forget() };
            self.fixed.extend_from_slice(fixed);
            self.holes.push(Hole { before: self.fixed.len(), kind: value.kind() });
            copied = end;
        }
        let rest = raw.get(copied..).unwrap_or_default();
        if self.holes.is_empty() || self.fixed.len() + rest.len() > LONGEST {
            return self.forget();
        }
        self.fixed.extend_from_slice(rest);
    }

    /// How many parts at the beginning of these bytes lie under it, none of them longer than `most`.
    pub(super) fn run(&mut self, bytes: &[u8], most: usize) -> Run {
        let mut run = Run::default();
        while let Some(length) = self.first(&bytes[run.bytes..]).filter(|length| *length <= most) {
            std::mem::swap(&mut self.numbers, &mut self.reading);
            run = Run { parts: run.parts + 1, bytes: run.bytes + length };
        }
        run
    }

    /// What stood in the holes of numbers, in the last part of the last run.
    pub(super) fn numbers(&self) -> &[u64] {
        &self.numbers
    }

    /// The length of the first part of these bytes; none where it does not lie under it, or is not all there.
    fn first(&mut self, bytes: &[u8]) -> Option<usize> {
        let last = self.fixed.get(self.holes.last()?.before..)?;
        self.reading.clear();
        let (mut at, mut seen) = (0, 0);
        for hole in &self.holes {
            let fixed = &self.fixed[seen..hole.before];
            let rest = bytes[at..].strip_prefix(fixed)?;
            let length = match hole.kind {
                Kind::String => json::string_length(rest)?,
                Kind::Number => {
                    let (number, length) = whole_number(rest)?;
                    self.reading.push(number);
                    length
                }
                Kind::Null | Kind::Bool | Kind::Array | Kind::Object => return None,
            };
            (at, seen) = (at + fixed.len() + length, hole.before);
        }
        bytes[at..].starts_with(last).then_some(at + last.len())
    }
}

/// Whether there can be a hole in the place of a value.
fn is_free(value: Value<'_>) -> bool {
    match value.kind() {
        Kind::String => true,
        Kind::Number => {
            let digits = value.raw().as_bytes();
            whole_number(digits).is_some_and(|(_, length)| length == digits.len())
        }
        Kind::Null | Kind::Bool | Kind::Array | Kind::Object => false,
    }
}

/// The number at the beginning, as JSON has it, and how many digits it takes. What follows it is looked at by whoever
/// compares it.
fn whole_number(bytes: &[u8]) -> Option<(u64, usize)> {
    let length = bytes.iter().take(DIGITS + 1).take_while(|byte| byte.is_ascii_digit()).count();
    if length == 0 || length > DIGITS || (length > 1 && bytes[0] == b'0') {
        return None;
    }
    let number = bytes[..length].iter().fold(0, |number, digit| number * 10 + u64::from(digit - b'0'));
    Some((number, length))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::json::{Document, Limits};

    const BEFORE: &str = "event: e\ndata: ";

    /// The stencil of an event with this JSON, with holes in the places of these entries.
    fn stencil(json: &str, free: &[&str]) -> Stencil {
        let document = Document::parse(json.as_bytes(), Limits::default()).unwrap();
        let free = free.iter().map(|key| document.root().get(key).unwrap().unwrap()).collect();
        let mut stencil = Stencil::default();
        stencil.cut(event(json).as_bytes(), BEFORE.len(), free);
        stencil
    }

    fn event(json: &str) -> String {
        format!("{BEFORE}{json}\n\n")
    }

    fn fits(stencil: &mut Stencil, event: &[u8]) -> bool {
        stencil.run(event, 1 << 20) == Run { parts: 1, bytes: event.len() }
    }

    #[test]
    fn any_other_text_and_number_lies_under_it() {
        let mut stencil = stencil(r#"{"n":7,"t":"a","k":[true]}"#, &["t", "n"]);
        for (number, text) in [(7, "a"), (0, ""), (123_456_789_012_345, r#"\" \\ \ud83d\ude00 } ] é"#)] {
            let event = event(&format!(r#"{{"n":{number},"t":"{text}","k":[true]}}"#));
            assert!(fits(&mut stencil, event.as_bytes()), "{event}");
            assert_eq!(stencil.numbers(), [number]);
        }
    }

    #[test]
    fn nothing_else_lies_under_it() {
        let mut stencil = stencil(r#"{"n":7,"t":"a"}"#, &["t", "n"]);
        for json in [
            r#"{"n":7,"t":"a","t":"b"}"#,
            r#"{"n":7,"t":"a","call":1}"#,
            r#"{"n":7,"u":"a"}"#,
            r#"{"n":7,"\u0074":"a"}"#,
            r#"{"n":7, "t":"a"}"#,
            r#"{"n":07,"t":"a"}"#,
            r#"{"n":-7,"t":"a"}"#,
            r#"{"n":7.5,"t":"a"}"#,
            r#"{"n":7e1,"t":"a"}"#,
            r#"{"n":,"t":"a"}"#,
            r#"{"n":1234567890123456,"t":"a"}"#,
            r#"{"n":7,"t":"\x"}"#,
            r#"{"n":7,"t":"\ud83d"}"#,
            r#"{"n":7,"t":"a"#,
            r#"{"n":7,"t":null}"#,
            r#"{"n":7,"t":{}}"#,
            "{\"n\":7,\"t\":\"\n\"}",
            "{\"n\":7,\"t\":\"\r\"}",
            "{\"n\":7,\"t\":\"\t\"}",
        ] {
            assert!(!fits(&mut stencil, event(json).as_bytes()), "{json}");
        }
        let good = event(r#"{"n":7,"t":"?"}"#);
        let at = good.find('?').unwrap();
        for bad in [b"\xff", b"\xc3", b"\xed\xa0\x80" as &[u8]] {
            let event = [&good.as_bytes()[..at], bad, &good.as_bytes()[at + 1..]].concat();
            assert!(!fits(&mut stencil, &event), "{bad:?}");
        }
    }

    #[test]
    fn a_run_ends_before_what_is_not_whole_or_too_long() {
        let mut stencil = stencil(r#"{"t":"a"}"#, &["t"]);
        let (one, two) = (event(r#"{"t":"b"}"#), event(r#"{"t":"bbb"}"#));
        let run = |parts, bytes| Run { parts, bytes };
        let both = one.clone() + &two;
        assert_eq!(stencil.run(both.as_bytes(), 1 << 20), run(2, both.len()));
        assert_eq!(stencil.run(both.as_bytes(), one.len()), run(1, one.len()));
        for end in one.len()..both.len() {
            assert_eq!(stencil.run(&both.as_bytes()[..end], 1 << 20), run(1, one.len()));
        }
        stencil.forget();
        assert_eq!(stencil.run(both.as_bytes(), 1 << 20), Run::default());
    }

    #[test]
    fn numbers_are_those_of_the_last_part_that_fits() {
        let mut stencil = stencil(r#"{"n":1}"#, &["n"]);
        let events = event(r#"{"n":2}"#) + &event(r#"{"n":3}"#) + &event(r#"{"n":4,"call":1}"#);
        assert_eq!(stencil.run(events.as_bytes(), 1 << 20).parts, 2);
        assert_eq!(stencil.numbers(), [3]);
    }

    #[test]
    fn there_is_none_of_what_has_no_holes_or_is_too_long() {
        let long = format!(r#"{{"t":"a","k":"{}"}}"#, "k".repeat(LONGEST));
        for (json, free) in [
            (r#"{"t":"a"}"#, &[][..]),
            (r#"{"t":null}"#, &["t"]),
            (r#"{"t":1.5}"#, &["t"]),
            (r#"{"t":"a","n":-1}"#, &["t", "n"]),
            (long.as_str(), &["t"]),
        ] {
            assert!(!fits(&mut stencil(json, free), event(json).as_bytes()), "{json:.40}");
        }
    }
}
