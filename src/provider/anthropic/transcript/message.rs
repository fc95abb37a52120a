//! Messages whose content is complete: whole answers, and those that stand in the first event of a stream.

use std::collections::HashSet;

use super::block::{self, Block, Named};
use crate::provider::answer::{Broken, Fate, Form, Gate, member};
use crate::wire::json::{EditError, Edits, Value};

/// What is decided about the content of a message.
#[derive(Debug, Default)]
pub(super) struct Decided {
    /// How many blocks there are.
    pub blocks: usize,
    /// The blocks that go, and the text in their place; none for a result, which goes with its call.
    pub denied: Vec<(usize, Option<String>)>,
    /// Whether a call of the client's is among them, and whether one is left.
    pub calls: Calls,
    /// Hosted calls that were replaced.
    pub replaced: HashSet<String>,
}

/// What became of the calls that the client is to execute.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Calls {
    pub denied: bool,
    pub left: bool,
}

impl Calls {
    /// Whether an answer that ends for a call has none any more, because they were denied.
    pub(super) fn are_gone(self) -> bool {
        self.denied && !self.left
    }

    pub(super) fn count(&mut self, denied: bool) {
        self.denied |= denied;
        self.left |= !denied;
    }
}

/// Reads a message's content and asks about its calls.
///
/// # Errors
/// Where it cannot be understood, or can in two ways.
pub(super) fn decide(message: Value<'_>, gate: &mut Gate) -> Result<Decided, Broken> {
    let mut decided = Decided::default();
    let Some(content) = member::present(message, "content")? else {
        return Ok(decided);
    };
    let content = content.items().ok_or_else(|| Broken::malformed("the answer's content is no array"))?;
    for (index, item) in content.enumerate() {
        decided.blocks += 1;
        match block::read(item)? {
            Block::Call(call) => {
                let input = (Form::Json, call.input.unwrap_or("{}"));
                let fate = gate.whole(&call.id, &call.name, call.namespace.as_deref(), input);
                decided.calls.count(matches!(fate, Fate::Denied(_)));
                decided.settle(index, fate);
            }
            Block::Hosted(call) => decided.hosted(index, &call, gate),
            Block::Result { id } if decided.replaced.contains(&*id) => decided.denied.push((index, None)),
            Block::Fallback { model } => gate.facts.model = model.or_else(|| gate.facts.model.take()),
            Block::Result { .. } | Block::Text | Block::Thinking | Block::Other => {}
        }
    }
    Ok(decided)
}

impl Decided {
    fn hosted(&mut self, index: usize, call: &Named<'_>, gate: &mut Gate) {
        let mut begun = gate.begin_hosted(&call.id, &call.name, call.namespace.as_deref(), Form::Json);
        begun.push(call.input.unwrap_or("{}"), gate);
        let fate = gate.finish(begun);
        if matches!(fate, Fate::Denied(_)) {
            self.replaced.insert(call.id.clone().into_owned());
        }
        self.settle(index, fate);
    }

    fn settle(&mut self, index: usize, fate: Fate) {
        if let Fate::Denied(text) = fate {
            self.denied.push((index, Some(text)));
        }
    }

    /// How many blocks go without anything in their place.
    pub(super) fn dropped(&self) -> usize {
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
                Some((_, Some(text))) => edits.replace(item, text_block(text))?,
            }
        }
        let stop_reason = message.get("stop_reason")?.filter(|reason| reason.says("tool_use"));
        match stop_reason {
            Some(reason) if self.calls.are_gone() => edits.replace(reason, r#""end_turn""#),
            _ => Ok(()),
        }
    }
}

/// A block of text.
pub(super) fn text_block(text: &str) -> String {
    format!(r#"{{"type":"text","text":{}}}"#, serde_json::Value::from(text))
}
