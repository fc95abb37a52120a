//! Finds out whether the input of a call is complete, in one pass over it however often that is asked.

use crate::wire::json::{Document, Limits};

/// How far an input was read, and in which state of the JSON grammar.
#[derive(Debug, Default)]
pub(super) struct InputExtent {
    /// How many bytes have been read.
    read: usize,
    place: JsonPlace,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum JsonPlace {
    /// Nothing but white space has come.
    #[default]
    Before,
    /// In so many objects and arrays.
    Inside(usize),
    /// In a string there, perhaps behind a backslash.
    Text { depth: usize, escaped: bool },
    /// Behind the bracket that closes the first one.
    Closed,
    /// A whole value was read.
    Complete,
    /// The input is no object or array, or continues after one.
    Never,
}

impl InputExtent {
    /// Whether `input` is a whole object or array. It must begin with the input of the call before.
    pub(super) fn is_complete(&mut self, input: &str) -> bool {
        for byte in input.bytes().skip(self.read) {
            self.place = self.place.after(byte);
        }
        self.read = self.read.max(input.len());
        if self.place == JsonPlace::Closed {
            // Brackets alone say little: what is between them is parsed, once.
            let parses = Document::parse(input.as_bytes(), Limits::default()).is_ok();
            self.place = if parses { JsonPlace::Complete } else { JsonPlace::Never };
        }
        self.place == JsonPlace::Complete
    }
}

impl JsonPlace {
    fn after(self, byte: u8) -> Self {
        match (self, byte) {
            (Self::Before | Self::Closed | Self::Complete, b' ' | b'\t' | b'\r' | b'\n') => self,
            (Self::Before, b'{' | b'[') => Self::Inside(1),
            (Self::Inside(depth), b'{' | b'[') => Self::Inside(depth + 1),
            // Kinds of brackets are not compared here: the parser does that once the first one is closed.
            (Self::Inside(1), b'}' | b']') => Self::Closed,
            (Self::Inside(depth), b'}' | b']') => Self::Inside(depth - 1),
            (Self::Inside(depth), b'"') => Self::Text { depth, escaped: false },
            (Self::Inside(depth), _) => Self::Inside(depth),
            (Self::Text { depth, escaped: false }, b'"') => Self::Inside(depth),
            (Self::Text { depth, escaped }, _) => Self::Text { depth, escaped: !escaped && byte == b'\\' },
            (Self::Before | Self::Closed | Self::Complete | Self::Never, _) => Self::Never,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_input_is_complete_behind_the_bracket_that_closes_it() {
        let inputs = [
            (r#"{"a": "}\"", "b": [1, {}]} "#, true),
            ("[]", true),
            (r#"{"a": "}"#, false),
            (r#"{"a": {}"#, false),
            ("", false),
            ("  ", false),
            ("12", false),
            ("{} {}", false),
            ("{]", false),
            ("{a}", false),
        ];
        for (input, complete) in inputs {
            assert_eq!(InputExtent::default().is_complete(input), complete, "{input}");
            let mut extent = InputExtent::default();
            let by_and_by = (0..=input.len()).map(|end| extent.is_complete(&input[..end])).last();
            // What follows a complete input was asked about, too.
            assert_eq!(by_and_by, Some(complete), "{input}");
        }
    }

    #[test]
    fn what_was_read_is_not_read_again() {
        let mut extent = InputExtent::default();
        assert!(!extent.is_complete("{\"a\": 1"));
        // Another beginning of the same length: it is not looked at.
        assert!(!extent.is_complete("}}}}}}}"));
        assert!(!extent.is_complete("}}}}}}}, \"b\": [2"));
        assert_eq!((extent.read, extent.place), (16, JsonPlace::Inside(2)));
        assert!(extent.is_complete("{\"a\": 1, \"b\": [2]}"));
    }
}
