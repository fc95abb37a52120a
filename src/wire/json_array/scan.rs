//! Follows an array byte by byte: what may stand where, and how deep an element is nested.

use memchr::memchr2;

use super::JsonArrayError;

/// Where in the array the bytes seen so far end.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Scan {
    place: Place,
    /// Bytes of the current part that were seen.
    seen: usize,
    /// Bytes of the current part in front of its element.
    before: usize,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Place {
    /// Before `[`.
    #[default]
    Start,
    /// Behind `[`.
    First,
    /// Behind an element.
    Behind,
    /// Behind a comma.
    Next,
    /// Inside an element, so many brackets deep.
    Element { depth: usize, text: Text },
    /// Behind `]`.
    Closed,
}

/// Whether the next byte belongs to a string.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Text {
    Outside,
    Inside,
    /// Behind a backslash.
    Escaped,
}

/// What a step came upon, with the offset at which it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    Nothing,
    Element(usize),
    Close(usize),
}

impl Scan {
    /// Follows bytes up to the end of a part, or to their own end.
    pub(super) fn step(&mut self, bytes: &[u8]) -> Result<Found, JsonArrayError> {
        let mut at = 0;
        while let Some(byte) = bytes.get(at) {
            if let Place::Element { depth, text } = self.place {
                let rest = bytes.get(at..).unwrap_or_default();
                let (depth, text, length) = inside(depth, text, rest);
                at += length;
                self.place = Place::Element { depth, text };
                if depth == 0 {
                    return Ok(Found::Element(at));
                }
                continue;
            }
            at += 1;
            if self.between(*byte, at)? {
                return Ok(Found::Close(at));
            }
        }
        self.seen += bytes.len();
        Ok(Found::Nothing)
    }

    /// Takes a byte that belongs to no element; answers whether it closes the array.
    fn between(&mut self, byte: u8, at: usize) -> Result<bool, JsonArrayError> {
        self.place = match (self.place, byte) {
            (place, b' ' | b'\t' | b'\n' | b'\r') => place,
            (Place::Start, b'[') => Place::First,
            (Place::Start, _) => return Err(JsonArrayError::NotArray),
            (Place::First | Place::Next, b'{') => {
                self.before = self.seen + at - 1;
                Place::Element { depth: 1, text: Text::Outside }
            }
            (Place::Behind, b',') => Place::Next,
            (Place::First | Place::Behind, b']') => {
                self.place = Place::Closed;
                return Ok(true);
            }
            (Place::First | Place::Next, _) => return Err(JsonArrayError::NotObject),
            (Place::Behind, _) => return Err(JsonArrayError::Separator),
            (Place::Closed | Place::Element { .. }, _) => return Err(JsonArrayError::Trailing),
        };
        Ok(false)
    }

    /// Bytes of the part that was found in front of its element.
    pub(super) fn before(&self) -> usize {
        self.before
    }

    pub(super) fn is_closed(&self) -> bool {
        self.place == Place::Closed
    }

    /// Where the part begins that follows the one that was found.
    pub(super) fn next(self) -> Self {
        let place = if self.is_closed() { Place::Closed } else { Place::Behind };
        Self { place, ..Self::default() }
    }
}

/// Follows an element: its depth and text state behind the bytes, and how many of them it took.
fn inside(mut depth: usize, mut text: Text, bytes: &[u8]) -> (usize, Text, usize) {
    let mut at = 0;
    while let (Some(byte), true) = (bytes.get(at), depth > 0) {
        match (text, byte) {
            (Text::Escaped, _) => text = Text::Inside,
            (Text::Inside, b'"') => text = Text::Outside,
            (Text::Inside, b'\\') => text = Text::Escaped,
            (Text::Inside, _) => {
                let rest = bytes.get(at..).unwrap_or_default();
                at += memchr2(b'"', b'\\', rest).unwrap_or(rest.len());
                continue;
            }
            (Text::Outside, b'"') => text = Text::Inside,
            (Text::Outside, b'{' | b'[') => depth += 1,
            (Text::Outside, b'}' | b']') => depth -= 1,
            (Text::Outside, _) => {}
        }
        at += 1;
    }
    (depth, text, at)
}
