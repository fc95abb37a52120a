//! Reads answers: chunks of a stream, or one that came whole.
//!
//! A call comes whole in one part, and its verdict with it. Only arguments that stream in pieces make chunks wait:
//! from the one in which such a call begins, in their order, until it is complete.

mod arguments;
mod candidate;
mod chunk;
mod hosted;
mod page;
mod part;
mod plain;
mod rewrite;

#[cfg(test)]
mod recording_tests;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use super::refusal;
use crate::provider::answer::{
    AnswerPart, BrokenAnswer, Gate, KeepAlive, Out, Received, StreamEvent, Transcript,
};
use crate::wire::json::{Document, Limits, Value};
use candidate::CandidateState;
use page::{AnswerPage, Pages, PartChange, PartIndex, PartPlace};

/// A reader of one answer.
#[derive(Debug, Default)]
pub(super) struct GeminiTranscript {
    /// By index.
    candidates: BTreeMap<u64, CandidateState>,
    pages: Pages,
    /// Which counts the numbers of the last plain chunk are.
    counted: Vec<Option<&'static str>>,
}

impl Transcript for GeminiTranscript {
    fn event(&mut self, event: &StreamEvent<'_>, gate: &mut Gate, out: &mut Out) -> Result<(), BrokenAnswer> {
        // What some hosts end every stream with says nothing.
        if event.is_done() {
            self.pages.add(Some(event.received.clone()));
        } else {
            self.read(event.json, Some(event.received.clone()), gate)?;
            self.fail(event.json, gate);
        }
        if self.candidates.values().any(CandidateState::holds) { Ok(()) } else { self.release(out) }
    }

    /// Text changes no state. Every chunk repeats the usage, and the last one counts.
    fn free<'d>(&mut self, event: &StreamEvent<'d>) -> Vec<Value<'d>> {
        if event.is_done() || self.held() > 0 {
            return Vec::new();
        }
        let Some(plain) = plain::read(event.json) else { return Vec::new() };
        self.counted = plain.names;
        plain.texts.into_iter().chain(plain.numbers).collect()
    }

    fn again(&mut self, numbers: &[u64], gate: &mut Gate) {
        let place = |name: &str| self.counted.iter().position(|counted| *counted == Some(name));
        let count = |name: &str| place(name).and_then(|place| numbers.get(place).copied());
        gate.facts.usage = chunk::used(gate.facts.usage, count);
    }

    fn end(&mut self, gate: &mut Gate, out: &mut Out) -> Result<(), BrokenAnswer> {
        self.give_up(gate)?;
        self.release(out)
    }

    fn whole(&mut self, body: &Document<'_>, gate: &mut Gate) -> Result<Option<Vec<u8>>, BrokenAnswer> {
        self.read(body.root(), None, gate)?;
        self.give_up(gate)?;
        let Some(page) = self.next() else { return Ok(None) };
        if page.changes.is_empty() { Ok(None) } else { rewrite::rewrite(body, &page.changes).map(Some) }
    }

    fn is_in_call(&self) -> bool {
        self.candidates.values().any(CandidateState::is_in_call)
    }

    fn held(&self) -> usize {
        self.pages.bytes() + self.candidates.values().map(CandidateState::bytes).sum::<usize>()
    }

    /// Nothing: Google's own clients lose an event over a comment, and read every event as a chunk.
    fn keep_alive(&self) -> KeepAlive {
        KeepAlive::Nothing
    }

    fn broken(&mut self, message: &str, out: &mut Out) {
        out.say(None, refusal::last_part(message));
    }
}

impl GeminiTranscript {
    fn read(
        &mut self,
        chunk: Value<'_>,
        received: Option<Received>,
        gate: &mut Gate,
    ) -> Result<(), BrokenAnswer> {
        let answer = chunk::fields(chunk::unwrap(chunk)?)?;
        chunk::note(&answer, &mut gate.facts);
        let candidates = chunk::candidates(&answer)?;
        let page = self.pages.add(received);
        for (position, candidate) in candidates.iter().enumerate() {
            let at = PartPlace { page, place: PartIndex { candidate: position, part: 0 } };
            let state = self.candidates.entry(candidate.index).or_default();
            state.read(candidate, at, &mut self.pages, gate)?;
        }
        Ok(())
    }

    /// A chunk that is an error ends the answer, and with it calls that are under way.
    fn fail(&mut self, chunk: Value<'_>, gate: &mut Gate) {
        if chunk.get("error").ok().flatten().is_some_and(|error| !error.is_null()) {
            self.candidates.values_mut().for_each(|state| state.cut(&mut self.pages, gate));
        }
    }

    /// Gives up pending calls: nothing of a held one goes on.
    fn give_up(&mut self, gate: &mut Gate) -> Result<(), BrokenAnswer> {
        let waited = self.candidates.values_mut().filter_map(|state| state.end(gate).then_some(())).count();
        if waited > 0 {
            return Err(BrokenAnswer::ambiguous("the answer ended inside a tool call"));
        }
        Ok(())
    }

    /// Lets all chunks go on that have waited.
    fn release(&mut self, out: &mut Out) -> Result<(), BrokenAnswer> {
        while let Some(page) = self.next() {
            let Some(received) = page.received else { continue };
            if page.changes.is_empty() {
                out.release([AnswerPart::Received(received)]);
                continue;
            }
            // It was read before, within the bounds.
            let limits = Limits { depth: usize::MAX, nodes: usize::MAX };
            let document = Document::parse(received.data(), limits);
            let document = document.map_err(|error| chunk::unclear(&error.to_string()))?;
            let edited = String::from_utf8(rewrite::rewrite(&document, &page.changes)?);
            out.say(None, edited.map_err(|error| chunk::unclear(&error.to_string()))?);
        }
        Ok(())
    }

    /// Returns the next chunk of which every call is decided.
    fn next(&mut self) -> Option<AnswerPage> {
        let mut page = self.pages.next()?;
        for call in &page.calls {
            let is_denied = matches!(page.changes.parts.get(&call.place), Some(PartChange::Text(_)));
            let state = self.candidates.entry(call.candidate).or_default();
            if let Some(signature) = state.takes_over(call.signature.as_deref(), is_denied) {
                page.changes.parts.insert(call.place, PartChange::Signature(signature));
            }
        }
        Some(page)
    }
}
