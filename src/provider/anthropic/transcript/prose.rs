//! Which pieces a block takes, and the block of text that replaces a denied call.

use std::borrow::Cow;

use super::message::text_json;
use crate::provider::answer::{AnswerPart, BlockDialect, BlockKind, BrokenAnswer, Out, member};
use crate::wire::json::Value;

/// A block that is no call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PlainBlock {
    Text,
    Thinking,
    Other,
}

/// Replaces a denied call by a whole block of text, so that nothing of the call's block goes on.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct TextBlock;

impl BlockDialect for TextBlock {
    type Plain = PlainBlock;

    fn replace(&self, number: u64, text: &str, out: &mut Out) {
        let delta = format!(r#"{{"type":"text_delta","text":{}}}"#, serde_json::Value::from(text));
        for (name, rest) in [
            ("content_block_start", format!(r#","content_block":{}"#, text_json(""))),
            ("content_block_delta", format!(r#","delta":{delta}"#)),
            ("content_block_stop", String::new()),
        ] {
            out.say(Some(name), format!(r#"{{"type":"{name}","index":{number}{rest}}}"#));
        }
    }

    fn end_replaced(&self, _: u64, _: Option<AnswerPart>, _: &mut Out) {}
}

/// Reads what a delta adds to the input of a call; the empty string for every other block.
///
/// # Errors
/// If the delta is of another kind than the block: clients differ in what they make of that.
pub(super) fn piece<'d>(
    delta: Value<'d>,
    index: u64,
    block: BlockKind<&PlainBlock>,
) -> Result<Cow<'d, str>, BrokenAnswer> {
    let kind = member::text(delta, "type")?.unwrap_or_default();
    let fits = match block {
        BlockKind::Removed => true,
        BlockKind::Call => kind == "input_json_delta",
        BlockKind::Plain(PlainBlock::Text) => {
            !matches!(&*kind, "input_json_delta" | "thinking_delta" | "signature_delta")
        }
        BlockKind::Plain(PlainBlock::Thinking) => {
            !matches!(&*kind, "input_json_delta" | "text_delta" | "citations_delta")
        }
        BlockKind::Plain(PlainBlock::Other) => kind != "input_json_delta",
    };
    if !fits {
        return Err(BrokenAnswer::ambiguous(format!("block {index} takes no piece of this type")));
    }
    if block != BlockKind::Call {
        return Ok(Cow::Borrowed(""));
    }
    let piece = member::text(delta, "partial_json")?;
    piece.ok_or_else(|| BrokenAnswer::ambiguous("a piece of a tool's input is no string"))
}

/// The text of a delta of text or thinking, on which nothing here depends.
pub(super) fn free<'d>(delta: Value<'d>, block: PlainBlock) -> Option<Value<'d>> {
    let (kind, key) = match block {
        PlainBlock::Text => ("text_delta", "text"),
        PlainBlock::Thinking => ("thinking_delta", "thinking"),
        PlainBlock::Other => return None,
    };
    let member = |key: &str| delta.get(key).ok().flatten();
    member(key).filter(|_| member("type").is_some_and(|name| name.says(kind)))
}
