//! Finds where an object ends whose JSON comes in pieces, looking at each byte once.

/// How far an object has come. What is not JSON has an end as well, or none: whoever reads it then refuses it.
#[derive(Debug, Default)]
pub(super) struct Span {
    /// How many brackets are open.
    depth: usize,
    in_string: bool,
    is_escaped: bool,
    state: State,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Before,
    Inside,
    Closed,
    /// Something that is no object, or stands behind one.
    Other,
}

impl Span {
    /// Takes the next piece.
    pub(super) fn take(&mut self, piece: &str) {
        for byte in piece.bytes() {
            if self.state == State::Other {
                return;
            }
            self.byte(byte);
        }
    }

    /// Whether an object is there, whole, and nothing behind it: JSON that is complete takes no more.
    pub(super) fn is_closed(&self) -> bool {
        self.state == State::Closed
    }

    fn byte(&mut self, byte: u8) {
        if self.in_string {
            self.in_string = self.is_escaped || byte != b'"';
            self.is_escaped = !self.is_escaped && byte == b'\\';
            return;
        }
        match (&self.state, byte) {
            (State::Before | State::Closed, b' ' | b'\t' | b'\r' | b'\n') => {}
            (State::Before | State::Inside, b'{') => {
                self.state = State::Inside;
                self.depth += 1;
            }
            (State::Inside, b'[') => self.depth += 1,
            (State::Inside, b'}' | b']') => {
                self.depth -= 1;
                if self.depth == 0 {
                    self.state = State::Closed;
                }
            }
            (State::Inside, b'"') => self.in_string = true,
            (State::Inside, _) => {}
            (State::Before | State::Closed | State::Other, _) => self.state = State::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::wire::json::{Document, Limits};

    fn is_closed(pieces: &[&str]) -> bool {
        let mut span = Span::default();
        pieces.iter().for_each(|piece| span.take(piece));
        span.is_closed()
    }

    #[test]
    fn an_object_is_closed_with_its_last_bracket() {
        let text = r#" {"a":"}\"]\\","b":[{"c":1}]}"#;
        for end in 0..text.len() {
            assert!(!is_closed(&[&text[..end]]), "{}", &text[..end]);
            assert!(is_closed(&[&text[..end], &text[end..], " \n"]));
        }
    }

    #[test]
    fn what_is_no_object_or_goes_on_behind_one_is_not() {
        for text in ["", "  ", "1", "\"{}\"", "[]", "null", "{} {}", "{}x", "}", "{", "{\"}"] {
            assert!(!is_closed(&[text]), "{text}");
        }
    }

    proptest! {
        #[test]
        fn every_object_that_can_be_read_is_closed(text in r#"\{("[a-z\\\\{}]{0,3}":([0-9]|\[\{\}\]),?)?\} ?"#) {
            let is_object = Document::parse(text.as_bytes(), Limits::default()).is_ok();
            prop_assert!(!is_object || is_closed(&[&text]), "{}", text);
        }
    }
}
