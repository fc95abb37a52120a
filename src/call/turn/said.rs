//! The pieces of a model's answer in the order in which they come, in no vendor's dialect.

use std::borrow::Cow;

use super::{AnswerFailure, escape};
use crate::call::Usage;
use crate::wire::json;

/// A piece of an answer. Whoever reads the model's dialect makes these, whoever writes the agent's dialect takes them.
///
/// Pieces of calls may be interleaved with each other and with text. A call's pieces have its number; calls are numbered
/// from 0 in the order in which they began.
#[derive(Debug, Clone)]
pub enum Said<'d> {
    /// The model's server has begun to answer, with its own id and the name of its model as far as it tells them.
    Begin { id: Option<&'d str>, model: Option<&'d str> },
    /// Text for the user; it may be white space, and is never empty.
    Text(JsonText<'d>),
    /// Reasoning; it may be white space, and is never empty.
    Thinking(JsonText<'d>),
    /// The model reasons, and nobody reads it: a sign of life.
    Hidden,
    /// A call begins: it keeps this place among texts and calls. Its name may be still to come.
    CallStart { call: u32 },
    /// The name of a call, once, with the id that the model's server gave it; it gives none to some calls.
    CallName { call: u32, id: Option<&'d str>, name: &'d str },
    /// The next piece of a call's arguments, which are JSON if the model made no mistake; never empty.
    CallInput { call: u32, piece: JsonText<'d> },
    /// The arguments of a call are a whole JSON object. White space may follow.
    CallComplete { call: u32 },
    /// The tokens of the whole answer. A later report replaces an earlier one.
    Usage(Usage),
    /// The answer is whole: nothing follows.
    Stop(Stop<'d>),
    /// The answer cannot be continued: nothing follows.
    Failed(&'d AnswerFailure),
}

/// Why a model stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop<'d> {
    /// It was done, or wants results of calls. If the server tells which of the request's stop sequences it met, this is
    /// the sequence.
    Done { sequence: Option<&'d str> },
    /// It reached the limit of tokens.
    Length,
    /// The server's filter of contents cut it.
    Filtered,
}

/// A text as it can be written into a JSON string.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JsonText<'d> {
    /// The bytes between the quotes of a JSON string that was read and found correct (RFC 8259, section 7).
    Raw(&'d str),
    /// The text itself, without escapes.
    Plain(&'d str),
}

impl<'d> JsonText<'d> {
    /// The content of a JSON string; `None` if the value is no string, or an empty one.
    pub fn of(value: json::Value<'d>) -> Option<Self> {
        let raw = value.raw();
        let inside = raw.get(1..raw.len().saturating_sub(1))?;
        (value.kind() == json::Kind::String && !inside.is_empty()).then_some(Self::Raw(inside))
    }

    /// The text without escapes.
    pub fn text(self) -> Cow<'d, str> {
        match self {
            Self::Raw(raw) => json::unescape(raw),
            Self::Plain(text) => Cow::Borrowed(text),
        }
    }

    /// Whether it has no escapes, so that its bytes are the text.
    pub fn plain(self) -> Option<&'d str> {
        match self {
            Self::Raw(raw) => (!raw.as_bytes().contains(&b'\\')).then_some(raw),
            Self::Plain(text) => Some(text),
        }
    }

    /// Whether it is white space alone (Unicode's).
    pub fn is_blank(self) -> bool {
        let (Self::Raw(bytes) | Self::Plain(bytes)) = self;
        match bytes.as_bytes().first() {
            // Most pieces begin with a letter.
            Some(first) if first.is_ascii_graphic() && *first != b'\\' => false,
            Some(_) | None => self.text().chars().all(char::is_whitespace),
        }
    }

    /// The length in bytes as it stands, which is at least that of the text.
    pub fn len(self) -> usize {
        let (Self::Raw(bytes) | Self::Plain(bytes)) = self;
        bytes.len()
    }

    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Appends the text as the inside of a JSON string.
    pub fn write(self, out: &mut Vec<u8>) {
        match self {
            Self::Raw(raw) => out.extend_from_slice(raw.as_bytes()),
            Self::Plain(text) => {
                let mut escaped = String::with_capacity(text.len());
                escape(text, &mut escaped);
                out.extend_from_slice(escaped.as_bytes());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_escaped_as_json_wants_it() {
        let mut out = Vec::new();
        JsonText::Plain("a\"\\\n\r\t\u{1}\u{1f}é").write(&mut out);
        assert_eq!(out, r#"a\"\\\n\r\t\u0001\u001fé"#.as_bytes());
    }

    #[test]
    fn raw_text_is_copied_as_it_stands() {
        let mut out = Vec::new();
        JsonText::Raw(r"a\u0041\/").write(&mut out);
        assert_eq!(out, br"a\u0041\/");
        assert_eq!(JsonText::Raw(r"a\u0041\/").text(), "aA/");
        assert_eq!(JsonText::Raw(r"a\u0041").plain(), None);
        assert_eq!(JsonText::Raw("a").plain(), Some("a"));
    }

    #[test]
    fn white_space_is_recognised_however_it_is_escaped() {
        for blank in [r"\n\n", " ", r"\u0020\t", "\u{a0}\u{2003}"] {
            assert!(JsonText::Raw(blank).is_blank(), "{blank:?}");
        }
        for text in [r"\\", "a", r"\n.", r"\u0041", "é"] {
            assert!(!JsonText::Raw(text).is_blank(), "{text:?}");
        }
    }
}
