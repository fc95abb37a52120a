//! Follows an array byte by byte: which bytes are allowed, and how deep an element is nested.

use memchr::memchr2;

use super::error::JsonArrayError;

/// The position in the array after the bytes so far.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ArrayScan {
    place: ArrayPlace,
    /// Bytes of the current part that were seen.
    seen: usize,
    /// Bytes of the current part before its element.
    before: usize,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum ArrayPlace {
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
    Element { depth: usize, text: StringState },
    /// Behind `]`.
    Closed,
}

/// The state of strings at the next byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StringState {
    Outside,
    Inside,
    /// Behind a backslash.
    Escaped,
}

/// The end of a part that a step has reached, as an offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ScanStep {
    Nothing,
    Element(usize),
    Close(usize),
}

impl ArrayScan {
    /// Follows bytes up to the end of a part, or to their own end.
    pub(super) fn step(&mut self, bytes: &[u8]) -> Result<ScanStep, JsonArrayError> {
        let mut at = 0;
        while let Some(byte) = bytes.get(at) {
            if let ArrayPlace::Element { depth, text } = self.place {
                let rest = bytes.get(at..).unwrap_or_default();
                let (depth, text, length) = inside(depth, text, rest);
                at += length;
                self.place = ArrayPlace::Element { depth, text };
                if depth == 0 {
                    return Ok(ScanStep::Element(at));
                }
                continue;
            }
            at += 1;
            if self.between(*byte, at)? {
                return Ok(ScanStep::Close(at));
            }
        }
        self.seen += bytes.len();
        Ok(ScanStep::Nothing)
    }

    /// Takes a byte between elements; returns whether it closes the array.
    fn between(&mut self, byte: u8, at: usize) -> Result<bool, JsonArrayError> {
        self.place = match (self.place, byte) {
            (place, b' ' | b'\t' | b'\n' | b'\r') => place,
            (ArrayPlace::Start, b'[') => ArrayPlace::First,
            (ArrayPlace::Start, _) => return Err(JsonArrayError::NotArray),
            (ArrayPlace::First | ArrayPlace::Next, b'{') => {
                self.before = self.seen + at - 1;
                ArrayPlace::Element { depth: 1, text: StringState::Outside }
            }
            (ArrayPlace::Behind, b',') => ArrayPlace::Next,
            (ArrayPlace::First | ArrayPlace::Behind, b']') => {
                self.place = ArrayPlace::Closed;
                return Ok(true);
            }
            (ArrayPlace::First | ArrayPlace::Next, _) => return Err(JsonArrayError::NotObject),
            (ArrayPlace::Behind, _) => return Err(JsonArrayError::Separator),
            (ArrayPlace::Closed | ArrayPlace::Element { .. }, _) => return Err(JsonArrayError::Trailing),
        };
        Ok(false)
    }

    /// The number of bytes before the element of the part that was found.
    pub(super) fn before(&self) -> usize {
        self.before
    }

    pub(super) fn is_closed(&self) -> bool {
        self.place == ArrayPlace::Closed
    }

    /// The state at the beginning of the next part.
    pub(super) fn next(self) -> Self {
        let place = if self.is_closed() { ArrayPlace::Closed } else { ArrayPlace::Behind };
        Self { place, ..Self::default() }
    }
}

/// Follows an element: returns its depth and string state after these bytes, and how many of them belong to it.
fn inside(mut depth: usize, mut text: StringState, bytes: &[u8]) -> (usize, StringState, usize) {
    let mut at = 0;
    while let (Some(byte), true) = (bytes.get(at), depth > 0) {
        match (text, byte) {
            (StringState::Escaped, _) => text = StringState::Inside,
            (StringState::Inside, b'"') => text = StringState::Outside,
            (StringState::Inside, b'\\') => text = StringState::Escaped,
            (StringState::Inside, _) => {
                let rest = bytes.get(at..).unwrap_or_default();
                at += memchr2(b'"', b'\\', rest).unwrap_or(rest.len());
                continue;
            }
            (StringState::Outside, b'"') => text = StringState::Inside,
            (StringState::Outside, b'{' | b'[') => depth += 1,
            (StringState::Outside, b'}' | b']') => depth -= 1,
            (StringState::Outside, _) => {}
        }
        at += 1;
    }
    (depth, text, at)
}
