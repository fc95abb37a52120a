//! The one thread that numbers events, serialises them, and queues them for every sink.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TryRecvError;

use super::batch::{EventBatch, SpareBatches};
use super::queue::{Lost, SinkQueue};
use super::repeats::Repeats;
use super::stamp::fresh_id;
use super::state::{CAPACITY, HIGH_WATER, LedgerState, QUEUE};
use crate::decision::{Decision, Verdict};
use crate::event::{Chain, Event, Id, Kind, Workload};
use crate::telemetry::label::Dropped;

/// How many events are taken from the queue at once.
pub(super) const BATCH: usize = 256;

/// How long events gather after the queue ran empty. It keeps a busy gateway from waking these threads, and from a
/// system call, for each event; a lone event does not wait.
const GATHER: Duration = Duration::from_millis(5);

pub(super) struct LedgerWriter {
    queue: mpsc::Receiver<Option<Box<Event>>>,
    inlets: Vec<Inlet>,
    workload: Option<Arc<Workload>>,
    state: Arc<LedgerState>,
    /// The id of this start, which every event names.
    start: Id,
    sequence: u64,
    /// The chain of the last event.
    chain: Chain,
    /// How many dropped events an event of the writer's own has reported.
    drops_reported: u64,
    repeats: Repeats,
    /// Events that are numbered, and not handed over yet.
    batch: EventBatch,
    spares: Arc<SpareBatches>,
}

impl LedgerWriter {
    pub(super) fn new(
        queue: mpsc::Receiver<Option<Box<Event>>>,
        inlets: Vec<Inlet>,
        spares: Arc<SpareBatches>,
        workload: Option<Arc<Workload>>,
        state: Arc<LedgerState>,
    ) -> Self {
        let (repeats, batch) = (Repeats::default(), EventBatch::default());
        let (start, chain) = (fresh_id(), Chain::BEGIN);
        Self {
            queue,
            inlets,
            spares,
            workload,
            state,
            start,
            sequence: 0,
            chain,
            drops_reported: 0,
            repeats,
            batch,
        }
    }

    /// Writes until every handle is gone, or one asked for the end, and nothing is left.
    pub(super) fn run(mut self) {
        let mut events = Vec::with_capacity(BATCH);
        while self.receive(&mut events) {
            let now = Instant::now();
            for event in events.drain(..) {
                match event {
                    Some(event) => self.take(event, now),
                    None => self.queue.close(),
                }
            }
            self.write_due_repeats(now);
            self.report_drops();
            self.hand_over();
            if self.queue.capacity() >= CAPACITY - HIGH_WATER {
                self.state.relieved.notify_waiters();
            }
            if self.queue.is_empty() && !self.queue.is_closed() {
                std::thread::sleep(GATHER);
            }
        }
        self.write_repeats();
        self.hand_over();
    }

    /// Waits for events, or until counted refusals are due. Returns whether more may come.
    fn receive(&mut self, events: &mut Vec<Option<Box<Event>>>) -> bool {
        let Some(due) = self.repeats.due() else {
            return self.queue.blocking_recv_many(events, BATCH) > 0;
        };
        loop {
            match self.queue.try_recv() {
                Ok(event) => events.push(event),
                Err(TryRecvError::Disconnected) => return !events.is_empty(),
                Err(TryRecvError::Empty) if events.is_empty() && Instant::now() < due => {
                    std::thread::sleep(GATHER);
                }
                Err(TryRecvError::Empty) => return true,
            }
            if events.len() >= BATCH {
                return true;
            }
        }
    }

    /// Writes an event, unless it is a refusal that is counted.
    fn take(&mut self, event: Box<Event>, now: Instant) {
        if !event.is_refusal() {
            return self.write(event);
        }
        self.write_due_repeats(now);
        if let Some(event) = self.repeats.take(event, now) {
            self.write(event);
        }
    }

    fn write_due_repeats(&mut self, now: Instant) {
        if self.repeats.is_over(now) {
            self.write_repeats();
        }
    }

    fn write_repeats(&mut self) {
        self.repeats.end().for_each(|event| self.write(event));
    }

    /// Numbers an event and adds it to the batch. Only an event that can be serialised has a number.
    fn write(&mut self, mut event: Box<Event>) {
        event.sequence = self.sequence + 1;
        event.start = Some(self.start);
        if event.workload.is_none() {
            event.workload.clone_from(&self.workload);
        }
        if !self.inlets.is_empty()
            && let Err(error) = self.batch.push(event, &mut self.chain)
        {
            tracing::error!(%error, "an event cannot be serialised");
            return self.state.metrics.events_dropped(QUEUE, Dropped::WriteFailed, 1);
        }
        self.sequence += 1;
        self.state.metrics.events_written(1);
        if self.batch.is_full() {
            self.hand_over();
        }
    }

    /// Reports in an event of its own that events found no place: drops are never silent.
    fn report_drops(&mut self) {
        let dropped = self.state.dropped.load(Ordering::Relaxed);
        let unreported = dropped - self.drops_reported;
        if unreported > 0 {
            self.drops_reported = dropped;
            let reason = Some("events were dropped: the queue to the sinks was full".into());
            let decision = Decision { reason, ..Decision::of(Verdict::Audit) };
            let event = Event { count: unreported, ..Event::new(fresh_id(), Kind::Lifecycle, decision) };
            self.write(Box::new(event));
        }
    }

    /// Queues the batch for every sink.
    fn hand_over(&mut self) {
        if self.batch.is_empty() {
            return;
        }
        let batch = Arc::new(std::mem::replace(&mut self.batch, self.spares.take()));
        for inlet in &mut self.inlets {
            inlet.push(&batch, &self.state);
        }
    }
}

/// The writer's end of the queue of one sink.
pub(super) struct Inlet {
    name: &'static str,
    queue: Arc<SinkQueue>,
    is_dropping: bool,
}

impl Inlet {
    pub(super) fn new(name: &'static str, queue: Arc<SinkQueue>) -> Self {
        Self { name, queue, is_dropping: false }
    }

    /// Queues a batch; counts the events that find no place, and warns once until the sink has caught up.
    fn push(&mut self, batch: &Arc<EventBatch>, state: &LedgerState) {
        let outcome = self.queue.push(batch);
        if let Err(Lost { reason, events }) = outcome {
            state.metrics.events_dropped(self.name, reason, events);
            if !self.is_dropping {
                let sink = self.name;
                tracing::warn!(sink, "events are dropped: the sink is too slow, or has failed");
            }
        }
        self.is_dropping = outcome.is_err() || self.is_dropping && !self.queue.is_empty();
    }
}

impl Drop for Inlet {
    fn drop(&mut self) {
        self.queue.close();
    }
}
