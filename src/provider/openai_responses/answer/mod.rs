//! Guards answers: a call is kept from the event with which it begins to the one with which it is complete, and a
//! message stands in the place of one that is denied, in every copy.

mod called;
mod copies;
mod facts;
mod item;
mod lane;
mod queue;
#[cfg(test)]
mod recording_tests;
mod say;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use super::super::answer::member::get;
use super::super::answer::{Broken, Event, Gate, KeepAlive, Out, Transcript};
use crate::wire::json::{Document, Kind, Value};
use lane::Lane;

/// Events that end a response. Each has all of it.
pub(super) const ENDS: [&str; 3] = ["response.completed", "response.incomplete", "response.failed"];

/// The most lanes of one WebSocket.
const MOST_LANES: usize = 256;

/// Reads one answer, or all answers of one WebSocket.
#[derive(Default)]
pub(super) struct Responses {
    /// By `stream_id`, which events have where a WebSocket has several responses at a time.
    lanes: BTreeMap<Option<String>, Lane>,
}

impl Transcript for Responses {
    fn event(&mut self, event: &Event<'_>, gate: &mut Gate, out: &mut Out) -> Result<(), Broken> {
        // What is no object has no entries.
        let stream = called::text(event.json, "stream_id")?;
        let stream = stream.as_deref();
        if self.lanes.len() >= MOST_LANES && !self.lanes.contains_key(&stream.map(str::to_owned)) {
            // What is over needs no memory.
            self.lanes.retain(|_, lane| lane.is_open());
        }
        if self.lanes.len() >= MOST_LANES && !self.lanes.contains_key(&stream.map(str::to_owned)) {
            return Err(Broken::bound(format!("more than {MOST_LANES} answers at a time")));
        }
        let lane = self.lanes.entry(stream.map(str::to_owned)).or_insert_with(|| Lane::new(stream));
        lane.event(event, gate, out)
    }

    /// Where several answers come at once, each has its own numbers.
    fn free<'d>(&mut self, event: &Event<'d>) -> Vec<Value<'d>> {
        let mut lanes = self.lanes.values();
        match (lanes.next(), lanes.next()) {
            (Some(lane), None) => lane.free(event),
            _ => Vec::new(),
        }
    }

    fn again(&mut self, numbers: &[u64], _: &mut Gate) {
        self.lanes.values_mut().for_each(|lane| lane.again(numbers));
    }

    fn end(&mut self, gate: &mut Gate, out: &mut Out) -> Result<(), Broken> {
        let waits = self.lanes.values().any(Lane::waits);
        for lane in self.lanes.values_mut() {
            lane.abandon(gate);
            lane.flush(out);
        }
        if waits {
            return Err(Broken::malformed("the answer ended before a tool call in it was complete"));
        }
        Ok(())
    }

    fn whole(&mut self, body: &Document<'_>, gate: &mut Gate) -> Result<Option<Vec<u8>>, Broken> {
        let root = body.root();
        if root.kind() != Kind::Object {
            return Ok(None);
        }
        // Some servers send the event that would have ended the stream.
        let response = get(root, "response")?.filter(|value| value.kind() == Kind::Object);
        let mut lane = Lane::new(None);
        let mut cuts = queue::Cuts::new();
        for response in [Some(root), response].into_iter().flatten() {
            lane.read(response, gate)?;
            cuts.extend(lane.snapshot(response, true, gate)?);
        }
        cuts.sort_by_key(|(span, _)| span.start);
        Ok((!cuts.is_empty()).then(|| queue::cut(body.bytes(), &cuts)))
    }

    fn held(&self) -> usize {
        self.lanes.values().map(Lane::held).sum()
    }

    fn keep_alive(&self) -> KeepAlive {
        KeepAlive::Comment
    }

    /// Codex gives up after 300 s without an event, and a comment is none for it (protocols: its idle timer is around
    /// the next event of the stream).
    fn heartbeat(&self) -> Option<(&'static str, String)> {
        self.lanes.values().find_map(Lane::heartbeat)
    }

    fn broken(&mut self, message: &str, out: &mut Out) {
        let mut open = self.lanes.values_mut().filter(|lane| lane.is_open()).peekable();
        if open.peek().is_none() {
            return Lane::new(None).fail(message, out);
        }
        open.for_each(|lane| lane.fail(message, out));
    }
}

/// What a client is told over a WebSocket in the place of an answer.
pub(super) fn refused(message: &str, stream: Option<&str>) -> String {
    let told = say::Told { stream: stream.map(str::to_owned), ..say::Told::default() };
    told.failed(message, None)
}
