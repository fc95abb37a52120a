//! The blocks of a stream of Converse: one after the other, a call of a tool among them.
//!
//! Clients differ in how they put blocks together: some by their number, some by what came last. So a block that
//! begins before the one before it has ended, or whose number does not grow, has more than one reading.

use super::transcript::EventShape;
use crate::provider::answer::member::{count, present, text};
use crate::provider::answer::{
    AnswerPart, BlockDialect, BlockKind, BlockStart, Blocks, BrokenAnswer, CallHead, Gate, Out, PendingCall,
    StreamEvent,
};
use crate::wire::json::Value;

/// One stream.
pub(super) struct ConverseStream {
    shape: EventShape,
    blocks: Blocks<EventShape>,
    /// The greatest number of a block so far.
    last: Option<u64>,
}

/// A block of text needs no start, so that a denied call becomes one delta, and the end of the call its end.
impl BlockDialect for EventShape {
    type Plain = ();

    fn replace(&self, number: u64, text: &str, out: &mut Out) {
        let text = serde_json::Value::from(text);
        let json = format!(r#"{{"contentBlockIndex":{number},"delta":{{"text":{text}}}}}"#);
        self.say("contentBlockDelta", &json, out);
    }

    fn end_replaced(&self, number: u64, received: Option<AnswerPart>, out: &mut Out) {
        match received {
            Some(part) => out.release([part]),
            None => self.say("contentBlockStop", &format!(r#"{{"contentBlockIndex":{number}}}"#), out),
        }
    }
}

impl EventShape {
    fn say(self, name: &'static str, json: &str, out: &mut Out) {
        match self {
            Self::Named => out.say(Some(name), json),
            Self::Keyed => out.say(None, format!(r#"{{"{name}":{json}}}"#)),
        }
    }
}

impl ConverseStream {
    pub(super) fn new(shape: EventShape) -> Self {
        Self { shape, blocks: Blocks::new(shape), last: None }
    }

    /// How many bytes are kept.
    pub(super) fn held(&self) -> usize {
        self.blocks.held()
    }

    pub(super) fn is_in_call(&self) -> bool {
        self.blocks.is_in_call()
    }

    /// Closes a block of text: the part that could not be read may have been its end.
    pub(super) fn skipped(&mut self) {
        if self.blocks.close_plain() {
            // Its number may come once more.
            self.last = self.last.and_then(|last| last.checked_sub(1));
        }
    }

    pub(super) fn start(
        &mut self,
        event: &StreamEvent<'_>,
        body: Value<'_>,
        gate: &mut Gate,
        out: &mut Out,
    ) -> Result<(), BrokenAnswer> {
        let number = self.begin(body)?;
        let start = present(body, "start")?;
        let call = start.map_or(Ok(None), |start| present(start, "toolUse"))?;
        let result = start.map_or(Ok(None), |start| present(start, "toolResult"))?;
        let block = match (call, result) {
            (Some(_), _) if members(start) > 1 => {
                return Err(BrokenAnswer::ambiguous("a call of a tool is something else too"));
            }
            (Some(call), _) => BlockStart::Call(begin_call(call, gate)?, None),
            (None, Some(result)) if self.is_replaced(result)? => BlockStart::Removed,
            (None, _) => BlockStart::Plain(()),
        };
        self.blocks.start(number, block, self.part(event, body)?, out);
        Ok(())
    }

    pub(super) fn delta(
        &mut self,
        event: &StreamEvent<'_>,
        body: Value<'_>,
        gate: &mut Gate,
        out: &mut Out,
    ) -> Result<(), BrokenAnswer> {
        let number = number(body)?;
        let part = self.part(event, body)?;
        let delta = present(body, "delta")?;
        let call = delta.map_or(Ok(None), |delta| present(delta, "toolUse"))?;
        match self.blocks.open() {
            None if call.is_some() => {
                return Err(BrokenAnswer::ambiguous("a part of a call comes before its start"));
            }
            // Text begins without a start.
            None => {
                let number = self.begin(body)?;
                self.blocks.start_unseen(number, ());
            }
            Some((open, _)) if open != number => {
                return Err(BrokenAnswer::ambiguous("a block begins before the one before it has ended"));
            }
            Some((_, kind)) => {
                let (is_call, members) = (kind == BlockKind::Call, members(delta));
                // An empty delta fits every block. A delta that is a call and something else has two readings.
                if call.is_some() != is_call && members > 0 || members > 1 && call.is_some() {
                    return Err(BrokenAnswer::ambiguous("a part of a call stands where none can be"));
                }
            }
        }
        let piece = call.map_or(Ok(None), |call| text(call, "input"))?.unwrap_or_default();
        self.blocks.delta(&piece, part, gate, out);
        Ok(())
    }

    pub(super) fn stop(
        &mut self,
        event: &StreamEvent<'_>,
        body: Value<'_>,
        gate: &mut Gate,
        out: &mut Out,
    ) -> Result<(), BrokenAnswer> {
        let part = self.part(event, body)?;
        match self.blocks.open() {
            // Of a block in which nothing came; one that has ended cannot end again.
            None => {
                self.begin(body)?;
            }
            Some((open, _)) if open != number(body)? => {
                return Err(BrokenAnswer::ambiguous("a block ends that is not the one that began"));
            }
            Some(_) => {}
        }
        self.blocks.stop(part, gate, out)
    }

    /// Reads the end of the message, which says why the model stopped.
    pub(super) fn message_stop(
        &mut self,
        event: &StreamEvent<'_>,
        body: Value<'_>,
        gate: &mut Gate,
        out: &mut Out,
    ) -> Result<(), BrokenAnswer> {
        self.blocks.cut(gate, out);
        match present(body, "stopReason")? {
            Some(reason) if reason.says("tool_use") && self.blocks.decided().lost_calls() => {
                out.release([self.edited(event, reason, "\"end_turn\"")]);
            }
            Some(_) | None => out.pass(event),
        }
        Ok(())
    }

    /// The stream ended inside a block: what was kept of it is lost.
    pub(super) fn give_up(&mut self, gate: &mut Gate) {
        self.blocks.abandon(gate);
    }

    /// Takes the number of a block that begins.
    fn begin(&mut self, body: Value<'_>) -> Result<u64, BrokenAnswer> {
        let number = number(body)?;
        if self.blocks.open().is_some() || self.last.is_some_and(|last| number <= last) {
            return Err(BrokenAnswer::ambiguous("blocks are not in their order"));
        }
        self.last = Some(number);
        Ok(number)
    }

    fn is_replaced(&self, result: Value<'_>) -> Result<bool, BrokenAnswer> {
        Ok(text(result, "toolUseId")?.is_some_and(|id| self.blocks.decided().is_replaced(&id)))
    }

    /// An event of a block, with the number that the block has for the client.
    fn part(&self, event: &StreamEvent<'_>, body: Value<'_>) -> Result<AnswerPart, BrokenAnswer> {
        let number = number(body)?;
        match present(body, "contentBlockIndex")? {
            Some(value) if self.blocks.are_renumbered() => {
                Ok(self.edited(event, value, &self.blocks.number(number).to_string()))
            }
            Some(_) | None => Ok(AnswerPart::Received(event.received.clone())),
        }
    }

    fn edited(&self, event: &StreamEvent<'_>, value: Value<'_>, json: &str) -> AnswerPart {
        let name = event.name.filter(|_| self.shape == EventShape::Named);
        AnswerPart::New { name: name.map(|name| name.to_owned().into()), json: event.replacing(value, json) }
    }
}

/// Reads the start of a call, and asks about it.
fn begin_call(call: Value<'_>, gate: &mut Gate) -> Result<PendingCall, BrokenAnswer> {
    let name = text(call, "name")?.ok_or_else(|| BrokenAnswer::ambiguous("a call of a tool has no name"))?;
    let id = text(call, "toolUseId")?.unwrap_or_default();
    if present(call, "input")?.is_some_and(|input| !is_empty(input)) {
        return Err(BrokenAnswer::ambiguous("a call of a tool has its input twice"));
    }
    let is_hosted = text(call, "type")?.is_some_and(|kind| kind == "server_tool_use");
    Ok(gate.begin(&CallHead { is_hosted, ..CallHead::new(&id, &name) }))
}

/// How many members of an object are not null.
fn members(object: Option<Value<'_>>) -> usize {
    object.and_then(Value::entries).into_iter().flatten().filter(|entry| !entry.value.is_null()).count()
}

/// The number of the block that an event is about.
fn number(body: Value<'_>) -> Result<u64, BrokenAnswer> {
    count(body, "contentBlockIndex")?
        .ok_or_else(|| BrokenAnswer::malformed("an event of a block does not say which"))
}

fn is_empty(input: Value<'_>) -> bool {
    input.text().is_some_and(|text| text.is_empty())
        || input.entries().is_some_and(|mut entries| entries.next().is_none())
}
