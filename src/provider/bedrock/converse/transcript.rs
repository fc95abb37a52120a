//! Reads one answer of Converse, streamed or whole, and takes the calls out of it that are denied.

use super::{stream::ConverseStream, usage, whole};
use crate::provider::answer::{self, BrokenAnswer, Gate, KeepAlive, Out, StreamEvent};
use crate::provider::bedrock::plain;
use crate::wire::json::{Document, Entry, Value};

/// How the parts of a stream carry their type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::provider::bedrock) enum EventShape {
    /// By the name of the frame; its JSON is what the name is about.
    Named,
    /// By the one key of an object around it, as Nova's own streams have it.
    Keyed,
}

/// Reads one answer.
pub(in crate::provider::bedrock) struct ConverseTranscript {
    shape: EventShape,
    /// The model as the request names it: answers name none, except those of a prompt router.
    model: Option<String>,
    stream: ConverseStream,
}

impl ConverseTranscript {
    pub(in crate::provider::bedrock) fn new(shape: EventShape, model: Option<String>) -> Self {
        Self { shape, model, stream: ConverseStream::new(shape) }
    }

    fn note(&self, body: Value<'_>, gate: &mut Gate) -> Result<(), BrokenAnswer> {
        usage::read(body, &mut gate.facts.usage)?;
        if let Some(model) = usage::routed_model(body)? {
            gate.facts.model = Some(model);
        }
        Ok(())
    }

    fn named(
        &mut self,
        name: &str,
        event: &StreamEvent<'_>,
        body: Value<'_>,
        gate: &mut Gate,
        out: &mut Out,
    ) -> Result<(), BrokenAnswer> {
        match name {
            "contentBlockStart" => self.stream.start(event, body, gate, out),
            "contentBlockDelta" => self.stream.delta(event, body, gate, out),
            "contentBlockStop" => self.stream.stop(event, body, gate, out),
            "messageStop" => self.stream.message_stop(event, body, gate, out),
            "metadata" => {
                self.note(body, gate)?;
                out.pass(event);
                Ok(())
            }
            "messageStart" => {
                out.pass(event);
                Ok(())
            }
            // SDKs skip what they do not know.
            _ => {
                plain::check(body)?;
                out.pass(event);
                Ok(())
            }
        }
    }
}

impl answer::Transcript for ConverseTranscript {
    fn event(&mut self, event: &StreamEvent<'_>, gate: &mut Gate, out: &mut Out) -> Result<(), BrokenAnswer> {
        if gate.facts.model.is_none() {
            gate.facts.model.clone_from(&self.model);
        }
        match self.shape {
            EventShape::Named => self.named(event.name.unwrap_or_default(), event, event.json, gate, out),
            EventShape::Keyed => {
                if let Some(duplicate) = event.json.duplicate() {
                    return Err(BrokenAnswer::ambiguous(duplicate.to_string()));
                }
                let is_known = |entry: &Entry<'_>| KNOWN.iter().any(|known| entry.key.says(known));
                let mut known = event.json.entries().into_iter().flatten().filter(is_known);
                let Some(Entry { key, value }) = known.next() else {
                    plain::check(event.json)?;
                    out.pass(event);
                    return Ok(());
                };
                if known.next().is_some() {
                    return Err(BrokenAnswer::ambiguous("one part of the stream is two events"));
                }
                self.named(&key.text().unwrap_or_default(), event, value, gate, out)
            }
        }
    }

    fn end(&mut self, gate: &mut Gate, _: &mut Out) -> Result<(), BrokenAnswer> {
        self.stream.give_up(gate);
        Ok(())
    }

    fn whole(&mut self, body: &Document<'_>, gate: &mut Gate) -> Result<Option<Vec<u8>>, BrokenAnswer> {
        gate.facts.model.clone_from(&self.model);
        self.note(body.root(), gate)?;
        whole::read(body, gate)
    }

    fn is_in_call(&self) -> bool {
        self.stream.is_in_call()
    }

    fn skipped(&mut self) {
        self.stream.skipped();
    }

    fn held(&self) -> usize {
        self.stream.held()
    }

    fn keep_alive(&self) -> KeepAlive {
        KeepAlive::Nothing
    }

    fn broken(&mut self, message: &str, out: &mut Out) {
        crate::provider::bedrock::error::break_off(message, out);
    }
}

/// The events that a stream is made of.
pub(in crate::provider::bedrock) const KNOWN: [&str; 6] =
    ["messageStart", "contentBlockStart", "contentBlockDelta", "contentBlockStop", "messageStop", "metadata"];
