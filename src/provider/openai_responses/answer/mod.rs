//! Guards answers: a call is kept from the event with which it begins to the one with which it is complete, and a
//! message stands in the place of one that is denied, in every copy.

mod called;
mod copies;
mod facts;
mod item;
mod queue;
#[cfg(test)]
mod recording_tests;
mod say;
mod stream;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use super::super::answer::member::get;
use super::super::answer::{BrokenAnswer, Gate, KeepAlive, Out, StreamEvent, Transcript};
use crate::wire::json::{Document, Kind, Value};
use stream::ResponseStream;

/// Events that end a response. Each has all of it.
pub(super) const ENDS: [&str; 3] = ["response.completed", "response.incomplete", "response.failed"];

/// The most streams of one WebSocket.
const MOST_STREAMS: usize = 256;

/// Reads one answer, or all answers of one WebSocket.
#[derive(Default)]
pub(super) struct Responses {
    /// By `stream_id`, which events have where a WebSocket has several responses at a time.
    streams: BTreeMap<Option<String>, ResponseStream>,
}

impl Transcript for Responses {
    fn event(&mut self, event: &StreamEvent<'_>, gate: &mut Gate, out: &mut Out) -> Result<(), BrokenAnswer> {
        // What is no object has no entries.
        let stream = called::text(event.json, "stream_id")?;
        let stream = stream.as_deref();
        if self.streams.len() >= MOST_STREAMS && !self.streams.contains_key(&stream.map(str::to_owned)) {
            // What is over needs no memory.
            self.streams.retain(|_, response| response.is_open());
        }
        if self.streams.len() >= MOST_STREAMS && !self.streams.contains_key(&stream.map(str::to_owned)) {
            return Err(BrokenAnswer::bound(format!("more than {MOST_STREAMS} answers at a time")));
        }
        let response =
            self.streams.entry(stream.map(str::to_owned)).or_insert_with(|| ResponseStream::new(stream));
        response.event(event, gate, out)
    }

    /// Where several answers come at once, each has its own numbers.
    fn free<'d>(&mut self, event: &StreamEvent<'d>) -> Vec<Value<'d>> {
        let mut streams = self.streams.values();
        match (streams.next(), streams.next()) {
            (Some(response), None) => response.free(event),
            _ => Vec::new(),
        }
    }

    fn again(&mut self, numbers: &[u64], _: &mut Gate) {
        self.streams.values_mut().for_each(|response| response.again(numbers));
    }

    fn end(&mut self, gate: &mut Gate, out: &mut Out) -> Result<(), BrokenAnswer> {
        let waits = self.streams.values().any(ResponseStream::waits);
        for response in self.streams.values_mut() {
            response.abandon(gate);
            response.flush(out);
        }
        if waits {
            return Err(BrokenAnswer::ambiguous("the answer ended before a tool call in it was complete"));
        }
        Ok(())
    }

    fn whole(&mut self, body: &Document<'_>, gate: &mut Gate) -> Result<Option<Vec<u8>>, BrokenAnswer> {
        let root = body.root();
        if root.kind() != Kind::Object {
            return Ok(None);
        }
        // Some servers send the event that would have ended the stream.
        let response = get(root, "response")?.filter(|value| value.kind() == Kind::Object);
        let mut reader = ResponseStream::new(None);
        let mut cuts = queue::Cuts::new();
        for response in [Some(root), response].into_iter().flatten() {
            reader.read(response, gate)?;
            cuts.extend(reader.snapshot(response, true, gate)?);
        }
        cuts.sort_by_key(|(span, _)| span.start);
        Ok((!cuts.is_empty()).then(|| queue::cut(body.bytes(), &cuts)))
    }

    fn is_in_call(&self) -> bool {
        self.streams.values().any(ResponseStream::is_in_call)
    }

    fn held(&self) -> usize {
        self.streams.values().map(ResponseStream::held).sum()
    }

    /// Codex gives up after 300 seconds without an event; `response.in_progress` tells nobody anything new.
    fn keep_alive(&self) -> KeepAlive {
        let open = self.streams.values().find(|response| response.is_open());
        open.map_or(KeepAlive::Comment, |response| {
            KeepAlive::CommentOrEvent("response.in_progress", response.in_progress())
        })
    }

    fn broken(&mut self, message: &str, out: &mut Out) {
        let mut open = self.streams.values_mut().filter(|response| response.is_open()).peekable();
        if open.peek().is_none() {
            return ResponseStream::new(None).fail(message, out);
        }
        open.for_each(|response| response.fail(message, out));
    }
}

/// Returns the error that a client reads over a WebSocket instead of an answer.
pub(super) fn refused(message: &str, stream: Option<&str>) -> String {
    let response = say::SentResponse { stream: stream.map(str::to_owned), ..say::SentResponse::default() };
    response.failed(message, None)
}
