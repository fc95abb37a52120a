//! The blocks of a stream of Converse: one after the other, a call of a tool among them.
//!
//! Clients differ in how they put blocks together: some by their number, some by what came last. So a block that
//! begins before the one before it has ended, or whose number does not grow, has more than one reading.

use std::collections::BTreeSet;

use super::transcript::Shape;
use crate::provider::answer::member::{count, present, text};
use crate::provider::answer::{Broken, Call, Event, Fate, Form, Gate, Out, Part, Phase};
use crate::wire::json::Value;

/// Where a stream stands.
pub(super) struct Stream {
    shape: Shape,
    open: Option<Block>,
    /// How many bytes are kept of it.
    kept_bytes: usize,
    /// The greatest number of a block so far.
    last: Option<u64>,
    /// How many blocks went without one in their place: those after them count that much less.
    gone: u64,
    /// Whether the agent gets a call of a tool.
    calls: bool,
    denied: bool,
    /// Ids of hosted calls whose results go with them.
    results: BTreeSet<String>,
}

struct Block {
    number: u64,
    content: Content,
}

enum Content {
    /// Passes as it comes.
    Plain,
    /// `hosted`: the provider has run it.
    Call {
        call: Box<Call>,
        kept: Vec<Part>,
        hosted: bool,
    },
    /// A text stands in its place; what follows of it goes but its end.
    Replaced,
    Gone,
}

impl Stream {
    pub(super) fn new(shape: Shape) -> Self {
        let results = BTreeSet::new();
        Self { shape, open: None, kept_bytes: 0, last: None, gone: 0, calls: false, denied: false, results }
    }

    /// How many bytes are kept.
    pub(super) fn held(&self) -> usize {
        self.kept_bytes
    }

    pub(super) fn is_in_call(&self) -> bool {
        self.open.as_ref().is_some_and(|block| !matches!(block.content, Content::Plain))
    }

    /// A part could not be read, in which a block that is no call may have ended.
    pub(super) fn skipped(&mut self) {
        let is_text = self.open.as_ref().is_some_and(|block| matches!(block.content, Content::Plain));
        if is_text {
            self.open = None;
            // Its number may come once more.
            self.last = self.last.and_then(|last| last.checked_sub(1));
        }
    }

    pub(super) fn start(
        &mut self,
        event: &Event<'_>,
        body: Value<'_>,
        gate: &mut Gate,
        out: &mut Out,
    ) -> Result<(), Broken> {
        let number = self.begin(body)?;
        let start = present(body, "start")?;
        let members =
            start.and_then(Value::entries).into_iter().flatten().filter(|it| !it.value.is_null()).count();
        let call = start.map_or(Ok(None), |start| present(start, "toolUse"))?;
        let result = start.map_or(Ok(None), |start| present(start, "toolResult"))?;
        let content = match (call, result) {
            (Some(_), _) if members > 1 => {
                return Err(Broken::ambiguous("a call of a tool is something else too"));
            }
            (Some(call), _) => self.call(event, body, call, (gate, &mut *out))?,
            (None, Some(result)) if self.is_replaced(result)? => Content::Gone,
            (None, _) => {
                out.release([self.part(event, body)?]);
                Content::Plain
            }
        };
        self.open = Some(Block { number, content });
        Ok(())
    }

    /// The beginning of a call.
    fn call(
        &mut self,
        event: &Event<'_>,
        body: Value<'_>,
        call: Value<'_>,
        to: (&mut Gate, &mut Out),
    ) -> Result<Content, Broken> {
        let (gate, out) = to;
        let name = text(call, "name")?.ok_or_else(|| Broken::ambiguous("a call of a tool has no name"))?;
        let id = text(call, "toolUseId")?.unwrap_or_default();
        if present(call, "input")?.is_some_and(|input| !is_empty(input)) {
            return Err(Broken::ambiguous("a call of a tool has its input twice"));
        }
        let part = self.part(event, body)?;
        let hosted = text(call, "type")?.is_some_and(|kind| kind == "server_tool_use");
        let call = if hosted {
            gate.begin_hosted(&id, &name, None, Form::Json)
        } else {
            gate.begin(&id, &name, None, Form::Json)
        };
        let kept = match call.phase() {
            Phase::Flows => {
                out.release([part]);
                Vec::new()
            }
            Phase::Held => {
                self.kept_bytes = part.kept_bytes();
                vec![part]
            }
            Phase::Denied(text) => {
                self.replace(number(body)?, text, out);
                self.results.extend(hosted.then(|| id.into_owned()));
                return Ok(Content::Replaced);
            }
        };
        Ok(Content::Call { call: Box::new(call), kept, hosted })
    }

    pub(super) fn delta(
        &mut self,
        event: &Event<'_>,
        body: Value<'_>,
        gate: &mut Gate,
        out: &mut Out,
    ) -> Result<(), Broken> {
        let number = number(body)?;
        let part = self.part(event, body)?;
        let delta = present(body, "delta")?;
        let call = delta.map_or(Ok(None), |delta| present(delta, "toolUse"))?;
        let members =
            delta.and_then(Value::entries).into_iter().flatten().filter(|it| !it.value.is_null()).count();
        let Some(block) = &mut self.open else {
            // Text begins without a start.
            if call.is_some() {
                return Err(Broken::ambiguous("a part of a call comes before its start"));
            }
            let number = self.begin(body)?;
            self.open = Some(Block { number, content: Content::Plain });
            out.release([part]);
            return Ok(());
        };
        if block.number != number {
            return Err(Broken::ambiguous("a block begins before the one before it has ended"));
        }
        let is_call = matches!(block.content, Content::Call { .. } | Content::Replaced);
        if call.is_some() != is_call && members > 0 || members > 1 && call.is_some() {
            return Err(Broken::ambiguous("a part of a call stands where none can be"));
        }
        let piece = call.map_or(Ok(None), |call| text(call, "input"))?.unwrap_or_default();
        match &mut block.content {
            Content::Plain => out.release([part]),
            Content::Replaced | Content::Gone => {}
            Content::Call { call, kept, .. } => {
                call.push(&piece, gate);
                if call.is_held() {
                    self.kept_bytes += part.kept_bytes();
                    kept.push(part);
                } else {
                    out.release([part]);
                }
            }
        }
        Ok(())
    }

    pub(super) fn stop(
        &mut self,
        event: &Event<'_>,
        body: Value<'_>,
        gate: &mut Gate,
        out: &mut Out,
    ) -> Result<(), Broken> {
        let part = self.part(event, body)?;
        self.kept_bytes = 0;
        let Some(block) = self.open.take() else {
            // Of a block in which nothing came; one that has ended cannot end again.
            self.begin(body)?;
            out.release([part]);
            return Ok(());
        };
        if block.number != number(body)? {
            return Err(Broken::ambiguous("a block ends that is not the one that began"));
        }
        match block.content {
            Content::Plain | Content::Replaced => out.release([part]),
            Content::Gone => self.gone += 1,
            Content::Call { call, kept, hosted } => {
                let (was_held, id) = (call.is_held(), call.id().to_owned());
                match gate.finish(*call) {
                    // Of one that flows, all but its end is with the agent.
                    Fate::Denied(text) if was_held => {
                        self.replace(block.number, &text, out);
                        self.results.extend(hosted.then_some(id));
                    }
                    Fate::Denied(_) | Fate::Passes => {
                        self.calls |= !hosted;
                        out.release(kept);
                    }
                }
                out.release([part]);
            }
        }
        Ok(())
    }

    /// The end of the message: it says why the model stopped.
    pub(super) fn message_stop(
        &mut self,
        event: &Event<'_>,
        body: Value<'_>,
        gate: &mut Gate,
        out: &mut Out,
    ) -> Result<(), Broken> {
        self.leave_block(gate, out);
        match present(body, "stopReason")? {
            Some(reason) if reason.says("tool_use") && self.denied && !self.calls => {
                out.release([self.spliced(event, reason, "\"end_turn\"")]);
            }
            Some(_) | None => out.pass(event),
        }
        Ok(())
    }

    /// The message ends inside a block: the model was stopped there. A call that was held is not complete, and does not
    /// go on.
    fn leave_block(&mut self, gate: &mut Gate, out: &mut Out) {
        let Some(block) = self.open.take() else { return };
        self.kept_bytes = 0;
        match block.content {
            Content::Plain => return,
            Content::Gone => {
                self.gone += 1;
                return;
            }
            Content::Replaced => {}
            Content::Call { call, hosted, .. } => match gate.cut(*call) {
                Fate::Denied(text) => self.replace(block.number, text.trim_end(), out),
                Fate::Passes => {
                    self.calls |= !hosted;
                    return;
                }
            },
        }
        // The text in its place is a whole block.
        let number = block.number.saturating_sub(self.gone);
        self.say("contentBlockStop", &format!(r#"{{"contentBlockIndex":{number}}}"#), out);
    }

    /// The stream ended inside a block: what was kept of it is lost.
    pub(super) fn give_up(&mut self, gate: &mut Gate) {
        self.kept_bytes = 0;
        if let Some(Block { content: Content::Call { call, .. }, .. }) = self.open.take() {
            gate.abandon(*call);
        }
    }

    /// A block begins.
    fn begin(&mut self, body: Value<'_>) -> Result<u64, Broken> {
        let number = number(body)?;
        if self.open.is_some() || self.last.is_some_and(|last| number <= last) {
            return Err(Broken::ambiguous("blocks are not in their order"));
        }
        self.last = Some(number);
        Ok(number)
    }

    fn is_replaced(&self, result: Value<'_>) -> Result<bool, Broken> {
        Ok(text(result, "toolUseId")?.is_some_and(|id| self.results.contains(&*id)))
    }

    /// Puts a text in the place of a call.
    fn replace(&mut self, number: u64, said: &str, out: &mut Out) {
        self.denied = true;
        let number = number.saturating_sub(self.gone);
        let text = serde_json::Value::from(said);
        let json = format!(r#"{{"contentBlockIndex":{number},"delta":{{"text":{text}}}}}"#);
        self.say("contentBlockDelta", &json, out);
    }

    fn say(&self, name: &'static str, json: &str, out: &mut Out) {
        match self.shape {
            Shape::Named => out.say(Some(name), json),
            Shape::Keyed => out.say(None, format!(r#"{{"{name}":{json}}}"#)),
        }
    }

    /// A part of a block as it goes on, with the number that the block has then.
    fn part(&self, event: &Event<'_>, body: Value<'_>) -> Result<Part, Broken> {
        let number = number(body)?;
        match present(body, "contentBlockIndex")? {
            Some(value) if self.gone > 0 => {
                Ok(self.spliced(event, value, &number.saturating_sub(self.gone).to_string()))
            }
            Some(_) | None => Ok(Part::Received(event.received.clone())),
        }
    }

    /// An event with one value changed, and every other byte as it was.
    fn spliced(&self, event: &Event<'_>, value: Value<'_>, json: &str) -> Part {
        let (data, span) = (event.received.data(), value.span());
        let text = |range: &[u8]| String::from_utf8_lossy(range).into_owned();
        let json = format!("{}{json}{}", text(&data[..span.start]), text(&data[span.end..]));
        let name = event.name.filter(|_| self.shape == Shape::Named);
        Part::New { name: name.map(|name| name.to_owned().into()), json }
    }
}

/// The number of the block that an event is about.
fn number(body: Value<'_>) -> Result<u64, Broken> {
    count(body, "contentBlockIndex")?
        .ok_or_else(|| Broken::malformed("an event of a block does not say which"))
}

fn is_empty(input: Value<'_>) -> bool {
    input.text().is_some_and(|text| text.is_empty())
        || input.entries().is_some_and(|mut entries| entries.next().is_none())
}
