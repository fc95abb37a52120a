//! Messages whose content is complete: whole answers, and those that stand in the first event of a stream.

use super::block::{self, ContentBlock, NamedCall};
use crate::provider::answer::{BrokenAnswer, CallOutcome, Gate, MessageCalls, member};
use crate::wire::json::{EditError, Edits, Value};

/// The decisions about the content of a message.
#[derive(Debug, Default)]
pub(super) struct DecidedMessage {
    /// How many blocks there are.
    pub blocks: usize,
    /// The blocks that are replaced, each with its text; without a text the block is removed: the result of such a call.
    pub denied: Vec<(usize, Option<String>)>,
    pub calls: MessageCalls,
}

/// Reads a message's content and asks about its calls.
///
/// # Errors
/// If it cannot be understood, or can in two ways.
pub(super) fn decide(message: Value<'_>, gate: &mut Gate) -> Result<DecidedMessage, BrokenAnswer> {
    let mut decided = DecidedMessage::default();
    let Some(content) = member::present(message, "content")? else {
        return Ok(decided);
    };
    let content =
        content.items().ok_or_else(|| BrokenAnswer::malformed("the answer's content is no array"))?;
    for (index, item) in content.enumerate() {
        decided.blocks += 1;
        match block::read(item)? {
            ContentBlock::Call(call) => {
                let fate = gate.whole(&call.head(false), call.input.unwrap_or("{}"));
                decided.calls.count(false, matches!(fate, CallOutcome::Denied(_)));
                decided.settle(index, fate);
            }
            ContentBlock::Hosted(call) => decided.hosted(index, &call, gate),
            ContentBlock::Result { id } if decided.calls.is_replaced(&id) => {
                decided.denied.push((index, None))
            }
            ContentBlock::Fallback { model } => gate.facts.model = model.or_else(|| gate.facts.model.take()),
            ContentBlock::Result { .. }
            | ContentBlock::Text
            | ContentBlock::Thinking
            | ContentBlock::Other => {}
        }
    }
    Ok(decided)
}

impl DecidedMessage {
    fn hosted(&mut self, index: usize, call: &NamedCall<'_>, gate: &mut Gate) {
        // Begun, not whole: a call that is denied by its name is noted without its input, as in a stream.
        let mut begun = gate.begin(&call.head(true));
        begun.push(call.input.unwrap_or("{}"), gate);
        let fate = gate.finish(begun);
        if matches!(fate, CallOutcome::Denied(_)) {
            self.calls.remove_result_of(&*call.id);
        }
        self.settle(index, fate);
    }

    fn settle(&mut self, index: usize, fate: CallOutcome) {
        if let CallOutcome::Denied(text) = fate {
            self.denied.push((index, Some(text)));
        }
    }

    /// How many blocks are removed, with nothing in their place.
    pub(super) fn removed(&self) -> usize {
        self.denied.iter().filter(|(_, text)| text.is_none()).count()
    }

    /// Puts what was decided into the message; `message` is the one that was read, or its copy in another document.
    pub(super) fn edit<'d>(&self, message: Value<'d>, edits: &mut Edits<'d>) -> Result<(), EditError> {
        let content = message.get("content")?.and_then(Value::items).into_iter().flatten();
        let mut denied = self.denied.iter().peekable();
        for (index, item) in content.enumerate() {
            match denied.next_if(|(at, _)| *at == index) {
                None => {}
                Some((_, None)) => edits.remove(item)?,
                Some((_, Some(text))) => edits.replace(item, text_json(text))?,
            }
        }
        let stop_reason = message.get("stop_reason")?.filter(|reason| reason.says("tool_use"));
        match stop_reason {
            Some(reason) if self.calls.lost_client_calls() => edits.replace(reason, r#""end_turn""#),
            _ => Ok(()),
        }
    }
}

/// A block of text.
pub(super) fn text_json(text: &str) -> String {
    format!(r#"{{"type":"text","text":{}}}"#, serde_json::Value::from(text))
}
