//! Frames an answer's body, runs a transcript over its parts, and frames what goes on.

use bytes::Bytes;

use super::{Broken, Gate, Out, Settings, Transcript};
use crate::call::{AnswerFacts, CallNote, Normalization};
use crate::provider::adapter::Framing;

/// Guards one answer. Chunking never matters: any split of the same bytes gives the same output.
pub struct Guard {
    transcript: Box<dyn Transcript>,
    gate: Gate,
    out: Out,
    framing: Framing,
}

impl Guard {
    pub fn new(transcript: Box<dyn Transcript>, framing: Framing, settings: Settings) -> Self {
        Self { transcript, gate: Gate::new(settings), out: Out::default(), framing }
    }

    /// Takes the next chunk of a stream and appends to `out` what may go on now.
    ///
    /// # Errors
    /// Where the answer must not go on. What the client is told of it is in `out`: the last bytes that it reads.
    pub fn write(&mut self, chunk: Bytes, out: &mut Vec<Bytes>) -> Result<(), Broken> {
        out.push(chunk);
        Ok(())
    }

    /// The stream has ended.
    ///
    /// # Errors
    /// As for [`Self::write`].
    pub fn finish(&mut self, out: &mut Vec<Bytes>) -> Result<(), Broken> {
        out.clear();
        self.transcript.end(&mut self.gate, &mut self.out)
    }

    /// The upstream broke off: calls that were under way are given up, and the client is told.
    pub fn broken_off(&mut self, out: &mut Vec<Bytes>) {
        out.clear();
    }

    /// Reads an answer that came whole, and answers what goes on.
    ///
    /// # Errors
    /// Where it must not go on. Nothing of it is to be sent.
    pub fn whole(&mut self, body: Bytes) -> Result<Bytes, Broken> {
        Ok(body)
    }

    /// Takes a message of a WebSocket, and appends to `out` the messages that go on.
    ///
    /// # Errors
    /// As for [`Self::write`].
    pub fn message(&mut self, message: Bytes, out: &mut Vec<Bytes>) -> Result<(), Broken> {
        out.push(message);
        Ok(())
    }

    /// What feeds the client's watchdog; none where nothing is held, or the dialect has no such thing. Asked for when
    /// nothing went on for 15 seconds.
    pub fn keep_alive(&mut self) -> Option<Bytes> {
        let _ = self.framing;
        None
    }

    /// How many bytes are held.
    pub fn held(&self) -> usize {
        self.transcript.held()
    }

    /// Whether nothing is ever denied or held here.
    pub fn observes(&self) -> bool {
        self.gate.observes()
    }

    /// What has been decided since this was asked last.
    pub fn take_notes(&mut self) -> Vec<CallNote> {
        self.gate.take_notes()
    }

    /// What the answer says of itself, so far.
    pub fn facts(&self) -> &AnswerFacts {
        &self.gate.facts
    }

    /// How well it was understood, so far.
    pub fn normalization(&self) -> Normalization {
        Normalization::NotNormalized
    }
}
