//! A text as it stands between the quotes of a JSON string: it goes from one document into another without being read.

use std::borrow::Cow;
use std::fmt;

use crate::wire::json::Value;

/// A text in its escaped form (RFC 8259, section 7), without quotes.
#[derive(Clone)]
pub struct Text<'d> {
    escaped: Cow<'d, str>,
    /// The string that it is, where it is all of one.
    origin: Option<Value<'d>>,
}

impl<'d> Text<'d> {
    /// The text of a string as the document has it; none if this is no string.
    pub fn of(value: Value<'d>) -> Option<Self> {
        let inside = value.raw().strip_prefix('"')?.strip_suffix('"')?;
        Some(Self { escaped: Cow::Borrowed(inside), origin: Some(value) })
    }

    /// A text that is not escaped yet.
    pub fn plain(text: &str) -> Self {
        let mut escaped = String::with_capacity(text.len());
        escape(text, &mut escaped);
        Self::owned(escaped)
    }

    /// A text in which nothing has to be escaped.
    pub const fn fixed(text: &'static str) -> Self {
        Self { escaped: Cow::Borrowed(text), origin: None }
    }

    /// Joins texts.
    pub fn joined(texts: &[&str]) -> Self {
        Self::owned(texts.concat())
    }

    fn owned(escaped: String) -> Self {
        Self { escaped: Cow::Owned(escaped), origin: None }
    }

    /// The string of the document that it is.
    pub fn origin(&self) -> Option<Value<'d>> {
        self.origin
    }

    /// What stands between the quotes.
    pub fn escaped(&self) -> &str {
        &self.escaped
    }

    /// The text without escapes.
    pub fn decoded(&self) -> Cow<'_, str> {
        if !self.escaped.contains('\\') {
            return Cow::Borrowed(&self.escaped);
        }
        let quoted = format!("\"{}\"", self.escaped);
        serde_json::from_str(&quoted).map_or(Cow::Borrowed(&*self.escaped), Cow::Owned)
    }

    pub fn is_empty(&self) -> bool {
        self.escaped.is_empty()
    }
}

/// Equal if they are written alike.
impl PartialEq for Text<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.escaped == other.escaped
    }
}

impl Eq for Text<'_> {}

/// Shows the length alone: a text is what people wrote.
impl fmt::Debug for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Text of {} bytes", self.escaped.len())
    }
}

/// Appends a text in its escaped form.
pub fn escape(text: &str, out: &mut String) {
    out.reserve(text.len());
    let is_special = |byte: u8| matches!(byte, 0..0x20 | b'"' | b'\\');
    let mut copied = 0;
    // A special byte is a character by itself, so that the text is cut between characters.
    for (at, byte) in text.bytes().enumerate().filter(|(_, byte)| is_special(*byte)) {
        out.push_str(text.get(copied..at).unwrap_or_default());
        copied = at + 1;
        match byte {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            control => {
                out.push_str("\\u00");
                out.push_str(&crate::digest::hex(&[control]));
            }
        }
    }
    out.push_str(text.get(copied..).unwrap_or_default());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_escaped_as_serde_escapes_it_or_as_the_standard_allows() {
        for text in ["", "plain ä\u{2028}🙂", "a\"b\\c\nd\te\rf", "\u{0}\u{8}\u{1f}\u{7f}"] {
            let mut escaped = String::new();
            escape(text, &mut escaped);
            assert_eq!(serde_json::from_str::<String>(&format!("\"{escaped}\"")).unwrap(), text);
            assert_eq!(Text::plain(text).decoded(), text);
        }
    }
}
