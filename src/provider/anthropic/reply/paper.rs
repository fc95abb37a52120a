//! Where blocks are written: a stream of events, or the `content` of one document.

use super::block::Prose;
use super::event::{self, Delta};
use crate::call::turn::said::JsonText;

/// The form in which the agent wants the answer.
pub(super) enum Paper {
    Stream,
    /// The blocks so far, with commas between them.
    Whole(Vec<u8>),
}

impl Paper {
    pub(super) fn held(&self) -> usize {
        match self {
            Self::Stream => 0,
            Self::Whole(content) => content.len(),
        }
    }

    pub(super) fn start_prose(&mut self, index: u64, prose: Prose, out: &mut Vec<u8>) {
        match (self, prose) {
            (Self::Stream, Prose::Text) => event::text_start(index, out),
            (Self::Stream, Prose::Thinking) => event::thinking_start(index, out),
            (Self::Whole(content), Prose::Text) => {
                separate(content);
                content.extend_from_slice(b"{\"type\":\"text\",\"text\":\"");
            }
            (Self::Whole(content), Prose::Thinking) => {
                separate(content);
                content.extend_from_slice(b"{\"type\":\"thinking\",\"thinking\":\"");
            }
        }
    }

    pub(super) fn piece(&mut self, index: u64, prose: Prose, piece: JsonText<'_>, out: &mut Vec<u8>) {
        match (self, prose) {
            (Self::Stream, Prose::Text) => event::delta(index, Delta::Text, piece, out),
            (Self::Stream, Prose::Thinking) => event::delta(index, Delta::Thinking, piece, out),
            (Self::Whole(content), Prose::Text | Prose::Thinking) => piece.write(content),
        }
    }

    pub(super) fn stop_text(&mut self, index: u64, out: &mut Vec<u8>) {
        match self {
            Self::Stream => event::stop(index, out),
            Self::Whole(content) => content.extend_from_slice(b"\"}"),
        }
    }

    pub(super) fn stop_thinking(&mut self, index: u64, signature: &str, out: &mut Vec<u8>) {
        match self {
            Self::Stream => {
                event::delta(index, Delta::Signature, JsonText::Plain(signature), out);
                event::stop(index, out);
            }
            Self::Whole(content) => {
                content.extend_from_slice(b"\",\"signature\":\"");
                JsonText::Plain(signature).write(content);
                content.extend_from_slice(b"\"}");
            }
        }
    }
}

/// Writes the comma before a block that is not the first.
pub(super) fn separate(content: &mut Vec<u8>) {
    if !content.is_empty() {
        content.push(b',');
    }
}
