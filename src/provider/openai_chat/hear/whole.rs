//! Reads the arguments of a call as they come, and keeps nothing of them but their place in the grammar of JSON: whether they
//! are a whole object (RFC 8259).

use crate::wire::json::Limits;

/// How far arguments were read.
#[derive(Debug, Default)]
pub(super) struct WholeObject {
    place: Place,
    /// The brackets that are open, outermost first: whether each is an object's.
    open: Vec<bool>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Nothing but white space has come.
    #[default]
    Before,
    /// A value comes; behind `[` the array may end instead.
    Value {
        may_end: bool,
    },
    /// A key comes; behind `{` the object may end instead.
    Key {
        may_end: bool,
    },
    Colon,
    /// Behind a value.
    Behind,
    Text {
        is_key: bool,
        escape: Escape,
    },
    Number(Number),
    /// What is left of `true`, `false` or `null`.
    Word(&'static [u8]),
    /// Behind the bracket that closes the first one.
    Complete,
    /// It is no object, or goes on after one.
    Never,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Escape {
    None,
    Begun,
    /// So many hex digits are missing of this code, the second half of a character or not.
    Digits {
        left: u8,
        code: u16,
        is_second: bool,
    },
    /// Behind the first half of a character: the escape of the second comes.
    Half,
    HalfBegun,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Number {
    Minus,
    Zero,
    Whole,
    Point,
    Fraction,
    Exponent,
    Sign,
    Power,
}

impl WholeObject {
    pub(super) fn take(&mut self, text: &str) {
        for byte in text.bytes() {
            self.place = self.after(byte);
        }
    }

    /// Whether all that came is one object.
    pub(super) fn is_complete(&self) -> bool {
        self.place == Place::Complete
    }

    fn after(&mut self, byte: u8) -> Place {
        match (self.place, byte) {
            (Place::Text { is_key, escape }, _) => in_text(is_key, escape, byte),
            (Place::Number(number), _) => match number.after(byte) {
                Some(number) => Place::Number(number),
                None if number.may_end() => {
                    self.place = Place::Behind;
                    self.after(byte)
                }
                None => Place::Never,
            },
            (Place::Word([next, rest @ ..]), _) if *next == byte => {
                if rest.is_empty() {
                    Place::Behind
                } else {
                    Place::Word(rest)
                }
            }
            (Place::Word(_), _) => Place::Never,
            (place, b' ' | b'\t' | b'\r' | b'\n') => place,
            (Place::Before, b'{') => self.opened(true),
            (Place::Value { may_end: true }, b']') | (Place::Key { may_end: true }, b'}') => {
                self.closed(byte)
            }
            (Place::Value { .. }, _) => self.value(byte),
            (Place::Key { .. }, b'"') => Place::Text { is_key: true, escape: Escape::None },
            (Place::Colon, b':') => Place::Value { may_end: false },
            (Place::Behind, b',') => match self.open.last() {
                Some(true) => Place::Key { may_end: false },
                Some(false) => Place::Value { may_end: false },
                None => Place::Never,
            },
            (Place::Behind, b'}' | b']') => self.closed(byte),
            (
                Place::Before
                | Place::Key { .. }
                | Place::Colon
                | Place::Behind
                | Place::Complete
                | Place::Never,
                _,
            ) => Place::Never,
        }
    }

    fn value(&mut self, byte: u8) -> Place {
        match byte {
            b'{' | b'[' => self.opened(byte == b'{'),
            b'"' => Place::Text { is_key: false, escape: Escape::None },
            b'-' => Place::Number(Number::Minus),
            b'0' => Place::Number(Number::Zero),
            b'1'..=b'9' => Place::Number(Number::Whole),
            b't' => Place::Word(b"rue"),
            b'f' => Place::Word(b"alse"),
            b'n' => Place::Word(b"ull"),
            _ => Place::Never,
        }
    }

    fn opened(&mut self, is_object: bool) -> Place {
        if self.open.len() >= Limits::default().depth {
            return Place::Never;
        }
        self.open.push(is_object);
        if is_object { Place::Key { may_end: true } } else { Place::Value { may_end: true } }
    }

    fn closed(&mut self, byte: u8) -> Place {
        match self.open.pop() {
            Some(is_object) if is_object == (byte == b'}') => {
                if self.open.is_empty() {
                    Place::Complete
                } else {
                    Place::Behind
                }
            }
            Some(_) | None => Place::Never,
        }
    }
}

fn in_text(is_key: bool, escape: Escape, byte: u8) -> Place {
    let on = |escape| Place::Text { is_key, escape };
    match (escape, byte) {
        (Escape::None, b'"') if is_key => Place::Colon,
        (Escape::None, b'"') => Place::Behind,
        (Escape::None, b'\\') => on(Escape::Begun),
        (Escape::None, 0..0x20) => Place::Never,
        (Escape::None, _) => on(Escape::None),
        (Escape::Begun, b'u') => on(Escape::Digits { left: 4, code: 0, is_second: false }),
        (Escape::Half, b'\\') => on(Escape::HalfBegun),
        (Escape::HalfBegun, b'u') => on(Escape::Digits { left: 4, code: 0, is_second: true }),
        (Escape::Begun, b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => on(Escape::None),
        (Escape::Digits { left, code, is_second }, _) => match (byte as char).to_digit(16) {
            Some(digit) => of_code(left - 1, code << 4 | digit as u16, is_second).map_or(Place::Never, on),
            None => Place::Never,
        },
        (Escape::Begun | Escape::Half | Escape::HalfBegun, _) => Place::Never,
    }
}

/// What comes behind a digit of a code; nothing may, where the code is half a character without the other half.
fn of_code(left: u8, code: u16, is_second: bool) -> Option<Escape> {
    match (code, is_second) {
        _ if left > 0 => Some(Escape::Digits { left, code, is_second }),
        (0xD800..=0xDBFF, false) => Some(Escape::Half),
        (0xDC00..=0xDFFF, true) => Some(Escape::None),
        (0xDC00..=0xDFFF, false) | (_, true) => None,
        (_, false) => Some(Escape::None),
    }
}

impl Number {
    fn after(self, byte: u8) -> Option<Self> {
        match (self, byte) {
            (Self::Minus, b'0') => Some(Self::Zero),
            (Self::Minus | Self::Whole, b'0'..=b'9') => Some(Self::Whole),
            (Self::Zero | Self::Whole, b'.') => Some(Self::Point),
            (Self::Point | Self::Fraction, b'0'..=b'9') => Some(Self::Fraction),
            (Self::Zero | Self::Whole | Self::Fraction, b'e' | b'E') => Some(Self::Exponent),
            (Self::Exponent, b'+' | b'-') => Some(Self::Sign),
            (Self::Exponent | Self::Sign | Self::Power, b'0'..=b'9') => Some(Self::Power),
            _ => None,
        }
    }

    fn may_end(self) -> bool {
        match self {
            Self::Zero | Self::Whole | Self::Fraction | Self::Power => true,
            Self::Minus | Self::Point | Self::Exponent | Self::Sign => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::wire::json::{Document, Kind};

    /// What a parser says of all of it.
    fn parses(text: &str) -> bool {
        Document::parse(text.as_bytes(), Limits::default())
            .is_ok_and(|document| document.root().kind() == Kind::Object)
    }

    fn is_whole<'a>(pieces: impl IntoIterator<Item = &'a str>) -> bool {
        let mut whole = WholeObject::default();
        pieces.into_iter().for_each(|piece| whole.take(piece));
        whole.is_complete()
    }

    #[test]
    fn an_object_is_whole_behind_its_last_bracket_alone() {
        let nested = |depth: usize| format!("{}1{}", r#"{"a":"#.repeat(depth), "}".repeat(depth));
        let texts = [
            r#"{"a": "}\"", "b": [1, {}]} "#.to_owned(),
            r#" {"a":[-0.5e+3,true,false,null,"\u00fc\ud83d\ude00"]}"#.to_owned(),
            r#"{"a":"\ud83d"}"#.to_owned(),
            r#"{"a":"\ud83dn"}"#.to_owned(),
            r#"{"a":"\ude00"}"#.to_owned(),
            r#"{"a":"\ud83d\ud83d"}"#.to_owned(),
            "{}".to_owned(),
            "{} {}".to_owned(),
            "[]".to_owned(),
            "{]".to_owned(),
            "{a}".to_owned(),
            r#"{"a":01}"#.to_owned(),
            r#"{"a":1.}"#.to_owned(),
            r#"{"a":1,}"#.to_owned(),
            "{\"a\":\"\n\"}".to_owned(),
            r#"{"a":"\x"}"#.to_owned(),
            r#"{"a":truth}"#.to_owned(),
            nested(Limits::default().depth),
            nested(Limits::default().depth + 1),
        ];
        for text in &texts {
            assert_eq!(is_whole([text.as_str()]), parses(text), "{text}");
            let beginnings = text.char_indices().map(|(end, _)| &text[..end]);
            assert!(beginnings.into_iter().all(|part| is_whole([part]) == parses(part)), "{text}");
        }
        assert!(parses(&texts[0]) && parses(&texts[1]) && parses(&texts[17]) && !parses(&texts[18]));
    }

    proptest! {
        #[test]
        fn it_is_what_a_parser_says_however_it_is_cut(
            pieces in proptest::collection::vec(
                prop_oneof![
                    proptest::sample::select(vec![
                        "{", "}", "[", "]", ",", ":", "\"a\"", "\"", "\\", "\\u00", "\\ud83d", "\\ude00", "e1", "1", "0", "-", ".5", "E", "+",
                        "true", "fal", "se", "null", " ", "\n", "\u{fc}", "{\"a\":", "\"b\":1", "\u{1}",
                    ]).prop_map(str::to_owned),
                    any::<f64>().prop_map(|number| number.to_string()),
                    any::<i64>().prop_map(|number| number.to_string()),
                ],
                0..12,
            )
        ) {
            let text = pieces.concat();
            prop_assert_eq!(is_whole(pieces.iter().map(String::as_str)), parses(&text), "{}", text);
        }
    }
}
