//! Remembers: takes events off the data path, numbers them and gives them to sinks.

mod batch;
pub mod lines;
pub mod logs;
pub mod otlp;
mod queue;
mod repeats;
mod sink;
mod sink_thread;
mod stamp;
mod state;
pub mod stdout;
pub mod store;
pub mod traces;
pub mod unpacked;
pub mod verify;
mod writer;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;

use crate::event::{Event, Workload};
use crate::telemetry::Metrics;
use crate::telemetry::label::Dropped;

use batch::SpareBatches;
use queue::SinkQueue;
pub use sink::{NamedSink, Sink};
use sink_thread::{IDLE, SinkThread};
pub use stamp::{fresh_id, now, timestamp};
use state::{CAPACITY, HIGH_WATER, LedgerState};
use store::StoreHealth;
use writer::{Inlet, LedgerWriter};

/// The last places of the queue are for denials and tool calls.
const RESERVED: usize = CAPACITY / 8;

/// How long new work waits for a store that cannot be written, before it is refused, and how often that is looked at.
const STALLED: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(100);

/// A handle to the queue that leads to the writer thread. Clones share the queue.
#[derive(Debug, Clone)]
pub struct Ledger {
    /// `None` asks the writer to write what came before, and end.
    queue: mpsc::Sender<Option<Box<Event>>>,
    state: Arc<LedgerState>,
    /// The health of the store, where events wait for it.
    store: Option<StoreHealth>,
}

impl Ledger {
    /// Starts the writer thread and one for each sink. Every event that names no workload gets this one.
    pub fn start(
        sinks: Vec<NamedSink>,
        workload: Option<Arc<Workload>>,
        metrics: Arc<Metrics>,
    ) -> io::Result<Self> {
        let (queue, events) = mpsc::channel(CAPACITY);
        let state = Arc::new(LedgerState::new(metrics));
        // Each thread drops its clone on every way out, a panic included; the last one cancels `ended`.
        let ended = Arc::new(state.ended.clone().drop_guard());
        let spares = Arc::new(SpareBatches::default());
        let mut inlets = Vec::with_capacity(sinks.len());
        for named in sinks {
            state.metrics.sink_started(named.name);
            let thread_name = format!("ledger-{}", named.name);
            let queue = Arc::new(SinkQueue::new(named.on_pressure, named.queue_bytes));
            inlets.push(Inlet::new(named.name, Arc::clone(&queue)));
            let thread = SinkThread::new(named, queue, Arc::clone(&spares), Arc::clone(&state.metrics));
            let ended = Arc::clone(&ended);
            spawn(&thread_name, move || {
                thread.run(IDLE);
                drop(ended);
            })?;
        }
        let writer = LedgerWriter::new(events, inlets, spares, workload, Arc::clone(&state));
        spawn("ledger", move || {
            writer.run();
            drop(ended);
        })?;
        Ok(Self { queue, state, store: None })
    }

    /// The same, where new work waits for this store, and is refused while it cannot be written for long.
    #[must_use]
    pub fn waiting_for(self, store: Option<StoreHealth>) -> Self {
        Self { store, ..self }
    }

    /// Whether new work is refused: the store cannot be written for 5 seconds, and events wait for it.
    pub fn is_refusing(&self) -> bool {
        self.stalled().is_some_and(|lasted| lasted >= STALLED)
    }

    /// How long the store cannot be written.
    fn stalled(&self) -> Option<Duration> {
        Some(self.store.as_ref()?.failure()?.since.elapsed())
    }

    /// Queues an event. Never blocks: an event that finds no place is dropped and counted, and the writer reports the
    /// number in an event of its own as soon as it can.
    pub fn emit(&self, event: Event) {
        self.state.count_denial(&event);
        if self.queue.capacity() <= RESERVED && !event.is_reserved() {
            return self.state.drop_one(Dropped::QueueFull);
        }
        match self.queue.try_send(Some(Box::new(event))) {
            Ok(()) => {}
            Err(mpsc::error::TrySendError::Full(_)) => self.state.drop_one(Dropped::QueueFull),
            Err(mpsc::error::TrySendError::Closed(_)) => self.state.drop_one(Dropped::Closed),
        }
    }

    /// Waits while the queue is above its high-water mark, so that work which would make events starts only when
    /// they can be kept; for a store that cannot be written 5 seconds. Returns at once otherwise, and for ever once the
    /// ledger is closed.
    pub async fn ready(&self) {
        while self.stalled().is_some_and(|lasted| lasted < STALLED) {
            tokio::time::sleep(LOOK).await;
        }
        while self.is_pressed() && !self.is_refusing() {
            let relieved = self.state.relieved.notified();
            if !self.is_pressed() {
                return;
            }
            tokio::select! {
                () = relieved => {}
                () = self.state.ended.cancelled() => return,
                // The store may begin to stall while this waits.
                () = tokio::time::sleep(LOOK), if self.store.is_some() => {}
            }
        }
    }

    /// Writes all that was emitted before and ends the writer, waiting at most `grace`. Returns whether all was
    /// written in time; a sink that blocks for longer loses what is left. Later events are dropped and counted.
    pub async fn close(&self, grace: Duration) -> bool {
        let ended = async {
            // An error means that the writer has ended before.
            let _ = self.queue.send(None).await;
            self.state.ended.cancelled().await;
        };
        tokio::time::timeout(grace, ended).await.is_ok()
    }

    fn is_pressed(&self) -> bool {
        self.queue.capacity() < CAPACITY - HIGH_WATER && !self.state.ended.is_cancelled()
    }
}

fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> io::Result<()> {
    std::thread::Builder::new().name(name.to_owned()).spawn(run).map(drop)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc as sync;
    use std::task::Poll;

    use super::*;
    use crate::decision::{Decision, RuleId, Verdict};
    use crate::event::{Chain, Kind};

    const PATIENCE: Duration = Duration::from_secs(20);

    /// Tells what was written; each write waits for a permit, so that a test can block the sink.
    struct Told {
        written: sync::Sender<(Event, Vec<u8>)>,
        permits: sync::Receiver<()>,
    }

    impl Sink for Told {
        fn write(&mut self, event: &Event, line: &[u8]) -> io::Result<()> {
            // Without a giver of permits nothing blocks.
            let _ = self.permits.recv();
            self.written.send((event.clone(), line.to_owned())).map_err(io::Error::other)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// A sink, what it wrote, and what lets it write: drop it to let all through.
    fn told() -> (Told, Written, sync::Sender<()>) {
        let (written, reader) = sync::channel();
        let (gate, permits) = sync::channel();
        (Told { written, permits }, Written(reader), gate)
    }

    struct Written(sync::Receiver<(Event, Vec<u8>)>);

    impl Written {
        fn next(&self) -> Event {
            self.0.recv_timeout(PATIENCE).expect("an event in time").0
        }

        fn rest(&self) -> Vec<Event> {
            self.0.try_iter().map(|(event, _)| event).collect()
        }
    }

    fn start(sinks: Vec<NamedSink>) -> Ledger {
        Ledger::start(sinks, None, Arc::new(Metrics::new().unwrap())).unwrap()
    }

    /// A ledger with one sink for which events wait.
    fn ledger() -> (Ledger, Written, sync::Sender<()>) {
        let (sink, written, gate) = told();
        (start(vec![NamedSink::blocking("told", sink)]), written, gate)
    }

    fn event(verdict: Verdict) -> Event {
        Event::new(fresh_id(), Kind::Request, Decision::of(verdict))
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

    #[tokio::test]
    async fn events_are_numbered_without_gaps_in_the_order_of_writing() {
        let (ledger, written, gate) = ledger();
        drop(gate);
        let emitted: Vec<_> = std::iter::repeat_with(|| event(Verdict::Allow)).take(1_000).collect();
        let ids: Vec<_> = emitted.iter().map(|event| event.id).collect();
        emitted.into_iter().for_each(|event| ledger.emit(event));
        assert!(ledger.close(PATIENCE).await);
        let written = written.rest();
        assert_eq!(written.iter().map(|event| event.id).collect::<Vec<_>>(), ids);
        assert!(written.iter().map(|event| event.sequence).eq(1..=1_000));
    }

    #[tokio::test]
    async fn every_event_says_whose_traffic_it_is() {
        let workload = Arc::new(Workload { pod: "coder-0".to_owned(), ..Workload::default() });
        let (sink, written, gate) = told();
        let (sinks, metrics) = (vec![NamedSink::blocking("told", sink)], Arc::new(Metrics::new().unwrap()));
        let ledger = Ledger::start(sinks, Some(Arc::clone(&workload)), metrics).unwrap();
        drop(gate);
        ledger.emit(event(Verdict::Allow));
        assert_eq!(written.next().workload, Some(workload));
    }

    #[tokio::test]
    async fn a_blocked_sink_makes_new_work_wait_and_relief_wakes_it() {
        let (ledger, written, gate) = ledger();
        ledger.ready().await;
        (0..CAPACITY).for_each(|_| ledger.emit(event(Verdict::Allow)));
        let mut waiting = std::pin::pin!(ledger.ready());
        let polled = std::future::poll_fn(|context| Poll::Ready(waiting.as_mut().poll(context))).await;
        assert!(polled.is_pending());
        drop(gate);
        tokio::time::timeout(PATIENCE, waiting).await.expect("woken in time");
        assert_eq!(written.next().sequence, 1);
    }

    #[tokio::test]
    async fn over_the_bound_events_are_dropped_and_said_to_be_and_denials_have_the_last_places() {
        let (ledger, written, gate) = ledger();
        ledger.emit(event(Verdict::Allow));
        gate.send(()).unwrap();
        assert_eq!(written.next().sequence, 1);

        let mut dropped = 0;
        while dropped == 0 {
            ledger.emit(event(Verdict::Allow));
            dropped = ledger.state.metrics.events_total().1;
        }
        ledger.emit(event(Verdict::Deny));
        assert_eq!(ledger.state.metrics.events_total().1, dropped, "a denial still finds a place");

        drop(gate);
        assert!(ledger.close(PATIENCE).await);
        let written = written.rest();
        assert!(written.iter().any(|event| event.decision.verdict == Verdict::Deny));
        let reported: u64 =
            written.iter().filter(|e| e.kind == Kind::Lifecycle).map(|event| event.count).sum();
        assert_eq!(reported, dropped);
        assert!(written.iter().map(|event| event.sequence).eq(2..2 + written.len() as u64));
    }

    #[tokio::test]
    async fn closing_is_bounded_where_a_sink_blocks() {
        let (ledger, _written, _gate) = ledger();
        ledger.emit(event(Verdict::Allow));
        assert!(!ledger.close(Duration::from_millis(20)).await);
    }

    #[tokio::test]
    async fn after_closing_events_are_counted_as_dropped_and_nothing_waits() {
        let (ledger, _written, gate) = ledger();
        drop(gate);
        assert!(ledger.close(PATIENCE).await);
        (0..CAPACITY).for_each(|_| ledger.emit(event(Verdict::Deny)));
        ledger.ready().await;
        assert_eq!(ledger.state.metrics.events_total(), (0, CAPACITY as u64));
        assert!(ledger.close(PATIENCE).await, "closing twice is fine");
    }

    #[tokio::test]
    async fn every_sink_gets_the_same_bytes_of_an_event() {
        let ((one, ones, _), (other, others, _)) = (told(), told());
        let ledger = start(vec![NamedSink::blocking("one", one), NamedSink::dropping("other", other)]);
        (0..3).for_each(|_| ledger.emit(event(Verdict::Audit)));
        assert!(ledger.close(PATIENCE).await);
        let lines: Vec<_> = ones.0.try_iter().collect();
        assert_eq!(lines.len(), 3);
        assert!(lines.iter().all(|(event, line)| serde_json::to_vec(event).unwrap() == *line));
        let mut chain = Chain::BEGIN;
        for (event, line) in &lines {
            let (named, found) = Chain::of_line(line, chain).unwrap();
            assert_eq!((Some(named), event.start.is_some()), (event.chain, true));
            assert_eq!(named, found, "each line goes on where the one before ended");
            chain = named;
        }
        assert!(lines.iter().all(|(event, _)| event.start == lines[0].0.start));
        assert!(others.0.try_iter().map(|(_, line)| line).eq(lines.into_iter().map(|(_, line)| line)));
    }

    #[tokio::test]
    async fn a_sink_that_stalls_does_not_stall_another() {
        let ((stalled, _, gate), (sound, written, open)) = (told(), told());
        let ledger =
            start(vec![NamedSink::blocking("stalled", stalled), NamedSink::blocking("sound", sound)]);
        drop(open);
        (0..1_000).for_each(|_| ledger.emit(event(Verdict::Allow)));
        assert!((1..=1_000).all(|number| written.next().sequence == number));
        drop(gate);
        assert!(ledger.close(PATIENCE).await);
    }

    #[tokio::test]
    async fn a_sink_that_drops_loses_its_own_events_and_no_denial_among_them() {
        let ((slow, kept, gate), (sound, written, open)) = (told(), told());
        let ledger = start(vec![NamedSink::dropping("slow", slow), NamedSink::blocking("sound", sound)]);
        drop(open);
        let mut number = 0;
        while ledger.state.metrics.events_total().1 == 0 {
            number += 1;
            ledger.emit(event(if number % 64 == 0 { Verdict::WouldDeny } else { Verdict::Allow }));
            ledger.ready().await;
        }
        drop(gate);
        assert!(ledger.close(PATIENCE).await);
        let (written, kept) = (written.rest(), kept.rest());
        assert!(written.iter().map(|event| event.sequence).eq(1..=number));
        assert_eq!(ledger.state.metrics.events_total(), (number, number - kept.len() as u64));
        let denials = |events: &[Event]| {
            events
                .iter()
                .filter(|event| event.decision.would_deny())
                .map(|event| event.id)
                .collect::<Vec<_>>()
        };
        assert_eq!(denials(&kept), denials(&written));
    }

    /// A sink that cannot flush.
    struct BrokenAnswer;

    impl Sink for BrokenAnswer {
        fn write(&mut self, _: &Event, _: &[u8]) -> io::Result<()> {
            Ok(())
        }

        fn flush(&mut self) -> io::Result<()> {
            Err(io::ErrorKind::BrokenPipe.into())
        }
    }

    #[tokio::test]
    async fn a_sink_that_fails_is_counted_and_harms_neither_the_others_nor_the_process() {
        let (sound, written, _) = told();
        let ledger =
            start(vec![NamedSink::blocking("broken", BrokenAnswer), NamedSink::blocking("sound", sound)]);
        (0..10).for_each(|_| ledger.emit(event(Verdict::Allow)));
        assert!(ledger.close(PATIENCE).await);
        assert_eq!(ledger.state.metrics.events_total(), (10, 10));
        assert!(written.rest().iter().map(|event| event.sequence).eq(1..=10));
    }
}
