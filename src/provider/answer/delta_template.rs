//! Recognises an event that differs from the one before it in its text alone, so that it goes on unparsed.
//!
//! Most of a streamed answer is one event over and over, with another piece of text in it. For an event that was read in
//! full, the dialect's transcript names the values on which nothing depends
//! ([`Transcript::free`](super::Transcript::free)). The template is every other byte of that event, from the first of
//! its lines to the blank one, with holes for those values.
//!
//! Bytes match if they are the same outside of the holes and have in each hole one string, or one whole number, that the
//! JSON parser would accept. They are then the same document in the same lines, but for those values: no key is new,
//! escaped or duplicate, nothing that could be a call has come in, and no string ends a line. So everything that holds
//! for the first event holds for them.
//!
//! An event that differs in any other byte is read in full. The template is then made anew or forgotten, because the
//! transcript may be in another state.

use crate::wire::json::{self, Kind, Value};

/// The most bytes of an event that are kept, without its text.
const LONGEST: usize = 4 << 10;

/// How many digits a number may have: 15 fit into every type that clients read numbers into, `f64` among them.
const DIGITS: usize = 15;

/// An event with holes; without holes, nothing matches it.
#[derive(Debug, Default)]
pub(super) struct DeltaTemplate {
    /// The bytes outside of the holes.
    fixed: Vec<u8>,
    /// In their order.
    holes: Vec<Hole>,
    /// The numbers in the holes of the last part that matched.
    numbers: Vec<u64>,
    reading: Vec<u64>,
}

#[derive(Debug)]
struct Hole {
    /// How many bytes of `fixed` are before it.
    before: usize,
    kind: Kind,
}

/// Parts that match a template, one behind the other.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct MatchedRun {
    pub(super) parts: usize,
    pub(super) bytes: usize,
}

impl DeltaTemplate {
    /// Removes the template: from now on nothing matches.
    pub(super) fn forget(&mut self) {
        self.holes.clear();
        self.fixed.clear();
    }

    /// Makes the template of an event. `free` are the values that become holes, of the document that begins at byte
    /// `data`. An event that is too long, or a value that cannot be a hole, leaves no template.
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

    /// Returns how many parts at the beginning of these bytes match, none of them longer than `most`.
    pub(super) fn run(&mut self, bytes: &[u8], most: usize) -> MatchedRun {
        let mut run = MatchedRun::default();
        while let Some(length) = self.first(&bytes[run.bytes..]).filter(|length| *length <= most) {
            // Only a part that matches to its end may change the numbers.
            std::mem::swap(&mut self.numbers, &mut self.reading);
            run = MatchedRun { parts: run.parts + 1, bytes: run.bytes + length };
        }
        run
    }

    /// Returns the numbers in the holes of the last part of the last run.
    pub(super) fn numbers(&self) -> &[u64] {
        &self.numbers
    }

    /// Returns the length of the first part of these bytes; none if it does not match or is not complete.
    fn first(&mut self, bytes: &[u8]) -> Option<usize> {
        let last = self.fixed.get(self.holes.last()?.before..)?;
        self.reading.clear();
        let (mut at, mut seen) = (0, 0);
        for hole in &self.holes {
            let fixed = &self.fixed[seen..hole.before];
            let rest = bytes[at..].strip_prefix(fixed)?;
            let length = match hole.kind {
                // A string of JSON has no raw control character, so that it cannot end the line that it stands in.
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

/// Whether a value can become a hole.
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

/// Returns the JSON number at the beginning, and how many digits it has. The byte behind it is one of the template.
fn whole_number(bytes: &[u8]) -> Option<(u64, usize)> {
    let length = bytes.iter().take(DIGITS + 1).take_while(|byte| byte.is_ascii_digit()).count();
    // JSON allows no leading zero; a sign, a fraction or an exponent does not match the template's next byte.
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

    /// The template of an event with this JSON, with holes for these entries.
    fn template(json: &str, free: &[&str]) -> DeltaTemplate {
        let document = Document::parse(json.as_bytes(), Limits::default()).unwrap();
        let free = free.iter().map(|key| document.root().get(key).unwrap().unwrap()).collect();
        let mut template = DeltaTemplate::default();
        template.cut(event(json).as_bytes(), BEFORE.len(), free);
        template
    }

    fn event(json: &str) -> String {
        format!("{BEFORE}{json}\n\n")
    }

    fn fits(template: &mut DeltaTemplate, event: &[u8]) -> bool {
        template.run(event, 1 << 20) == MatchedRun { parts: 1, bytes: event.len() }
    }

    #[test]
    fn any_other_text_and_number_matches() {
        let mut template = template(r#"{"n":7,"t":"a","k":[true]}"#, &["t", "n"]);
        for (number, text) in [(7, "a"), (0, ""), (123_456_789_012_345, r#"\" \\ \ud83d\ude00 } ] é"#)] {
            let event = event(&format!(r#"{{"n":{number},"t":"{text}","k":[true]}}"#));
            assert!(fits(&mut template, event.as_bytes()), "{event}");
            assert_eq!(template.numbers(), [number]);
        }
    }

    #[test]
    fn nothing_else_matches() {
        let mut template = template(r#"{"n":7,"t":"a"}"#, &["t", "n"]);
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
            assert!(!fits(&mut template, event(json).as_bytes()), "{json}");
        }
        let good = event(r#"{"n":7,"t":"?"}"#);
        let at = good.find('?').unwrap();
        for bad in [b"\xff", b"\xc3", b"\xed\xa0\x80" as &[u8]] {
            let event = [&good.as_bytes()[..at], bad, &good.as_bytes()[at + 1..]].concat();
            assert!(!fits(&mut template, &event), "{bad:?}");
        }
    }

    #[test]
    fn a_run_ends_before_what_is_not_whole_or_too_long() {
        let mut template = template(r#"{"t":"a"}"#, &["t"]);
        let (one, two) = (event(r#"{"t":"b"}"#), event(r#"{"t":"bbb"}"#));
        let run = |parts, bytes| MatchedRun { parts, bytes };
        let both = one.clone() + &two;
        assert_eq!(template.run(both.as_bytes(), 1 << 20), run(2, both.len()));
        assert_eq!(template.run(both.as_bytes(), one.len()), run(1, one.len()));
        for end in one.len()..both.len() {
            assert_eq!(template.run(&both.as_bytes()[..end], 1 << 20), run(1, one.len()));
        }
        template.forget();
        assert_eq!(template.run(both.as_bytes(), 1 << 20), MatchedRun::default());
    }

    #[test]
    fn numbers_are_those_of_the_last_part_that_fits() {
        let mut template = template(r#"{"n":1}"#, &["n"]);
        let events = event(r#"{"n":2}"#) + &event(r#"{"n":3}"#) + &event(r#"{"n":4,"call":1}"#);
        assert_eq!(template.run(events.as_bytes(), 1 << 20).parts, 2);
        assert_eq!(template.numbers(), [3]);
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
            assert!(!fits(&mut template(json, free), event(json).as_bytes()), "{json:.40}");
        }
    }
}
