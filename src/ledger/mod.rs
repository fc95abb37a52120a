//! Remembers: takes events off the data path, numbers them and gives them to sinks.

pub mod lines;
mod repeats;
mod stamp;
pub mod stdout;
pub mod traces;
mod writer;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;

use crate::decision::{Decision, RuleId, Verdict};
use crate::event::{Event, Kind, Workload};
use crate::telemetry::Metrics;
use crate::telemetry::label::{Denied, Dropped};

pub use stamp::{fresh_id, now, timestamp};
use writer::Writer;

/// Where events are kept or sent. The one writer thread calls it, so it may block.
pub trait Sink: Send {
    /// Takes one event; it may be held back until the next flush.
    fn write(&mut self, event: &Event) -> io::Result<()>;

    /// Lets go of all that was held back.
    fn flush(&mut self) -> io::Result<()>;

    /// No event comes any more: ends within seconds.
    fn close(&mut self) -> io::Result<()> {
        self.flush()
    }
}

/// How many events wait for the writer at most: over two for each of the 10,000 connections a gateway may hold.
const CAPACITY: usize = 32_768;

/// With so many waiting, new work waits too.
const HIGH_WATER: usize = 8_192;

/// The last places of the queue are for denials and tool calls.
const RESERVED: usize = CAPACITY / 8;

/// A handle to the queue that leads to the writer thread. Clones share the queue.
#[derive(Debug, Clone)]
pub struct Ledger {
    /// `None` asks the writer to write what came before, and end.
    queue: mpsc::Sender<Option<Event>>,
    shared: Arc<Shared>,
}

/// What the handles and the writer tell each other beside the queue.
#[derive(Debug)]
struct Shared {
    metrics: Arc<Metrics>,
    /// Events that found no place in the queue.
    dropped: AtomicU64,
    /// Told when the queue is below its high-water mark again.
    relieved: Notify,
    /// Cancelled when the writer has ended.
    ended: CancellationToken,
}

impl Ledger {
    /// Starts the writer thread. Every event that names no workload gets this one.
    pub fn start(
        sinks: Vec<Box<dyn Sink>>,
        workload: Option<Arc<Workload>>,
        metrics: Arc<Metrics>,
    ) -> io::Result<Self> {
        let (queue, events) = mpsc::channel(CAPACITY);
        let shared = Arc::new(Shared {
            metrics,
            dropped: AtomicU64::new(0),
            relieved: Notify::new(),
            ended: CancellationToken::new(),
        });
        let writer = Writer::new(events, sinks, workload, Arc::clone(&shared));
        std::thread::Builder::new().name("ledger".to_owned()).spawn(move || writer.run())?;
        Ok(Self { queue, shared })
    }

    /// Queues an event. Never blocks: what finds no place is dropped and counted, and the writer says so in an event
    /// of its own as soon as it can.
    pub fn emit(&self, event: Event) {
        self.shared.count_denial(&event);
        if self.queue.capacity() <= RESERVED && !event.is_reserved() {
            return self.shared.drop_one(Dropped::QueueFull);
        }
        match self.queue.try_send(Some(event)) {
            Ok(()) => {}
            Err(mpsc::error::TrySendError::Full(_)) => self.shared.drop_one(Dropped::QueueFull),
            Err(mpsc::error::TrySendError::Closed(_)) => self.shared.drop_one(Dropped::Closed),
        }
    }

    /// Waits while the queue is above its high-water mark, so that work which would make events starts only when
    /// they can be kept. Returns at once otherwise, and for ever once the ledger is closed.
    pub async fn ready(&self) {
        while self.is_pressed() {
            let relieved = self.shared.relieved.notified();
            if !self.is_pressed() {
                return;
            }
            tokio::select! {
                () = relieved => {}
                () = self.shared.ended.cancelled() => return,
            }
        }
    }

    /// Writes all that was emitted before and ends the writer, waiting at most `grace`. Answers whether all was
    /// written in time; a sink that blocks for longer loses what is left. Later events are dropped and counted.
    pub async fn close(&self, grace: Duration) -> bool {
        let ended = async {
            // An error means that the writer has ended before.
            let _ = self.queue.send(None).await;
            self.shared.ended.cancelled().await;
        };
        tokio::time::timeout(grace, ended).await.is_ok()
    }

    fn is_pressed(&self) -> bool {
        self.queue.capacity() < CAPACITY - HIGH_WATER && !self.shared.ended.is_cancelled()
    }
}

impl Shared {
    /// Counts a denial by its rule, whatever becomes of its event.
    fn count_denial(&self, event: &Event) {
        let Decision { verdict: verdict @ (Verdict::Deny | Verdict::WouldDeny), rule, .. } = &event.decision
        else {
            return;
        };
        let kind = match event.kind {
            // What is refused inside of TLS is a request as well.
            Kind::Connection if event.destination.as_ref().is_some_and(|to| to.intercepted) => return,
            Kind::Connection => Denied::Connection,
            Kind::Request => Denied::Request,
            Kind::Response => Denied::Response,
            Kind::ToolCall => Denied::ToolCall,
            Kind::Transform | Kind::Policy | Kind::Lifecycle => return,
        };
        self.metrics.denied(kind, rule.as_ref().map_or("none", RuleId::as_str), *verdict);
    }

    fn drop_one(&self, reason: Dropped) {
        self.dropped.fetch_add(1, Ordering::Relaxed);
        self.metrics.events_dropped(reason, 1);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc as sync;
    use std::task::Poll;

    use super::*;
    use crate::decision::{Decision, Verdict};
    use crate::event::Kind;

    const PATIENCE: Duration = Duration::from_secs(20);

    /// Tells what was written; each write waits for a permit, so that a test can block the sink.
    struct Told {
        written: sync::Sender<Event>,
        permits: sync::Receiver<()>,
    }

    impl Sink for Told {
        fn write(&mut self, event: &Event) -> io::Result<()> {
            // Without a giver of permits nothing blocks.
            let _ = self.permits.recv();
            self.written.send(event.clone()).map_err(io::Error::other)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[tokio::test]
    async fn denials_are_counted_by_kind_and_rule_whatever_becomes_of_their_events() {
        let metrics = Arc::new(Metrics::new().unwrap());
        let ledger = Ledger::start(Vec::new(), None, Arc::clone(&metrics)).unwrap();
        assert!(ledger.close(PATIENCE).await);
        for (kind, verdict) in [
            (Kind::ToolCall, Verdict::Deny),
            (Kind::ToolCall, Verdict::Allow),
            (Kind::Response, Verdict::WouldDeny),
            (Kind::Lifecycle, Verdict::Deny),
        ] {
            let decision = Decision { rule: Some(RuleId::new("a/p/r")), ..Decision::of(verdict) };
            ledger.emit(Event::new(fresh_id(), kind, decision));
        }
        let text = metrics.encode();
        let series: Vec<_> = text.lines().filter(|line| line.starts_with("postern_denials_total")).collect();
        assert_eq!(
            series,
            [
                r#"postern_denials_total{kind="response",rule="a/p/r",verdict="WouldDeny"} 1"#,
                r#"postern_denials_total{kind="tool_call",rule="a/p/r",verdict="Deny"} 1"#,
            ]
        );
    }

    fn event(verdict: Verdict) -> Event {
        Event::new(fresh_id(), Kind::Request, Decision::of(verdict))
    }

    /// A ledger, what it writes, and what lets it write: drop it to let all through.
    fn ledger(workload: Option<Arc<Workload>>) -> (Ledger, sync::Receiver<Event>, sync::Sender<()>) {
        let (written, reader) = sync::channel();
        let (gate, permits) = sync::channel();
        let metrics = Arc::new(Metrics::new().unwrap());
        let ledger = Ledger::start(vec![Box::new(Told { written, permits })], workload, metrics).unwrap();
        (ledger, reader, gate)
    }

    fn next(reader: &sync::Receiver<Event>) -> Event {
        reader.recv_timeout(PATIENCE).expect("an event in time")
    }

    #[tokio::test]
    async fn events_are_numbered_without_gaps_in_the_order_of_writing() {
        let (ledger, reader, gate) = ledger(None);
        drop(gate);
        let emitted: Vec<_> = std::iter::repeat_with(|| event(Verdict::Allow)).take(1_000).collect();
        let ids: Vec<_> = emitted.iter().map(|event| event.id).collect();
        emitted.into_iter().for_each(|event| ledger.emit(event));
        assert!(ledger.close(PATIENCE).await);
        let written: Vec<_> = reader.try_iter().collect();
        assert_eq!(written.iter().map(|event| event.id).collect::<Vec<_>>(), ids);
        assert!(written.iter().map(|event| event.sequence).eq(1..=1_000));
    }

    #[tokio::test]
    async fn every_event_says_whose_traffic_it_is() {
        let workload = Arc::new(Workload { pod: "coder-0".to_owned(), ..Workload::default() });
        let (ledger, reader, gate) = ledger(Some(Arc::clone(&workload)));
        drop(gate);
        ledger.emit(event(Verdict::Allow));
        assert_eq!(next(&reader).workload, Some(workload));
    }

    #[tokio::test]
    async fn a_blocked_sink_makes_new_work_wait_and_relief_wakes_it() {
        let (ledger, reader, gate) = ledger(None);
        ledger.ready().await;
        (0..HIGH_WATER + 4 * writer::BATCH).for_each(|_| ledger.emit(event(Verdict::Allow)));
        let mut waiting = std::pin::pin!(ledger.ready());
        let polled = std::future::poll_fn(|context| Poll::Ready(waiting.as_mut().poll(context))).await;
        assert!(polled.is_pending());
        drop(gate);
        tokio::time::timeout(PATIENCE, waiting).await.expect("woken in time");
        assert_eq!(next(&reader).sequence, 1);
    }

    #[tokio::test]
    async fn over_the_bound_events_are_dropped_and_said_to_be_and_denials_have_the_last_places() {
        let (ledger, reader, gate) = ledger(None);
        ledger.emit(event(Verdict::Allow));
        gate.send(()).unwrap();
        assert_eq!(next(&reader).sequence, 1);

        (0..CAPACITY).for_each(|_| ledger.emit(event(Verdict::Allow)));
        let (_, dropped) = ledger.shared.metrics.events_total();
        assert!(dropped > 0);
        ledger.emit(event(Verdict::Deny));
        assert_eq!(ledger.shared.metrics.events_total().1, dropped, "a denial still finds a place");

        drop(gate);
        assert!(ledger.close(PATIENCE).await);
        let written: Vec<_> = reader.try_iter().collect();
        assert!(written.iter().any(|event| event.decision.verdict == Verdict::Deny));
        let said: u64 = written.iter().filter(|e| e.kind == Kind::Lifecycle).map(|event| event.count).sum();
        assert_eq!(said, dropped);
        assert!(written.iter().map(|event| event.sequence).eq(2..2 + written.len() as u64));
    }

    #[tokio::test]
    async fn closing_is_bounded_where_a_sink_blocks() {
        let (ledger, _reader, _gate) = ledger(None);
        ledger.emit(event(Verdict::Allow));
        assert!(!ledger.close(Duration::from_millis(20)).await);
    }

    #[tokio::test]
    async fn after_closing_events_are_counted_as_dropped_and_nothing_waits() {
        let (ledger, _reader, gate) = ledger(None);
        drop(gate);
        assert!(ledger.close(PATIENCE).await);
        (0..CAPACITY).for_each(|_| ledger.emit(event(Verdict::Deny)));
        ledger.ready().await;
        assert_eq!(ledger.shared.metrics.events_total(), (0, CAPACITY as u64));
        assert!(ledger.close(PATIENCE).await, "closing twice is fine");
    }
}
