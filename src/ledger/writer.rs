//! The one thread that numbers events and writes them.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TryRecvError;

use super::repeats::Repeats;
use super::{CAPACITY, HIGH_WATER, Shared, Sink, fresh_id};
use crate::decision::{Decision, Verdict};
use crate::event::{Event, Kind, Workload};
use crate::telemetry::label::Dropped;

/// How many events are taken from the queue at once.
pub(super) const BATCH: usize = 256;

/// How long events gather after a flush. It keeps a busy gateway from waking this thread, and from a system call,
/// for each event; a lone event does not wait.
const GATHER: Duration = Duration::from_millis(5);

pub(super) struct Writer {
    queue: mpsc::Receiver<Option<Event>>,
    outlets: Vec<Outlet>,
    workload: Option<Arc<Workload>>,
    shared: Arc<Shared>,
    sequence: u64,
    /// How many events that found no place have been said.
    drops_said: u64,
    repeats: Repeats,
}

impl Writer {
    pub(super) fn new(
        queue: mpsc::Receiver<Option<Event>>,
        sinks: Vec<Box<dyn Sink>>,
        workload: Option<Arc<Workload>>,
        shared: Arc<Shared>,
    ) -> Self {
        let outlets = sinks.into_iter().map(Outlet::new).collect();
        Self { queue, outlets, workload, shared, sequence: 0, drops_said: 0, repeats: Repeats::default() }
    }

    /// Writes until every handle is gone, or one asked for the end, and nothing is left.
    pub(super) fn run(mut self) {
        // On every way out, a panic in a sink included, so that nobody waits for a writer that is gone.
        let shared = Arc::clone(&self.shared);
        let _ended = shared.ended.drop_guard_ref();
        let mut batch = Vec::with_capacity(BATCH);
        while self.receive(&mut batch) {
            let now = Instant::now();
            for event in batch.drain(..) {
                match event {
                    Some(event) => self.take(event, now),
                    None => self.queue.close(),
                }
            }
            self.say_repeats(now);
            self.say_drops();
            if self.queue.capacity() >= CAPACITY - HIGH_WATER {
                self.shared.relieved.notify_waiters();
            }
            if self.queue.is_empty() {
                self.flush();
                if !self.queue.is_closed() {
                    std::thread::sleep(GATHER);
                }
            }
        }
        self.write_repeats();
        self.flush();
        for outlet in &mut self.outlets {
            outlet.close(&self.shared);
        }
    }

    /// Waits for events, or until what was counted is due. Answers whether more may come.
    fn receive(&mut self, batch: &mut Vec<Option<Event>>) -> bool {
        let Some(due) = self.repeats.due() else {
            return self.queue.blocking_recv_many(batch, BATCH) > 0;
        };
        loop {
            match self.queue.try_recv() {
                Ok(event) => batch.push(event),
                Err(TryRecvError::Disconnected) => return !batch.is_empty(),
                Err(TryRecvError::Empty) if batch.is_empty() && Instant::now() < due => {
                    std::thread::sleep(GATHER);
                }
                Err(TryRecvError::Empty) => return true,
            }
            if batch.len() >= BATCH {
                return true;
            }
        }
    }

    /// Writes an event, unless it is a refusal that is counted.
    fn take(&mut self, event: Event, now: Instant) {
        if !event.is_refusal() {
            return self.write(event);
        }
        self.say_repeats(now);
        if let Some(event) = self.repeats.take(event, now) {
            self.write(event);
        }
    }

    fn say_repeats(&mut self, now: Instant) {
        if self.repeats.is_over(now) {
            self.write_repeats();
        }
    }

    fn write_repeats(&mut self) {
        self.repeats.end().into_iter().for_each(|event| self.write(event));
    }

    fn write(&mut self, mut event: Event) {
        self.sequence += 1;
        event.sequence = self.sequence;
        if event.workload.is_none() {
            event.workload.clone_from(&self.workload);
        }
        for outlet in &mut self.outlets {
            outlet.write(&event, &self.shared);
        }
        self.shared.metrics.events_written(1);
    }

    /// Says in an event of its own that events found no place: drops are never silent.
    fn say_drops(&mut self) {
        let dropped = self.shared.dropped.load(Ordering::Relaxed);
        let unsaid = dropped - self.drops_said;
        if unsaid > 0 {
            self.drops_said = dropped;
            let reason = Some("events were dropped: the queue to the sinks was full".into());
            let decision = Decision { reason, ..Decision::of(Verdict::Audit) };
            self.write(Event { count: unsaid, ..Event::new(fresh_id(), Kind::Lifecycle, decision) });
        }
    }

    fn flush(&mut self) {
        for outlet in &mut self.outlets {
            outlet.flush(&self.shared);
        }
    }
}

/// A sink with the memory of whether it works.
struct Outlet {
    sink: Box<dyn Sink>,
    /// Events given to it since it last flushed.
    held: u64,
    /// Events lost since it stopped working; 0 while it works.
    lost: u64,
}

impl Outlet {
    fn new(sink: Box<dyn Sink>) -> Self {
        Self { sink, held: 0, lost: 0 }
    }

    fn write(&mut self, event: &Event, shared: &Shared) {
        self.held += event.count;
        if let Err(error) = self.sink.write(event) {
            self.failed(&error, shared);
        }
    }

    fn flush(&mut self, shared: &Shared) {
        if self.held == 0 {
            return;
        }
        match self.sink.flush() {
            Ok(()) => {
                if self.lost > 0 {
                    tracing::warn!(lost = self.lost, "events can be written again");
                }
                self.held = 0;
                self.lost = 0;
            }
            Err(error) => self.failed(&error, shared),
        }
    }

    fn close(&mut self, shared: &Shared) {
        if let Err(error) = self.sink.close() {
            self.failed(&error, shared);
        }
    }

    /// Counts what is lost, and says so once until the sink works again.
    fn failed(&mut self, error: &io::Error, shared: &Shared) {
        if self.lost == 0 {
            tracing::error!(%error, "events cannot be written; they are counted in postern_ledger_dropped_total");
        }
        self.lost += self.held;
        shared.metrics.events_dropped(Dropped::WriteFailed, self.held);
        self.held = 0;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::ledger::Ledger;
    use crate::telemetry::Metrics;

    #[derive(Clone, Default)]
    struct Flaky(Arc<Mutex<(bool, Vec<u64>)>>);

    impl Sink for Flaky {
        fn write(&mut self, event: &Event) -> io::Result<()> {
            self.0.lock().unwrap().1.push(event.sequence);
            Ok(())
        }

        fn flush(&mut self) -> io::Result<()> {
            let (broken, written) = &mut *self.0.lock().unwrap();
            if *broken {
                written.clear();
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            Ok(())
        }
    }

    #[tokio::test]
    async fn a_sink_that_fails_is_counted_and_harms_neither_the_others_nor_the_process() {
        let metrics = Arc::new(Metrics::new().unwrap());
        let (broken, sound) = (Flaky::default(), Flaky::default());
        broken.0.lock().unwrap().0 = true;
        let sinks: Vec<Box<dyn Sink>> = vec![Box::new(broken.clone()), Box::new(sound.clone())];
        let ledger = Ledger::start(sinks, None, Arc::clone(&metrics)).unwrap();
        for _ in 0..10 {
            ledger.emit(Event::new(fresh_id(), Kind::Request, Decision::of(Verdict::Allow)));
        }
        assert!(ledger.close(Duration::from_secs(20)).await);
        assert_eq!(metrics.events_total(), (10, 10));
        assert_eq!(sound.0.lock().unwrap().1, (1..=10).collect::<Vec<_>>());
    }

    #[test]
    fn a_sink_that_works_again_has_lost_only_what_it_failed_at() {
        let shared = Shared {
            metrics: Arc::new(Metrics::new().unwrap()),
            dropped: Default::default(),
            relieved: Default::default(),
            ended: Default::default(),
        };
        let flaky = Flaky::default();
        let mut outlet = Outlet::new(Box::new(flaky.clone()));
        for broken in [true, true, false, true] {
            flaky.0.lock().unwrap().0 = broken;
            outlet.write(&Event::new(fresh_id(), Kind::Request, Decision::of(Verdict::Allow)), &shared);
            outlet.flush(&shared);
        }
        assert_eq!(shared.metrics.events_total(), (0, 3));
        assert_eq!(outlet.lost, 1);
    }
}
