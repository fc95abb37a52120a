//! A block of an answer in Messages, while it is open or waits for the one before it.

use aws_lc_rs::digest::{Context, SHA256};

use super::waiting::Waiting;
use crate::call::turn::said::JsonText;
use crate::digest::hex;

/// What a block of prose is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Prose {
    Text,
    Thinking,
}

/// A block of an answer.
pub(super) struct Block {
    pub(super) content: BlockContent,
    /// What came before it could be written, as the inside of a JSON string.
    pub(super) waiting: Waiting,
    /// Its start was written.
    pub(super) is_started: bool,
}

pub(super) enum BlockContent {
    Text,
    Thinking(Box<Signature>),
    Call(CallBlock),
}

/// A call.
pub(super) struct CallBlock {
    /// Its number among the calls of the answer.
    pub(super) number: u32,
    /// As the model's server names it.
    pub(super) id: Option<String>,
    pub(super) name: Option<String>,
    /// Its input is a whole object.
    pub(super) is_complete: bool,
    /// Its input so far, if the agent wants the answer whole.
    pub(super) input: String,
}

impl Block {
    /// An empty block of prose; `label` is the model's.
    pub(super) fn prose(prose: Prose, label: &str) -> Self {
        let content = match prose {
            Prose::Text => BlockContent::Text,
            Prose::Thinking => BlockContent::Thinking(Box::new(Signature::new(label))),
        };
        Self { content, waiting: Waiting::default(), is_started: false }
    }

    pub(super) fn call(number: u32) -> Self {
        let call = CallBlock { number, id: None, name: None, is_complete: false, input: String::new() };
        Self { content: BlockContent::Call(call), waiting: Waiting::default(), is_started: false }
    }

    /// What prose it is; `None` of a call.
    pub(super) fn kind(&self) -> Option<Prose> {
        match self.content {
            BlockContent::Text => Some(Prose::Text),
            BlockContent::Thinking(_) => Some(Prose::Thinking),
            BlockContent::Call(_) => None,
        }
    }

    /// Signs a piece, if it is one of thinking.
    pub(super) fn sign(&mut self, piece: JsonText<'_>) {
        match &mut self.content {
            BlockContent::Thinking(signature) => signature.digest.update(piece.text().as_bytes()),
            BlockContent::Text | BlockContent::Call(_) => {}
        }
    }

    /// Whether the next block may begin behind it.
    pub(super) fn is_complete(&self) -> bool {
        match &self.content {
            BlockContent::Text | BlockContent::Thinking(_) => true,
            BlockContent::Call(call) => call.is_complete,
        }
    }

    /// Whether its start can be written.
    pub(super) fn can_start(&self) -> bool {
        match &self.content {
            BlockContent::Text | BlockContent::Thinking(_) => true,
            BlockContent::Call(call) => call.name.is_some(),
        }
    }
}

/// The signature of reasoning, by which it is recognised when the agent sends it back: whose it is, and that nobody
/// changed it.
pub(super) struct Signature {
    label: String,
    digest: Context,
}

/// How many hex digits of the digest stand in a signature.
const DIGITS: usize = 32;

impl Signature {
    fn new(label: &str) -> Self {
        Self { label: label.to_owned(), digest: Context::new(&SHA256) }
    }

    /// `postern.1.LABEL.` and 32 hex digits of the text's SHA-256.
    pub(super) fn text(&self) -> String {
        let mut digits = hex(self.digest.clone().finish().as_ref());
        digits.truncate(DIGITS);
        format!("postern.1.{}.{digits}", self.label)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_names_the_label_and_the_text() {
        let mut block = Block::prose(Prose::Thinking, "coder");
        block.sign(JsonText::Plain("reas"));
        block.sign(JsonText::Raw(r"oni\u006eg"));
        let BlockContent::Thinking(signature) = block.content else { panic!("the block is no thinking") };
        // printf 'reasoning' | sha256sum
        assert_eq!(signature.text(), "postern.1.coder.0c4d01e81bb3d1fd0dc4a0b422451895");
    }
}
