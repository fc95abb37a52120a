//! A sink: a place where events are kept, or to which they are sent.

use std::io;
use std::time::Instant;

use crate::event::Event;

/// Keeps or sends events. Each sink has a thread and a queue of its own, so it may block without stalling another.
pub trait Sink: Send {
    /// Takes an event and its line of JSON, which has no line break. The sink may hold it back until the next flush.
    fn write(&mut self, event: &Event, line: &[u8]) -> io::Result<()>;

    /// Lets go of all events that were held back; called when no further event waits, and they are due.
    fn flush(&mut self) -> io::Result<()>;

    /// Until when events that are held back may gather, whether or not others come. Where it says nothing, they may not.
    fn due(&self) -> Option<Instant> {
        None
    }

    /// Does upkeep; called after each second in which no event came.
    fn idle(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Ends within seconds: no event comes any more.
    fn close(&mut self) -> io::Result<()> {
        self.flush()
    }
}

/// What happens to events while the queue of a sink is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OnPressure {
    /// They wait. When as many wait as the ledger holds, new work of the gateway waits too.
    Block,
    /// They are dropped and counted. The last eighth of the queue is for denials and tool calls.
    Drop,
}

/// How many bytes of lines wait for one sink, unless it says otherwise.
pub(super) const QUEUE_BYTES: usize = 2 << 20;

/// A sink, its name in logs, and what happens while its queue is full.
pub struct NamedSink {
    pub(super) name: &'static str,
    pub(super) on_pressure: OnPressure,
    pub(super) queue_bytes: usize,
    pub(super) sink: Box<dyn Sink>,
}

impl NamedSink {
    /// A sink for which events wait.
    pub fn blocking(name: &'static str, sink: impl Sink + 'static) -> Self {
        Self { name, on_pressure: OnPressure::Block, queue_bytes: QUEUE_BYTES, sink: Box::new(sink) }
    }

    /// A sink that loses events rather than have anything wait for it.
    pub fn dropping(name: &'static str, sink: impl Sink + 'static) -> Self {
        Self { name, on_pressure: OnPressure::Drop, queue_bytes: QUEUE_BYTES, sink: Box::new(sink) }
    }

    /// The same sink, for which so many bytes of lines wait.
    #[must_use]
    pub fn with_queue(self, bytes: usize) -> Self {
        Self { queue_bytes: bytes, ..self }
    }
}
