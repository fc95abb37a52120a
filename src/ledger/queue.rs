//! The bounded queue between the writer and the thread of one sink.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::batch::EventBatch;
use super::sink::OnPressure;
use crate::telemetry::label::Dropped;

/// Batches that wait for one sink.
#[derive(Debug)]
pub(super) struct SinkQueue {
    on_pressure: OnPressure,
    /// How many bytes of lines wait at most; a batch that is larger by itself waits alone.
    capacity: usize,
    state: Mutex<QueueState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct QueueState {
    batches: VecDeque<Arc<EventBatch>>,
    bytes: usize,
    /// The writer has ended.
    is_closed: bool,
    /// The thread of the sink has ended.
    is_abandoned: bool,
}

/// The next task of a sink's thread.
#[derive(Debug)]
pub(super) enum NextBatch {
    /// To write these events.
    Ready(Arc<EventBatch>),
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
    pub(super) fn new(on_pressure: OnPressure, capacity: usize) -> Self {
        Self { on_pressure, capacity, state: Mutex::default(), changed: Condvar::new() }
    }

    /// The last bytes of a queue that drops events are for denials and tool calls.
    fn reserved(&self) -> usize {
        self.capacity / 8
    }

    /// Queues a batch. While the queue is full it waits or drops events, as `on_pressure` says.
    ///
    /// # Errors
    /// Events that were dropped.
    pub(super) fn push(&self, batch: &Arc<EventBatch>) -> Result<(), Lost> {
        let mut state = self.state();
        if self.on_pressure == OnPressure::Block {
            let is_waiting =
                |state: &mut QueueState| !state.is_abandoned && !state.has_room(batch.bytes(), self.capacity);
            state = self.changed.wait_while(state, is_waiting).unwrap_or_else(PoisonError::into_inner);
        }
        if state.is_abandoned {
            return Err(Lost { reason: Dropped::WriteFailed, events: batch.count() });
        }
        if self.on_pressure == OnPressure::Block
            || state.has_room(batch.bytes(), self.capacity - self.reserved())
        {
            self.add(&mut state, Arc::clone(batch));
            return Ok(());
        }
        let mut lost = batch.count();
        // A copy, so that a few denials do not keep the memory of their whole batches.
        let reserved = batch.reserved();
        if !reserved.is_empty() && state.has_room(reserved.bytes(), self.capacity) {
            lost -= reserved.count();
            self.add(&mut state, Arc::new(reserved));
        }
        if lost == 0 { Ok(()) } else { Err(Lost { reason: Dropped::QueueFull, events: lost }) }
    }

    fn add(&self, state: &mut QueueState, batch: Arc<EventBatch>) {
        state.bytes += batch.bytes();
        state.batches.push_back(batch);
        self.changed.notify_all();
    }

    /// Takes the oldest batch; waits for one at most so long.
    pub(super) fn next(&self, patience: Duration) -> NextBatch {
        let is_waiting = |state: &mut QueueState| state.batches.is_empty() && !state.is_closed;
        let waited = self.changed.wait_timeout_while(self.state(), patience, is_waiting);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        match state.batches.pop_front() {
            Some(batch) => {
                state.bytes -= batch.bytes();
                self.changed.notify_all();
                NextBatch::Ready(batch)
            }
            None if state.is_closed => NextBatch::Closed,
            None => NextBatch::Idle,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.state().batches.is_empty()
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
    /// Whether so many bytes more are within a bound. What is larger than the whole queue fits an empty one.
    fn has_room(&self, bytes: usize, bound: usize) -> bool {
        self.bytes == 0 || self.bytes + bytes <= bound
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decision::{Decision, Verdict};
    use crate::event::{Chain, Event, Kind};
    use crate::ledger::fresh_id;
    use crate::ledger::sink::QUEUE_BYTES;

    fn batch(verdicts: impl IntoIterator<Item = Verdict>) -> Arc<EventBatch> {
        let (mut batch, mut chain) = (EventBatch::default(), Chain::BEGIN);
        for verdict in verdicts {
            batch
                .push(Box::new(Event::new(fresh_id(), Kind::Request, Decision::of(verdict))), &mut chain)
                .unwrap();
        }
        Arc::new(batch)
    }

    fn taken(queue: &SinkQueue) -> Option<u64> {
        match queue.next(Duration::ZERO) {
            NextBatch::Ready(batch) => Some(batch.count()),
            NextBatch::Idle | NextBatch::Closed => None,
        }
    }

    /// Fills a queue that drops up to its reserved share.
    fn full() -> SinkQueue {
        let queue = SinkQueue::new(OnPressure::Drop, QUEUE_BYTES);
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
        assert!(queue.state().bytes <= QUEUE_BYTES);
        let counts: Vec<_> = std::iter::from_fn(|| taken(&queue)).collect();
        assert!(counts.starts_with(&[256]) && counts.ends_with(&[64]));
    }

    #[test]
    fn a_full_queue_that_blocks_waits_for_the_sink_and_loses_nothing() {
        let queue = SinkQueue::new(OnPressure::Block, QUEUE_BYTES);
        let large = batch([Verdict::Allow; 4_096]);
        assert!(large.bytes() < QUEUE_BYTES);
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
        let queue = SinkQueue::new(OnPressure::Block, QUEUE_BYTES);
        let large = batch([Verdict::Allow; 16_384]);
        assert_eq!(queue.push(&large), Ok(()), "what is larger than the queue fits an empty one");
        queue.abandon();
        assert_eq!(queue.push(&large), Err(Lost { reason: Dropped::WriteFailed, events: 16_384 }));
    }

    #[test]
    fn what_was_queued_before_the_end_is_taken_before_the_end_is_told() {
        let queue = SinkQueue::new(OnPressure::Block, QUEUE_BYTES);
        assert!(matches!(queue.next(Duration::ZERO), NextBatch::Idle));
        queue.push(&batch([Verdict::Allow])).unwrap();
        queue.close();
        assert_eq!(taken(&queue), Some(1));
        assert!(matches!(queue.next(Duration::MAX), NextBatch::Closed));
    }
}
