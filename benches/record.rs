//! What the record costs at 20,000 events a second for a minute: standard output and a ledger together, in a process of its
//! own: CPU and bytes an event, and what was dropped (P24 of the performance targets).
//!
//! `cargo bench --bench record -- 10` runs for so many seconds.

#![expect(clippy::unwrap_used, reason = "a bench that cannot start should say so")]
#![expect(clippy::print_stderr, reason = "standard output has the events")]

use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use postern::decision::{Decision, RuleId, Verdict};
use postern::event::{Action, Destination, Event, Http, Kind};
use postern::ledger::store::{Store, StoreHealth, StoreSettings};
use postern::ledger::{Ledger, NamedSink, fresh_id, stdout::JsonLines};
use postern::telemetry::Metrics;

/// The allocator that the gateway uses.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Events a second.
const RATE: u128 = 20_000;
/// Standard output and a ledger that has reached its `maxBytes`.
const FULL: &str = "stdout and a full ledger";
/// Says to the child that it is the child.
const CHILD: &str = "POSTERN_BENCH_RECORD";

fn main() {
    let seconds = std::env::args().find_map(|argument| argument.parse().ok()).unwrap_or(60);
    if let Some(sinks) = std::env::var_os(CHILD) {
        return record(seconds, &sinks.to_string_lossy());
    }
    for sinks in ["none", "stdout", "stdout and ledger", FULL] {
        let mut child = Command::new(std::env::current_exe().unwrap());
        let status = child.arg(seconds.to_string()).env(CHILD, sinks).stdout(Stdio::null()).status().unwrap();
        assert!(status.success());
    }
}

fn record(seconds: u64, sinks: &str) {
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = place.path().join("ledger.db");
    let metrics = Arc::new(Metrics::new().unwrap());
    let settings = StoreSettings {
        path: path.clone(),
        max_age: Duration::from_secs(7 * 86_400),
        // The second is full after some seconds: from then on rows go as rows come.
        max_bytes: if sinks == FULL { 256 << 20 } else { 4 << 30 },
        blocks: true,
    };
    let mut outlets = Vec::new();
    if sinks != "none" {
        outlets.push(NamedSink::blocking("stdout", JsonLines::new(std::io::stdout())));
    }
    if sinks.contains("ledger") {
        outlets.push(NamedSink::blocking("ledger", Store::open(settings, StoreHealth::default()).unwrap()));
    }
    let ledger = Ledger::start(outlets, None, Arc::clone(&metrics)).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (begun, before, mut emitted, parts) = (Instant::now(), cpu(), 0, Parts::new());
    while begun.elapsed() < Duration::from_secs(seconds) {
        let due = begun.elapsed().as_millis() * RATE / 1_000;
        while emitted < due {
            ledger.emit(parts.event());
            emitted += 1;
        }
        runtime.block_on(ledger.ready());
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(runtime.block_on(ledger.close(Duration::from_secs(60))), "all was written");
    let each = (cpu() - before) / emitted as f64;
    let encoded = metrics.encode();
    let dropped = encoded.lines().filter(|line| line.starts_with("postern_ledger_dropped_total"));
    let dropped: f64 = dropped.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum();
    let bytes = std::fs::metadata(&path).map_or(0, |file| file.len()) as f64 / emitted as f64;
    eprintln!(
        "{sinks:<24} {emitted} events in {seconds} s: {each:.1} µs of CPU an event, {bytes:.0} bytes of ledger an \
         event, {dropped} dropped"
    );
}

/// The time that this process has had, in microseconds; the kernel counts in hundredths of a second (proc(5)).
fn cpu() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit(") ").next().unwrap().split(' ').collect();
    [fields[11], fields[12]].iter().map(|ticks| ticks.parse::<f64>().unwrap() * 1e4).sum()
}

/// What events share.
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
        let decision = Decision { rule: Some(self.rule.clone()), ..Decision::of(Verdict::Allow) };
        let id = fresh_id();
        Event {
            destination: Some(Arc::clone(&self.destination)),
            http: Some(Http::request("POST", "/v1/messages?beta=true", http::Version::HTTP_2)),
            connection: Some(id),
            exchange: Some(id),
            session: Some("01a2008d-747b-7101-8101-010101010101".into()),
            ..Event::new(id, Kind::Request, decision)
        }
    }
}
