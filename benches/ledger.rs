//! What an event costs: the data path that emits it, and the writer that numbers and prints it.
//!
//! `printed` is serde_json alone on the same struct; `written` should stay near it, above 20,000 events a second.

#![expect(clippy::unwrap_used, reason = "a bench that cannot start should say so")]

use std::io;
use std::sync::Arc;
use std::time::Duration;

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use postern::decision::{Decision, RuleId, Verdict};
use postern::event::{Action, Destination, Event, Http, Kind};
use postern::ledger::stdout::JsonLines;
use postern::ledger::{Ledger, NamedSink, Sink, fresh_id};
use postern::telemetry::Metrics;

/// The allocator that the gateway uses.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Fewer than make the ledger press back.
const EVENTS: usize = 4_096;

fn main() {
    divan::main();
}

struct Parts {
    destination: Arc<Destination>,
    rule: RuleId,
}

impl Parts {
    fn new() -> Self {
        let destination = Destination {
            host: "api.anthropic.com".to_owned(),
            port: 443,
            action: Action::Inspect,
            intercepted: true,
            reason: None,
        };
        Self { destination: Arc::new(destination), rule: RuleId::new("agents/coding-agents/anthropic") }
    }

    /// What an exchange emits for an allowed request.
    fn event(&self) -> Event {
        let decision = Decision {
            rule: Some(self.rule.clone()),
            enforcement: Some(postern::decision::Enforcement::Enforce),
            ..Decision::of(Verdict::Allow)
        };
        let id = fresh_id();
        Event {
            destination: Some(Arc::clone(&self.destination)),
            http: Some(Http::request("POST", "/v1/messages?beta=true", http::Version::HTTP_2)),
            connection: Some(id),
            exchange: Some(id),
            ..Event::new(id, Kind::Request, decision)
        }
    }
}

#[divan::bench]
fn made(bencher: Bencher<'_, '_>) {
    let parts = Parts::new();
    bencher.counter(ItemsCount::new(1_u64)).bench_local(|| black_box(parts.event()));
}

#[divan::bench]
fn printed(bencher: Bencher<'_, '_>) {
    let event = Parts::new().event();
    let mut line = Vec::with_capacity(4_096);
    bencher.counter(ItemsCount::new(1_u64)).bench_local(|| {
        line.clear();
        serde_json::to_writer(&mut line, black_box(&event)).is_ok()
    });
}

#[divan::bench]
fn written(bencher: Bencher<'_, '_>) {
    let event = Parts::new().event();
    let mut line = Vec::with_capacity(4_096);
    let mut sink = JsonLines::new(io::sink());
    bencher.counter(ItemsCount::new(1_u64)).bench_local(|| {
        line.clear();
        serde_json::to_writer(&mut line, black_box(&event)).is_ok() && sink.write(&event, &line).is_ok()
    });
}

fn started() -> Ledger {
    let metrics = Arc::new(Metrics::new().unwrap());
    Ledger::start(vec![NamedSink::blocking("none", JsonLines::new(io::sink()))], None, metrics).unwrap()
}

/// Only what the data path pays: the writer is on another thread.
#[divan::bench]
fn emitted(bencher: Bencher<'_, '_>) {
    let parts = Parts::new();
    bencher.counter(ItemsCount::new(EVENTS)).with_inputs(started).bench_local_values(|ledger| {
        (0..EVENTS).for_each(|_| ledger.emit(parts.event()));
        ledger
    });
}

/// From the first event made to the last byte written, on all threads.
#[divan::bench]
fn kept(bencher: Bencher<'_, '_>) {
    let parts = Parts::new();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    bencher.counter(ItemsCount::new(EVENTS)).with_inputs(started).bench_local_values(|ledger| {
        (0..EVENTS).for_each(|_| ledger.emit(parts.event()));
        assert!(runtime.block_on(ledger.close(Duration::from_secs(60))));
    });
}
