//! Recognises a chunk that differs from the one before it in its piece of text alone, so that it is not parsed.
//!
//! Most of a stream is one chunk over and over, with another piece of text in it. Such a chunk has the same bytes before
//! and behind one string, so that it is the same document but for this string. OpenAI adds a second string that differs,
//! `obfuscation`, which says nothing.

use super::chunk::Chunk;
use crate::call::turn::said::JsonText;
use crate::wire::json::{Kind, Value, string_length};

/// The most bytes of a chunk that are kept, without its strings.
const LONGEST: usize = 4 << 10;

/// What the piece of text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SameKind {
    Text,
    Reasoning,
}

/// The last chunk, if only its piece of text had an effect.
#[derive(Debug, Default)]
pub(super) struct SameEvent {
    kind: Option<SameKind>,
    /// Before the piece of text.
    before: Vec<u8>,
    /// Between the piece of text and the padding.
    between: Option<Vec<u8>>,
    /// Behind both.
    behind: Vec<u8>,
}

impl SameEvent {
    pub(super) fn forget(&mut self) {
        self.kind = None;
    }

    /// Keeps a chunk that was read, if the next one may be the same.
    pub(super) fn remember(&mut self, data: &[u8], chunk: &Chunk<'_>) {
        let Some((kind, text)) = chunk.alone() else { return };
        let text = text.span();
        let padding = chunk.padding.filter(|padding| padding.kind() == Kind::String).map(Value::span);
        let padding = padding.filter(|padding| padding.start >= text.end);
        let end = padding.as_ref().map_or(text.end, |padding| padding.end);
        let between = padding.and_then(|padding| data.get(text.end..padding.start));
        let (Some(before), Some(behind)) = (data.get(..text.start), data.get(end..)) else { return };
        if before.len() + behind.len() + between.map_or(0, <[u8]>::len) > LONGEST {
            return;
        }
        replace(&mut self.before, before);
        replace(&mut self.behind, behind);
        self.between = between.map(<[u8]>::to_vec);
        self.kind = Some(kind);
    }

    /// The piece of text of a chunk that is the same otherwise.
    pub(super) fn matches<'d>(&self, data: &'d [u8]) -> Option<(SameKind, JsonText<'d>)> {
        let kind = self.kind?;
        let rest = data.strip_prefix(self.before.as_slice())?;
        let length = string_length(rest)?;
        let (string, mut rest) = rest.split_at_checked(length)?;
        if let Some(between) = &self.between {
            rest = rest.strip_prefix(between.as_slice())?;
            rest = rest.get(string_length(rest)?..)?;
        }
        if rest != self.behind {
            return None;
        }
        let text = str::from_utf8(string.get(1..length - 1)?).ok()?;
        Some((kind, JsonText::Raw(text)))
    }
}

fn replace(kept: &mut Vec<u8>, bytes: &[u8]) {
    kept.clear();
    kept.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::openai_chat::hear::chunk;
    use crate::wire::json::{Document, Limits};

    fn after(first: &str) -> SameEvent {
        let mut same = SameEvent::default();
        let document = Document::parse(first.as_bytes(), Limits::default()).unwrap();
        same.remember(first.as_bytes(), &chunk::read(document.root(), true).unwrap());
        same
    }

    fn chunk(text: &str) -> String {
        format!(r#"{{"id":"a","choices":[{{"index":0,"delta":{{"content":{text}}}}}],"obfuscation":"xy"}}"#)
    }

    #[test]
    fn a_chunk_with_another_text_is_the_same() {
        let same = after(&chunk(r#""a""#));
        for (text, inside) in [(r#""""#, ""), (r#""b\"\n""#, r#"b\"\n"#), (r#""é""#, "é")] {
            let next = chunk(text).replace("xy", "a longer padding");
            assert_eq!(same.matches(next.as_bytes()), Some((SameKind::Text, JsonText::Raw(inside))));
        }
    }

    #[test]
    fn a_chunk_that_differs_elsewhere_is_read() {
        let same = after(&chunk(r#""a""#));
        for next in [
            chunk("null"),
            chunk(r#""b","content":"c""#),
            chunk(r#""b\x""#),
            chunk(r#""b""#).replace(r#""a""#, r#""b""#),
            chunk(r#""b""#) + " ",
            chunk(r#""b""#).replace("}}]", r#"},"finish_reason":"stop"}]"#),
        ] {
            assert_eq!(same.matches(next.as_bytes()), None, "{next}");
        }
    }

    #[test]
    fn a_chunk_that_says_more_than_a_text_is_not_kept() {
        for more in [
            r#""usage":{"prompt_tokens":1},"choices":[{"delta":{"content":"a"}}]"#,
            r#""choices":[{"delta":{"content":"a"},"finish_reason":"stop"}]"#,
            r#""choices":[{"delta":{"content":"a","refusal":"b"}}]"#,
            r#""choices":[{"delta":{"content":"a","reasoning":"b"}}]"#,
            r#""choices":[{"delta":{"content":"a","tool_calls":[{}]}}]"#,
            r#""choices":[{"delta":{"content":"a"}},{"index":1,"delta":{"content":"a"}}]"#,
            r#""choices":[{"delta":{"content":["a"]}}]"#,
            r#""choices":[{"message":{"content":"a"}}]"#,
        ] {
            assert_eq!(after(&format!("{{{more}}}")).kind, None, "{more}");
        }
    }
}
