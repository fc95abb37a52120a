//! The bounded queue between the writer and the thread of one sink.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::batch::EventBatch;
use super::sink::OnPressure;
use crate::event::Event;
use crate::telemetry::label::Dropped;

/// How many bytes of lines wait for one sink at most; a batch that is larger by itself waits alone.
const CAPACITY_BYTES: usize = 2 << 20;

/// The last bytes of a queue that drops events are for denials and tool calls.
const RESERVED_BYTES: usize = CAPACITY_BYTES / 8;

/// Batches that wait for one sink.
#[derive(Debug)]
pub(super) struct SinkQueue {
    on_pressure: OnPressure,
    state: Mutex<QueueState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct QueueState {
    parcels: VecDeque<Parcel>,
    bytes: usize,
    /// The writer has ended.
    is_closed: bool,
    /// The thread of the sink has ended.
    is_abandoned: bool,
}

/// A batch, or the reserved events of a batch.
#[derive(Debug)]
pub(super) struct Parcel {
    batch: Arc<EventBatch>,
    bytes: usize,
    only_reserved: bool,
}

impl Parcel {
    /// The denials and tool calls of a batch.
    fn reserved(batch: &Arc<EventBatch>) -> Self {
        let lines = batch.entries().filter(|(event, _)| event.is_reserved()).map(|(_, line)| line.len());
        Self { batch: Arc::clone(batch), bytes: lines.sum(), only_reserved: true }
    }

    /// Each event with its line.
    pub(super) fn entries(&self) -> impl Iterator<Item = (&Event, &[u8])> {
        self.batch.entries().filter(|(event, _)| !self.only_reserved || event.is_reserved())
    }

    fn count(&self) -> u64 {
        self.entries().map(|(event, _)| event.count).sum()
    }
}

/// The next task of a sink's thread.
#[derive(Debug)]
pub(super) enum NextParcel {
    /// To write these events.
    Ready(Parcel),
    /// To do upkeep: nothing came.
    Idle,
    /// To end: nothing comes any more.
    Closed,
}

/// Events that found no place in a queue.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Lost {
    pub(super) reason: Dropped,
    pub(super) events: u64,
}

impl SinkQueue {
    pub(super) fn new(on_pressure: OnPressure) -> Self {
        Self { on_pressure, state: Mutex::default(), changed: Condvar::new() }
    }

    /// Queues a batch. While the queue is full it waits or drops events, as `on_pressure` says.
    ///
    /// # Errors
    /// Events that were dropped.
    pub(super) fn push(&self, batch: &Arc<EventBatch>) -> Result<(), Lost> {
        let mut state = self.state();
        if self.on_pressure == OnPressure::Block {
            let is_waiting =
                |state: &mut QueueState| !state.is_abandoned && !state.has_room(batch.bytes(), 0);
            state = self.changed.wait_while(state, is_waiting).unwrap_or_else(PoisonError::into_inner);
        }
        if state.is_abandoned {
            return Err(Lost { reason: Dropped::WriteFailed, events: batch.count() });
        }
        let whole = Parcel { batch: Arc::clone(batch), bytes: batch.bytes(), only_reserved: false };
        if self.on_pressure == OnPressure::Block || state.has_room(whole.bytes, RESERVED_BYTES) {
            self.add(&mut state, whole);
            return Ok(());
        }
        let part = Parcel::reserved(batch);
        let kept = part.count();
        let has_room = kept > 0 && state.has_room(part.bytes, 0);
        if has_room {
            self.add(&mut state, part);
        }
        match batch.count() - if has_room { kept } else { 0 } {
            0 => Ok(()),
            events => Err(Lost { reason: Dropped::QueueFull, events }),
        }
    }

    fn add(&self, state: &mut QueueState, parcel: Parcel) {
        state.bytes += parcel.bytes;
        state.parcels.push_back(parcel);
        self.changed.notify_all();
    }

    /// Takes the oldest parcel; waits for one at most so long.
    pub(super) fn next(&self, patience: Duration) -> NextParcel {
        let is_waiting = |state: &mut QueueState| state.parcels.is_empty() && !state.is_closed;
        let waited = self.changed.wait_timeout_while(self.state(), patience, is_waiting);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        match state.parcels.pop_front() {
            Some(parcel) => {
                state.bytes -= parcel.bytes;
                self.changed.notify_all();
                NextParcel::Ready(parcel)
            }
            None if state.is_closed => NextParcel::Closed,
            None => NextParcel::Idle,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.state().parcels.is_empty()
    }

    /// The writer has ended: what is queued is the last.
    pub(super) fn close(&self) {
        self.state().is_closed = true;
        self.changed.notify_all();
    }

    /// The thread of the sink has ended: nobody waits for it any more.
    pub(super) fn abandon(&self) {
        self.state().is_abandoned = true;
        self.changed.notify_all();
    }

    /// A poisoned lock is ignored: the state is consistent after each step.
    fn state(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl QueueState {
    /// Whether so many bytes fit while `kept_free` stay free. What is larger than the whole queue fits an empty one.
    fn has_room(&self, bytes: usize, kept_free: usize) -> bool {
        self.bytes == 0 || self.bytes + bytes + kept_free <= CAPACITY_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decision::{Decision, Verdict};
    use crate::event::Kind;
    use crate::ledger::fresh_id;

    fn batch(verdicts: impl IntoIterator<Item = Verdict>) -> Arc<EventBatch> {
        let mut batch = EventBatch::default();
        for verdict in verdicts {
            batch.push(Event::new(fresh_id(), Kind::Request, Decision::of(verdict))).unwrap();
        }
        Arc::new(batch)
    }

    fn taken(queue: &SinkQueue) -> Option<u64> {
        match queue.next(Duration::ZERO) {
            NextParcel::Ready(parcel) => Some(parcel.count()),
            NextParcel::Idle | NextParcel::Closed => None,
        }
    }

    /// Fills a queue that drops up to its reserved share.
    fn full() -> SinkQueue {
        let queue = SinkQueue::new(OnPressure::Drop);
        for size in [256, 1] {
            let batch = batch(std::iter::repeat_n(Verdict::Allow, size));
            while queue.push(&batch).is_ok() {}
        }
        queue
    }

    #[test]
    fn a_full_queue_that_drops_keeps_denials_until_its_last_place() {
        let queue = full();
        let mixed = batch([Verdict::Allow, Verdict::Deny, Verdict::Audit]);
        assert_eq!(queue.push(&mixed), Err(Lost { reason: Dropped::QueueFull, events: 2 }));
        let denials = batch([Verdict::Deny; 64]);
        while queue.push(&denials).is_ok() {}
        assert_eq!(queue.push(&denials), Err(Lost { reason: Dropped::QueueFull, events: 64 }));
        assert!(queue.state().bytes <= CAPACITY_BYTES);
        let counts: Vec<_> = std::iter::from_fn(|| taken(&queue)).collect();
        assert!(counts.starts_with(&[256]) && counts.ends_with(&[64]));
    }

    #[test]
    fn a_full_queue_that_blocks_waits_for_the_sink_and_loses_nothing() {
        let queue = SinkQueue::new(OnPressure::Block);
        let large = batch([Verdict::Allow; 4_096]);
        assert!(large.bytes() < CAPACITY_BYTES);
        std::thread::scope(|scope| {
            let pushing = scope.spawn(|| (0..8).all(|_| queue.push(&large).is_ok()));
            let mut count = 0;
            while count < 8 * 4_096 {
                count += taken(&queue).unwrap_or(0);
            }
            assert!(pushing.join().unwrap());
        });
        assert!(queue.is_empty());
    }

    #[test]
    fn nobody_waits_for_a_sink_whose_thread_has_ended() {
        let queue = SinkQueue::new(OnPressure::Block);
        let large = batch([Verdict::Allow; 16_384]);
        assert_eq!(queue.push(&large), Ok(()), "what is larger than the queue fits an empty one");
        queue.abandon();
        assert_eq!(queue.push(&large), Err(Lost { reason: Dropped::WriteFailed, events: 16_384 }));
    }

    #[test]
    fn what_was_queued_before_the_end_is_taken_before_the_end_is_told() {
        let queue = SinkQueue::new(OnPressure::Block);
        assert!(matches!(queue.next(Duration::ZERO), NextParcel::Idle));
        queue.push(&batch([Verdict::Allow])).unwrap();
        queue.close();
        assert_eq!(taken(&queue), Some(1));
        assert!(matches!(queue.next(Duration::MAX), NextParcel::Closed));
    }
}
