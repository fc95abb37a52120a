//! Numbered events with their lines of JSON: serialised once, and shared by all sinks.

use std::io::{self, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::event::{Chain, Event};

/// With so many bytes of lines, a batch is handed over before more events are added.
const FULL_BYTES: usize = 64 << 10;

/// How many batches that were written keep their memory for others.
const SPARES: usize = 2;

/// Events in the order of their numbers.
#[derive(Debug, Default)]
pub(super) struct EventBatch {
    /// Each event, and where its line ends in `lines`.
    events: Vec<(Box<Event>, usize)>,
    lines: Vec<u8>,
}

impl EventBatch {
    /// Serialises an event behind the chain so far, and adds it; `chain` becomes that of the event. Both stay as they
    /// were where that fails.
    pub(super) fn push(&mut self, mut event: Box<Event>, chain: &mut Chain) -> serde_json::Result<()> {
        let begin = self.lines.len();
        event.chain = None;
        if let Err(error) = serde_json::to_writer(Line(&mut self.lines), &*event) {
            self.lines.truncate(begin);
            return Err(error);
        }
        *chain = chain.after(self.lines.get(begin..).unwrap_or_default());
        chain.append_to(&mut self.lines);
        event.chain = Some(*chain);
        self.events.push((event, self.lines.len()));
        Ok(())
    }

    /// Copies the denials and tool calls.
    pub(super) fn reserved(&self) -> Self {
        let mut reserved = Self::default();
        for (event, line) in self.entries().filter(|(event, _)| event.is_reserved()) {
            reserved.lines.extend_from_slice(line);
            reserved.events.push((Box::new(event.clone()), reserved.lines.len()));
        }
        reserved
    }

    /// Each event with its line.
    pub(super) fn entries(&self) -> impl Iterator<Item = (&Event, &[u8])> {
        let mut begin = 0;
        self.events.iter().map(move |(event, end)| {
            let line = self.lines.get(begin..*end).unwrap_or_default();
            begin = *end;
            (&**event, line)
        })
    }

    /// The bytes of all lines.
    pub(super) fn bytes(&self) -> usize {
        self.lines.len()
    }

    /// How many happenings its events stand for.
    pub(super) fn count(&self) -> u64 {
        self.events.iter().map(|(event, _)| event.count).sum()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// Whether it is to be handed over before more events are added.
    pub(super) fn is_full(&self) -> bool {
        self.bytes() >= FULL_BYTES
    }
}

/// The line that is being written. JSON comes a quote, a comma and a colon at a time, each of which costs a call where it is
/// copied like any other text.
struct Line<'a>(&'a mut Vec<u8>);

impl Write for Line<'_> {
    #[inline]
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        self.write_all(text)?;
        Ok(text.len())
    }

    #[inline]
    fn write_all(&mut self, text: &[u8]) -> io::Result<()> {
        match text {
            [byte] => self.0.push(*byte),
            text => self.0.extend_from_slice(text),
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Empty batches whose memory is used again: a new one of this size would be mapped and unmapped each time.
#[derive(Debug, Default)]
pub(super) struct SpareBatches(Mutex<Vec<EventBatch>>);

impl SpareBatches {
    /// An empty batch.
    pub(super) fn take(&self) -> EventBatch {
        self.spares().pop().unwrap_or_default()
    }

    /// Keeps the memory of a batch that was written, unless a long event made it large.
    pub(super) fn give_back(&self, mut batch: EventBatch) {
        batch.events.clear();
        batch.lines.clear();
        let mut spares = self.spares();
        if spares.len() < SPARES && batch.lines.capacity() <= 2 * FULL_BYTES {
            spares.push(batch);
        }
    }

    /// A poisoned lock is ignored: the batches are consistent after each step.
    fn spares(&self) -> MutexGuard<'_, Vec<EventBatch>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
