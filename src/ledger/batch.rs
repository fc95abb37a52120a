//! Numbered events with their lines of JSON: serialised once, and shared by all sinks.

use crate::event::Event;

/// With so many bytes of lines or so many events, a batch is handed over before more events are added.
const FULL_BYTES: usize = 64 << 10;
// Its allocation stays below the 128 KiB from which allocators map and unmap pages for each.
pub(super) const FULL_EVENTS: usize = 64;

/// More than the length of a usual line.
const LINE_BYTES: usize = 512;

/// Events in the order of their numbers.
#[derive(Debug, Default)]
pub(super) struct EventBatch {
    /// Each event, and where its line ends in `lines`.
    events: Vec<(Event, usize)>,
    lines: Vec<u8>,
}

impl EventBatch {
    /// A batch that has room for so many usual events.
    pub(super) fn for_events(events: usize) -> Self {
        let events = events.min(FULL_EVENTS);
        let bytes = events * LINE_BYTES;
        Self { events: Vec::with_capacity(events), lines: Vec::with_capacity(bytes) }
    }

    /// Serialises an event and adds it. A batch stays as it was where that fails.
    pub(super) fn push(&mut self, event: Event) -> serde_json::Result<()> {
        let begin = self.lines.len();
        let serialised = serde_json::to_writer(&mut self.lines, &event);
        match serialised {
            Ok(()) => self.events.push((event, self.lines.len())),
            Err(_) => self.lines.truncate(begin),
        }
        serialised
    }

    /// Copies the denials and tool calls.
    pub(super) fn reserved(&self) -> Self {
        let mut reserved = Self::default();
        for (event, line) in self.entries().filter(|(event, _)| event.is_reserved()) {
            reserved.lines.extend_from_slice(line);
            reserved.events.push((event.clone(), reserved.lines.len()));
        }
        reserved
    }

    /// Each event with its line.
    pub(super) fn entries(&self) -> impl Iterator<Item = (&Event, &[u8])> {
        let mut begin = 0;
        self.events.iter().map(move |(event, end)| {
            let line = self.lines.get(begin..*end).unwrap_or_default();
            begin = *end;
            (event, line)
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
        self.bytes() >= FULL_BYTES || self.events.len() >= FULL_EVENTS
    }
}
