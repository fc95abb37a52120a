//! Reads answers of Anthropic Messages, and puts text in the place of calls that are denied.
//!
//! Blocks of a stream come strictly one after the other: while a call is held, all waits that comes after it.
//! A call becomes one block of text, so that the numbers of the blocks after it stay; a call that the provider has
//! executed becomes one block of text together with its result, and later blocks are numbered anew.
//! <https://platform.claude.com/docs/en/build-with-claude/streaming>

mod block;
mod message;
mod prose;
#[cfg(test)]
mod recording_tests;
#[cfg(test)]
mod tests;
mod usage;

use serde_json::json;

use crate::digest::sha256_hex;
use crate::provider::answer::{
    AnswerPart, BlockKind, BlockStart, Blocks, BrokenAnswer, Gate, KeepAlive, Out, StreamEvent, Transcript,
    member,
};
use crate::wire::json::{Document, EditError, Edits, Kind, Limits, Value};

use block::{ContentBlock, NamedCall};
use prose::{PlainBlock, TextBlock};
use usage::Tokens;

/// Reads one answer, streamed or whole.
pub(in crate::provider) struct MessagesTranscript {
    stage: MessageStage,
    /// SHA-256 of the first event, as long as nothing has followed it.
    start: Option<String>,
    /// Whether a part went on that could not be read: a block may have begun or ended in it.
    skipped: bool,
    /// The number that the next block must have.
    next: u64,
    blocks: Blocks<TextBlock>,
    tokens: Tokens,
}

impl Default for MessagesTranscript {
    fn default() -> Self {
        let (blocks, tokens) = (Blocks::new(TextBlock), Tokens::default());
        Self { stage: MessageStage::Before, start: None, skipped: false, next: 0, blocks, tokens }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MessageStage {
    Before,
    Running,
    Ended,
}

impl Transcript for MessagesTranscript {
    fn event(&mut self, event: &StreamEvent<'_>, gate: &mut Gate, out: &mut Out) -> Result<(), BrokenAnswer> {
        let json = event.json;
        if json.kind() != Kind::Object {
            return Err(BrokenAnswer::malformed("an event of the answer is no JSON object"));
        }
        block::distinct(json)?;
        let kind = member::text(json, "type")?.unwrap_or_default();
        if kind.is_empty() && event.name.is_some() {
            // There are clients that take the name for the type.
            return Err(BrokenAnswer::ambiguous("an event does not say its type in its JSON"));
        }
        // Outside of an event clients read nothing but errors, whatever the type is.
        let kind = if event.received.is_bare() { "error" } else { &*kind };
        match kind {
            "message_start" => self.message_start(event, gate, out),
            "content_block_start" => self.block_start(event, gate, out),
            "content_block_delta" => self.block_delta(event, gate, out),
            "content_block_stop" => self.block_stop(event, gate, out),
            "message_delta" => self.message_delta(event, gate, out),
            "message_stop" => {
                self.leave_block(gate, out);
                self.between_blocks("message_stop")?;
                self.stage = MessageStage::Ended;
                out.pass(event);
                Ok(())
            }
            "error" => {
                self.blocks.abandon(gate);
                self.stage = MessageStage::Ended;
                out.pass(event);
                Ok(())
            }
            other if other != "ping" && block::holds_call(json) => {
                Err(BrokenAnswer::ambiguous("an event of an unknown type holds a tool call"))
            }
            _ => {
                self.blocks.beside(AnswerPart::Received(event.received.clone()), out);
                Ok(())
            }
        }
    }

    /// Pieces of text and thinking change no state. After a removed block each has another number, and must be edited.
    fn free<'d>(&mut self, event: &StreamEvent<'d>) -> Vec<Value<'d>> {
        let of = |key: &str| event.json.get(key).ok().flatten();
        let Some((_, BlockKind::Plain(plain))) = self.blocks.open() else { return Vec::new() };
        let is_piece = of("type").is_some_and(|kind| kind.says("content_block_delta"));
        let delta = of("delta").filter(|_| is_piece && !self.blocks.are_renumbered());
        delta.and_then(|delta| prose::free(delta, *plain)).into_iter().collect()
    }

    fn end(&mut self, gate: &mut Gate, _: &mut Out) -> Result<(), BrokenAnswer> {
        if self.blocks.abandon(gate) {
            return Err(BrokenAnswer::ambiguous("the answer ended inside a tool call"));
        }
        Ok(())
    }

    fn whole(&mut self, body: &Document<'_>, gate: &mut Gate) -> Result<Option<Vec<u8>>, BrokenAnswer> {
        let message = body.root();
        if message.kind() != Kind::Object {
            return Err(BrokenAnswer::malformed("the answer is no JSON object"));
        }
        block::distinct(message)?;
        if member::get(message, "content")?.is_none() {
            // An error, or a count of tokens.
            let holds_call = block::holds_call(message);
            let unclear = || BrokenAnswer::ambiguous("the answer is no message, and holds a tool call");
            return if holds_call { Err(unclear()) } else { Ok(None) };
        }
        self.describe(message, gate)?;
        let decided = message::decide(message, gate)?;
        let mut edits = Edits::new(body);
        decided.edit(message, &mut edits).map_err(uneditable)?;
        Ok((!edits.is_empty()).then(|| edits.apply()))
    }

    fn is_in_call(&self) -> bool {
        self.blocks.is_in_call()
    }

    fn skipped(&mut self) {
        self.skipped = true;
        if self.stage == MessageStage::Before {
            self.stage = MessageStage::Running;
        }
    }

    fn held(&self) -> usize {
        self.blocks.held()
    }

    fn keep_alive(&self) -> KeepAlive {
        KeepAlive::Event("ping", r#"{"type": "ping"}"#)
    }

    fn broken(&mut self, message: &str, out: &mut Out) {
        let error = json!({ "type": "permission_error", "message": message });
        out.say(Some("error"), json!({ "type": "error", "error": error }).to_string());
    }
}

impl MessagesTranscript {
    fn message_start(
        &mut self,
        event: &StreamEvent<'_>,
        gate: &mut Gate,
        out: &mut Out,
    ) -> Result<(), BrokenAnswer> {
        let digest = sha256_hex(event.json.raw().as_bytes());
        if self.start.as_ref() == Some(&digest) && self.next == 0 {
            // There are proxies that send it twice; it says nothing new.
            out.pass(event);
            return Ok(());
        }
        let is_first =
            self.stage == MessageStage::Before || self.skipped && self.start.is_none() && self.next == 0;
        if !is_first {
            return Err(BrokenAnswer::ambiguous("the answer starts twice"));
        }
        let message = member::get(event.json, "message")?.filter(|message| message.kind() == Kind::Object);
        let message = message.ok_or_else(|| BrokenAnswer::malformed("message_start has no message"))?;
        block::distinct(message)?;
        self.stage = MessageStage::Running;
        self.start = Some(digest);
        self.describe(message, gate)?;
        let decided = message::decide(message, gate)?;
        self.next = decided.blocks as u64;
        if decided.denied.is_empty() {
            out.pass(event);
        } else {
            let json = edited(event.json, |root, edits| {
                root.get("message")?.map_or(Ok(()), |message| decided.edit(message, edits))
            })?;
            out.say(Some("message_start"), json);
        }
        let removed = decided.removed() as u64;
        self.blocks.follow(decided.calls, removed);
        Ok(())
    }

    fn block_start(
        &mut self,
        event: &StreamEvent<'_>,
        gate: &mut Gate,
        out: &mut Out,
    ) -> Result<(), BrokenAnswer> {
        if self.skipped {
            self.blocks.close_plain();
        }
        self.between_blocks("content_block_start")?;
        let index = index(event.json)?;
        // The part that could not be read may have been whole blocks of text.
        if self.skipped && index > self.next {
            self.next = index;
        }
        if index != self.next {
            return Err(BrokenAnswer::ambiguous(format!(
                "block {index} starts where {} is expected",
                self.next
            )));
        }
        let started = member::get(event.json, "content_block")?;
        let started = started.ok_or_else(|| BrokenAnswer::malformed("content_block_start has no block"))?;
        let block = block::read(started)?;
        self.next += 1;
        self.skipped = false;
        if let ContentBlock::Fallback { model: Some(model) } = &block {
            gate.facts.model = Some(model.clone());
        }
        let start = match block {
            ContentBlock::Call(call) => call_start(&call, false, gate),
            ContentBlock::Hosted(call) => call_start(&call, true, gate),
            ContentBlock::Result { id } if self.blocks.decided().is_replaced(&id) => BlockStart::Removed,
            ContentBlock::Text => BlockStart::Plain(PlainBlock::Text),
            ContentBlock::Thinking => BlockStart::Plain(PlainBlock::Thinking),
            ContentBlock::Result { .. } | ContentBlock::Fallback { .. } | ContentBlock::Other => {
                BlockStart::Plain(PlainBlock::Other)
            }
        };
        let part = self.renumbered(event, "content_block_start")?;
        self.blocks.start(index, start, part, out);
        Ok(())
    }

    fn block_delta(
        &mut self,
        event: &StreamEvent<'_>,
        gate: &mut Gate,
        out: &mut Out,
    ) -> Result<(), BrokenAnswer> {
        let part = self.renumbered(event, "content_block_delta")?;
        let delta = member::get(event.json, "delta")?.filter(|delta| delta.kind() == Kind::Object);
        let delta = delta.ok_or_else(|| BrokenAnswer::malformed("content_block_delta has no delta"))?;
        block::distinct(delta)?;
        if self.skipped && self.blocks.open().is_none() && index(event.json)? == self.next {
            // Its beginning could not be read; it was none of a call.
            self.blocks.start_unseen(self.next, PlainBlock::Other);
            self.next += 1;
        }
        let (index, block) = self.opened(event.json)?;
        let piece = prose::piece(delta, index, block)?;
        self.blocks.delta(&piece, part, gate, out);
        Ok(())
    }

    fn block_stop(
        &mut self,
        event: &StreamEvent<'_>,
        gate: &mut Gate,
        out: &mut Out,
    ) -> Result<(), BrokenAnswer> {
        if self.stage == MessageStage::Before {
            // Of a block of no message: clients pass over it, and nothing is lost without it.
            return Ok(());
        }
        self.opened(event.json)?;
        let part = self.renumbered(event, "content_block_stop")?;
        self.blocks.stop(part, gate, out)
    }

    fn message_delta(
        &mut self,
        event: &StreamEvent<'_>,
        gate: &mut Gate,
        out: &mut Out,
    ) -> Result<(), BrokenAnswer> {
        self.leave_block(gate, out);
        self.between_blocks("message_delta")?;
        if let Some(usage) = member::get(event.json, "usage")? {
            self.tokens.take(usage);
            gate.facts.usage = self.tokens.usage();
        }
        let delta = member::get(event.json, "delta")?;
        let reason = delta.map_or(Ok(None), |delta| member::get(delta, "stop_reason"))?;
        // With `tool_use` the client would answer with results of calls, and it has none.
        match reason.filter(|reason| reason.says("tool_use")) {
            Some(reason) if self.blocks.decided().lost_client_calls() => {
                out.say(Some("message_delta"), event.replacing(reason, r#""end_turn""#));
            }
            Some(_) | None => out.pass(event),
        }
        Ok(())
    }

    /// Takes what a message says of itself.
    fn describe(&mut self, message: Value<'_>, gate: &mut Gate) -> Result<(), BrokenAnswer> {
        gate.facts.model = block::owned(message, "model")?;
        gate.facts.id = block::owned(message, "id")?;
        if let Some(usage) = member::get(message, "usage")? {
            self.tokens.take(usage);
            gate.facts.usage = self.tokens.usage();
        }
        Ok(())
    }

    /// Closes the block in which the message ends, if there is one.
    fn leave_block(&mut self, gate: &mut Gate, out: &mut Out) {
        if self.stage == MessageStage::Running {
            self.blocks.cut(gate, out);
        }
    }

    /// Refuses what may only come after the start, before the end, and while no block is open.
    fn between_blocks(&self, what: &str) -> Result<(), BrokenAnswer> {
        match (self.stage, self.blocks.open()) {
            (MessageStage::Running, None) => Ok(()),
            (MessageStage::Running, Some(_)) => {
                Err(BrokenAnswer::ambiguous(format!("{what} comes inside a block")))
            }
            (MessageStage::Before, _) => {
                Err(BrokenAnswer::ambiguous(format!("{what} comes before the answer starts")))
            }
            (MessageStage::Ended, _) => {
                Err(BrokenAnswer::ambiguous(format!("{what} comes after the answer's end")))
            }
        }
    }

    /// The open block, which the event must be of.
    fn opened(&self, event: Value<'_>) -> Result<(u64, BlockKind<&PlainBlock>), BrokenAnswer> {
        let index = index(event)?;
        let open = self.blocks.open().filter(|(open, _)| *open == index);
        open.ok_or_else(|| BrokenAnswer::ambiguous(format!("block {index} is not open")))
    }

    /// The event with the number that its block has for the client.
    fn renumbered(&self, event: &StreamEvent<'_>, name: &'static str) -> Result<AnswerPart, BrokenAnswer> {
        if !self.blocks.are_renumbered() {
            return Ok(AnswerPart::Received(event.received.clone()));
        }
        let number = self.blocks.number(index(event.json)?).to_string();
        let value = member::get(event.json, "index")?;
        let json = value.map_or_else(String::new, |value| event.replacing(value, &number));
        Ok(AnswerPart::New { name: Some(name.into()), json })
    }
}

fn call_start(call: &NamedCall<'_>, is_hosted: bool, gate: &mut Gate) -> BlockStart<PlainBlock> {
    let begun = gate.begin(&call.head(is_hosted));
    BlockStart::Call(begun, call.input.map(str::to_owned))
}

/// The number of a block. Whole numbers have one spelling.
fn index(event: Value<'_>) -> Result<u64, BrokenAnswer> {
    let number = member::get(event, "index")?.and_then(Value::number_text);
    number
        .and_then(|number| number.parse().ok())
        .ok_or_else(|| BrokenAnswer::ambiguous("an event of a block does not say its number"))
}

/// The JSON of an event, edited. It was read within the limits, and so is its copy.
fn edited(
    event: Value<'_>,
    edit: impl for<'d> FnOnce(Value<'d>, &mut Edits<'d>) -> Result<(), EditError>,
) -> Result<String, BrokenAnswer> {
    let limits = Limits { depth: usize::MAX, nodes: usize::MAX };
    let document = Document::parse(event.raw().as_bytes(), limits).map_err(uneditable)?;
    let mut edits = Edits::new(&document);
    edit(document.root(), &mut edits).map_err(uneditable)?;
    String::from_utf8(edits.apply()).map_err(uneditable)
}

fn uneditable(error: impl std::fmt::Display) -> BrokenAnswer {
    BrokenAnswer::ambiguous(format!("the answer cannot be edited: {error}"))
}
