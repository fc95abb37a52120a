//! The thread of one sink: takes events from the sink's queue, and knows whether the sink works.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::batch::SpareBatches;
use super::queue::{NextBatch, SinkQueue};
use super::sink::{NamedSink, Sink};
use crate::event::Event;
use crate::telemetry::Metrics;
use crate::telemetry::label::Dropped;

/// How long nothing comes before a sink does its upkeep, and how often it does it from then on.
pub(super) const IDLE: Duration = Duration::from_secs(1);

/// A sink with the memory of whether it works.
pub(super) struct SinkThread {
    name: &'static str,
    sink: Box<dyn Sink>,
    queue: Arc<SinkQueue>,
    spares: Arc<SpareBatches>,
    metrics: Arc<Metrics>,
    /// Events given to the sink since it last flushed.
    held: u64,
    has_failed: bool,
    /// Events lost since the sink stopped working; 0 while it works.
    lost: u64,
}

impl SinkThread {
    pub(super) fn new(
        named: NamedSink,
        queue: Arc<SinkQueue>,
        spares: Arc<SpareBatches>,
        metrics: Arc<Metrics>,
    ) -> Self {
        Self {
            name: named.name,
            sink: named.sink,
            queue,
            spares,
            metrics,
            held: 0,
            has_failed: false,
            lost: 0,
        }
    }

    /// Gives the sink its events until the queue is closed and empty; its upkeep, each time that none came for `idle`.
    pub(super) fn run(mut self, idle: Duration) {
        loop {
            let due = self.sink.due();
            match self.queue.next(due.map_or(idle, |due| due.saturating_duration_since(Instant::now()))) {
                NextBatch::Ready(batch) => {
                    batch.entries().for_each(|(event, line)| self.write(event, line));
                    // The last sink gives the memory back.
                    if let Some(batch) = Arc::into_inner(batch) {
                        self.spares.give_back(batch);
                    }
                    if self.queue.is_empty() && self.sink.due().is_none_or(|due| due <= Instant::now()) {
                        self.flush();
                    }
                }
                NextBatch::Idle if due.is_some() => self.flush(),
                NextBatch::Idle => {
                    let outcome = self.sink.idle();
                    self.check(outcome);
                }
                NextBatch::Closed => break,
            }
        }
        let outcome = self.sink.close();
        self.check(outcome);
    }

    fn write(&mut self, event: &Event, line: &[u8]) {
        self.held += event.count;
        let outcome = self.sink.write(event, line);
        self.check(outcome);
    }

    fn flush(&mut self) {
        if self.held == 0 {
            return;
        }
        match self.sink.flush() {
            Ok(()) => {
                if self.has_failed {
                    tracing::warn!(lost = self.lost, sink = self.name, "events can be written again");
                }
                (self.has_failed, self.held, self.lost) = (false, 0, 0);
            }
            failed => self.check(failed),
        }
    }

    /// Counts events that are lost by a failure, and logs so once until the sink works again.
    fn check(&mut self, outcome: io::Result<()>) {
        let Err(error) = outcome else { return };
        if !self.has_failed {
            let sink = self.name;
            tracing::error!(%error, sink, "events cannot be written; they are counted in postern_ledger_dropped_total");
        }
        self.has_failed = true;
        self.lost += self.held;
        self.metrics.events_dropped(self.name, Dropped::WriteFailed, std::mem::take(&mut self.held));
    }
}

impl Drop for SinkThread {
    /// On every way out, a panic in the sink included, so that the writer does not wait for a thread that is gone.
    fn drop(&mut self) {
        self.queue.abandon();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Mutex, mpsc};

    use super::*;
    use crate::decision::{Decision, Verdict};
    use crate::event::{Chain, Kind};
    use crate::ledger::batch::EventBatch;
    use crate::ledger::fresh_id;
    use crate::ledger::sink::{OnPressure, QUEUE_BYTES};

    fn thread(sink: impl Sink + 'static) -> SinkThread {
        let queue = Arc::new(SinkQueue::new(OnPressure::Block, QUEUE_BYTES));
        SinkThread::new(
            NamedSink::blocking("test", sink),
            queue,
            Arc::default(),
            Arc::new(Metrics::new().unwrap()),
        )
    }

    #[derive(Clone, Default)]
    struct Flaky(Arc<Mutex<bool>>);

    impl Sink for Flaky {
        fn write(&mut self, _: &Event, _: &[u8]) -> io::Result<()> {
            Ok(())
        }

        fn flush(&mut self) -> io::Result<()> {
            if *self.0.lock().unwrap() { Err(io::ErrorKind::BrokenPipe.into()) } else { Ok(()) }
        }
    }

    #[test]
    fn a_sink_that_works_again_has_lost_only_what_it_failed_at() {
        let flaky = Flaky::default();
        let mut thread = thread(flaky.clone());
        let event = Event::new(fresh_id(), Kind::Request, Decision::of(Verdict::Allow));
        for is_broken in [true, true, false, true] {
            *flaky.0.lock().unwrap() = is_broken;
            thread.write(&event, b"{}");
            thread.flush();
        }
        assert_eq!(thread.metrics.events_total(), (0, 3));
        assert_eq!(thread.lost, 1);
    }

    /// Holds events back for as long as nobody says that it may flush.
    struct Holding {
        held: u64,
        until: Option<Instant>,
        flushed: mpsc::Sender<u64>,
    }

    impl Sink for Holding {
        fn write(&mut self, _: &Event, _: &[u8]) -> io::Result<()> {
            self.held += 1;
            Ok(())
        }

        fn flush(&mut self) -> io::Result<()> {
            self.flushed.send(std::mem::take(&mut self.held)).map_err(io::Error::other)
        }

        fn due(&self) -> Option<Instant> {
            self.until.filter(|_| self.held > 0)
        }

        /// Tells the end from a flush.
        fn close(&mut self) -> io::Result<()> {
            self.held *= 100;
            self.flush()
        }
    }

    /// What each flush let go of, and the end a hundred times, where three events come one by one.
    fn flushes(until: Option<Instant>) -> Vec<u64> {
        let (flushed, flushes) = mpsc::channel();
        let thread = thread(Holding { held: 0, until, flushed });
        for _ in 0..3 {
            let (mut batch, mut chain) = (EventBatch::default(), Chain::BEGIN);
            let event = Event::new(fresh_id(), Kind::Request, Decision::of(Verdict::Allow));
            batch.push(Box::new(event), &mut chain).unwrap();
            thread.queue.push(&Arc::new(batch)).unwrap();
        }
        let queue = Arc::clone(&thread.queue);
        let running = std::thread::spawn(move || thread.run(Duration::from_secs(20)));
        // What is not due is let go of at the end alone.
        let first = if until.is_some_and(|until| until > Instant::now()) {
            None
        } else {
            Some(flushes.recv_timeout(Duration::from_secs(20)).unwrap())
        };
        queue.close();
        running.join().unwrap();
        first.into_iter().chain(flushes.try_iter()).filter(|events| *events > 0).collect()
    }

    #[test]
    fn a_sink_is_flushed_when_nothing_waits_or_when_it_is_due() {
        let now = Instant::now();
        assert_eq!(flushes(None), [3]);
        assert_eq!(flushes(Some(now)), [3]);
        assert_eq!(flushes(Some(now + Duration::from_secs(3_600))), [300]);
    }

    struct Idle(mpsc::Sender<()>);

    impl Sink for Idle {
        fn write(&mut self, _: &Event, _: &[u8]) -> io::Result<()> {
            Ok(())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }

        fn idle(&mut self) -> io::Result<()> {
            self.0.send(()).map_err(io::Error::other)
        }
    }

    #[test]
    fn a_sink_is_told_again_and_again_while_nothing_comes() {
        let (idles, reader) = mpsc::channel();
        let thread = thread(Idle(idles));
        let queue = Arc::clone(&thread.queue);
        let running = std::thread::spawn(move || thread.run(Duration::from_millis(1)));
        for _ in 0..3 {
            reader.recv_timeout(Duration::from_secs(20)).unwrap();
        }
        queue.close();
        running.join().unwrap();
    }
}
