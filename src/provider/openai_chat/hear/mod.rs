//! Reads answers of Chat Completions, streamed or whole, into the neutral pieces of an answer, with all their disorder:
//! <https://platform.openai.com/docs/api-reference/chat/object>
//!
//! Whatever a server sends as the first choice of its answer comes out in the order in which it came: `chunk` reads one
//! JSON document, `calls` finds out which call a piece belongs to, `stages` applies the transforms.

mod calls;
mod chunk;
mod same;
mod stages;
#[cfg(test)]
mod tests;
mod usage;
mod whole;

use bytes::Bytes;

use super::FORM;
use super::transform::Transforms;
use crate::call::FailureClass::Unavailable;
use crate::call::turn::AnswerFailure;
use crate::call::turn::said::{JsonText, Said, Stop};
use crate::provider::translate::{AnswerLimits, Dropped, Listen, ReadAnswer, failure_of_error};
use crate::wire::json::{Document, Limits, Scratch};
use crate::wire::sse::{Decoder, Departure, Event, Item};

use chunk::{Chunk, Finish};
use same::{SameEvent, SameKind};
use stages::Stages;

/// After so many unreadable chunks in a row the answer is given up, whatever the policy says.
const MOST_UNREADABLE: u32 = 3;

/// What a reader must know of the request and the policy.
#[derive(Debug, Clone)]
pub(in crate::provider) struct HearTerms {
    pub(in crate::provider) transforms: Transforms,
    /// The request offers [`EXIT_TOOL`](super::transform::EXIT_TOOL) beside the agent's tools.
    pub(in crate::provider) has_exit_tool: bool,
    /// A chunk that cannot be read is left out (`failurePolicy: Open`).
    pub(in crate::provider) drops_unreadable: bool,
    pub(in crate::provider) limits: AnswerLimits,
}

/// Reads one answer.
pub(in crate::provider) struct ChatReader {
    body: Body,
    answer: Answer,
    scratch: Scratch,
    same: SameEvent,
}

enum Body {
    Stream(Decoder),
    Whole(Vec<u8>),
}

/// The state of the answer, apart from its framing.
struct Answer {
    stages: Stages,
    finish: Option<Finish>,
    /// The server's name of its model was told.
    has_begun: bool,
    /// Something of the first choice was read.
    has_choice: bool,
    is_over: bool,
    unreadable: u32,
    drops_unreadable: bool,
    dropped: Dropped,
    limits: AnswerLimits,
}

impl ChatReader {
    pub(in crate::provider) fn new(terms: &HearTerms, is_stream: bool) -> Self {
        let body = if is_stream {
            Body::Stream(Decoder::new(FORM, terms.limits.event_bytes))
        } else {
            Body::Whole(Vec::new())
        };
        let answer = Answer {
            stages: Stages::new(terms),
            finish: None,
            has_begun: false,
            has_choice: false,
            is_over: false,
            unreadable: 0,
            drops_unreadable: terms.drops_unreadable,
            dropped: Dropped::default(),
            limits: terms.limits,
        };
        Self { body, answer, scratch: Scratch::default(), same: SameEvent::default() }
    }

    fn events(&mut self, listener: &mut dyn Listen) -> Result<(), AnswerFailure> {
        let Body::Stream(decoder) = &mut self.body else { return Ok(()) };
        while !self.answer.is_over {
            let item = decoder.next_item().map_err(|error| AnswerFailure::unreadable(&error.to_string()))?;
            match item {
                None => break,
                Some(Item::Filler(_)) => {}
                Some(Item::Event(event)) => {
                    self.answer.event(&event, &mut self.scratch, &mut self.same, listener)?;
                }
            }
        }
        Ok(())
    }
}

impl ReadAnswer for ChatReader {
    fn write(&mut self, piece: &[u8], listener: &mut dyn Listen) -> Result<(), AnswerFailure> {
        if self.answer.is_over {
            return Ok(());
        }
        match &mut self.body {
            Body::Stream(decoder) => {
                decoder.push(Bytes::copy_from_slice(piece));
                self.events(listener)
            }
            Body::Whole(body) => {
                let most = self.answer.limits.body_bytes;
                if body.len() + piece.len() > most {
                    let message = format!("the answer is longer than {most} bytes (limits.decodedBodyBytes)");
                    return Err(AnswerFailure::unreadable(&message));
                }
                body.extend_from_slice(piece);
                Ok(())
            }
        }
    }

    fn finish(&mut self, listener: &mut dyn Listen) -> Result<(), AnswerFailure> {
        match &mut self.body {
            Body::Stream(decoder) => {
                decoder.end();
                self.events(listener)?;
                self.answer.end(listener)
            }
            Body::Whole(body) => {
                let body = std::mem::take(body);
                self.answer.whole(&body, listener)
            }
        }
    }

    fn is_over(&self) -> bool {
        self.answer.is_over
    }

    fn held(&self) -> usize {
        let body = match &self.body {
            Body::Stream(_) => 0,
            Body::Whole(body) => body.len(),
        };
        body + self.answer.stages.held()
    }

    fn dropped(&self) -> &Dropped {
        &self.answer.dropped
    }
}

impl Answer {
    fn event(
        &mut self,
        event: &Event,
        scratch: &mut Scratch,
        same: &mut SameEvent,
        listener: &mut dyn Listen,
    ) -> Result<(), AnswerFailure> {
        let data = event.data().trim_ascii();
        if let Some((kind, text)) = same.matches(data) {
            self.unreadable = 0;
            return match kind {
                SameKind::Text => self.stages.text(text, listener),
                SameKind::Reasoning => self.stages.reasoning(text, listener),
            };
        }
        same.forget();
        if data.is_empty() {
            return self.beside(event);
        }
        if data == b"[DONE]" {
            return self.done(listener);
        }
        let document = match Document::parse_with(data, Limits::default(), scratch) {
            Ok(document) => document,
            // The body was cut in this event.
            Err(_) if event.departure == Some(Departure::Unterminated) => return Ok(()),
            Err(error) => return self.unread(&format!("a chunk is no JSON: {error}")),
        };
        match chunk::read(document.root(), true) {
            Ok(chunk) => {
                self.unreadable = 0;
                same.remember(data, &chunk);
                self.chunk(&chunk, listener)?;
            }
            Err(reason) => self.unread(reason)?,
        }
        document.give_back(scratch);
        Ok(())
    }

    /// Reads lines without a field, in which Google sends an error in the middle of a stream.
    fn beside(&mut self, event: &Event) -> Result<(), AnswerFailure> {
        let Some(lines) = event.bare.clone().and_then(|lines| event.raw.get(lines)) else { return Ok(()) };
        self.dropped.count("line without a field");
        match Document::parse(lines.trim_ascii(), Limits::default()) {
            Ok(document) => {
                chunk::error_of(document.root()).map_or(Ok(()), |error| Err(failure_of_error(error)))
            }
            Err(_) => Ok(()),
        }
    }

    /// A chunk cannot be read: that ends the answer, or is counted.
    fn unread(&mut self, reason: &str) -> Result<(), AnswerFailure> {
        self.unreadable += 1;
        if !self.drops_unreadable || self.unreadable >= MOST_UNREADABLE {
            return Err(AnswerFailure::unreadable(reason));
        }
        self.dropped.count("unreadable chunk");
        Ok(())
    }

    fn chunk(&mut self, chunk: &Chunk<'_>, listener: &mut dyn Listen) -> Result<(), AnswerFailure> {
        for what in &chunk.dropped {
            self.dropped.count(what);
        }
        if let Some(error) = chunk.error {
            return Err(failure_of_error(error));
        }
        let groq = chunk.groq.filter(|_| self.stages.reads_groq()).map(super::transform::groq::part);
        if let Some(error) = groq.as_ref().and_then(|own| own.error) {
            return Err(failure_of_error(error));
        }
        if !self.has_begun && (chunk.id.is_some() || chunk.model.is_some()) {
            self.has_begun = true;
            let (id, model) = (chunk.id.as_deref(), chunk.model.as_deref());
            listener.said(Said::Begin { id, model })?;
        }
        for usage in [groq.and_then(|own| own.usage), chunk.choice_usage, chunk.usage].into_iter().flatten() {
            listener.said(Said::Usage(usage::read(usage)))?;
        }
        if chunk.has_choice {
            self.choice(chunk, listener)?;
        }
        Ok(())
    }

    fn choice(&mut self, chunk: &Chunk<'_>, listener: &mut dyn Listen) -> Result<(), AnswerFailure> {
        // A whole message in a stream is the answer, unless it repeats one that came in pieces.
        let is_said = chunk.is_delta || !self.has_choice;
        if is_said {
            self.stages.delta(chunk, listener)?;
        }
        self.has_choice = true;
        match &chunk.finish {
            Some(Finish::Failed) => {
                return Err(AnswerFailure::new(
                    Unavailable,
                    "the model's server reports an error as the end of the answer",
                ));
            }
            Some(finish) => self.finish = Some(finish.clone()),
            None => {}
        }
        Ok(())
    }

    /// The stream says that it is over.
    fn done(&mut self, listener: &mut dyn Listen) -> Result<(), AnswerFailure> {
        if !self.has_choice {
            return Err(AnswerFailure::unreadable("the answer is empty"));
        }
        self.close(listener)
    }

    /// The body of a stream has ended.
    fn end(&mut self, listener: &mut dyn Listen) -> Result<(), AnswerFailure> {
        match self.finish {
            _ if self.is_over => Ok(()),
            Some(_) => self.close(listener),
            None if self.has_begun || self.has_choice => {
                Err(AnswerFailure::new(Unavailable, "the answer ended in the middle"))
            }
            None => Err(AnswerFailure::unreadable("the answer is empty")),
        }
    }

    fn close(&mut self, listener: &mut dyn Listen) -> Result<(), AnswerFailure> {
        self.is_over = true;
        let (stop, sequence) = match self.finish.take() {
            Some(Finish::Length) => (Stop::Length, None),
            Some(Finish::Filtered) => (Stop::Filtered, None),
            Some(Finish::Done { sequence }) => (Stop::Done { sequence: None }, sequence),
            Some(Finish::Failed) | None => (Stop::Done { sequence: None }, None),
        };
        self.stages.end(stop == Stop::Length, listener)?;
        (0..self.stages.mended()).for_each(|_| self.dropped.count("mended arguments"));
        let stop = match &sequence {
            Some(sequence) => Stop::Done { sequence: Some(sequence) },
            None => stop,
        };
        listener.said(Said::Stop(stop))
    }

    fn whole(&mut self, body: &[u8], listener: &mut dyn Listen) -> Result<(), AnswerFailure> {
        if self.is_over {
            return Ok(());
        }
        let body = body.trim_ascii();
        if body.is_empty() {
            return Err(AnswerFailure::unreadable("the answer is empty"));
        }
        let document = Document::parse(body, Limits::default())
            .map_err(|error| AnswerFailure::unreadable(&format!("the answer is no JSON: {error}")))?;
        if let Some(error) = chunk::error_of(document.root()) {
            return Err(failure_of_error(error));
        }
        let chunk = chunk::read(document.root(), false).map_err(AnswerFailure::unreadable)?;
        self.chunk(&chunk, listener)?;
        if !self.has_choice {
            return Err(AnswerFailure::unreadable("the answer has no choice"));
        }
        self.close(listener)
    }
}

/// Says a text unless it is empty.
fn say(text: JsonText<'_>, is_thinking: bool, listener: &mut dyn Listen) -> Result<(), AnswerFailure> {
    if text.is_empty() {
        return Ok(());
    }
    listener.said(if is_thinking { Said::Thinking(text) } else { Said::Text(text) })
}
