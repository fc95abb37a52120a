//! What an event costs as an OTLP log record: made, encoded and sent to a collector on the loopback, in CPU time.
//!
//! The collector is another process, so that its time is not counted. The bar of P27 is 15 µs an event.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a bench that cannot start should say so, and prints"
)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

use postern::decision::{Decision, RuleId, Verdict};
use postern::event::{Action, Destination, Event, Http, Kind, Workload};
use postern::ledger::logs::Logs;
use postern::ledger::otlp::{OtlpSettings, Signal};
use postern::ledger::{Sink, fresh_id};
use postern::telemetry::Metrics;

/// The allocator that the gateway uses.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The exporter reads where it sends from here.
const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_LOGS_ENDPOINT";
/// Those of ten seconds at 10,000 a second.
const EVENTS: u32 = 100_000;

fn main() {
    if std::env::var_os(ENDPOINT).is_some() {
        return export();
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}/v1/logs", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        listener.incoming().flatten().for_each(|stream| drop(std::thread::spawn(move || answer(&stream))));
    });
    let status = Command::new(std::env::current_exe().unwrap()).env(ENDPOINT, endpoint).status().unwrap();
    assert!(status.success());
}

/// Takes the batches of a connection.
fn answer(stream: &TcpStream) {
    let mut reader = BufReader::new(stream);
    while take_batch(&mut reader, stream) {}
}

/// Takes one batch; false where none comes any more.
fn take_batch(reader: &mut BufReader<&TcpStream>, mut writer: &TcpStream) -> bool {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap() == 0 {
            return false;
        }
        match line.to_ascii_lowercase().split_once(": ") {
            Some(("content-length", value)) => length = value.trim().parse().unwrap(),
            Some(_) => {}
            None if line.trim().is_empty() => break,
            None => {}
        }
    }
    reader.read_exact(&mut vec![0; length]).unwrap();
    writer.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").unwrap();
    true
}

fn export() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let guard = runtime.enter();
    let metrics = Arc::new(Metrics::new().unwrap());
    let settings = OtlpSettings::read(Signal::Logs, &|name| std::env::var_os(name)?.into_string().ok())
        .unwrap()
        .unwrap();
    let mut logs = Logs::start(&settings, &Workload::default(), Arc::clone(&metrics)).unwrap();
    drop(guard);

    let event = event();
    let mut line = Vec::new();
    let (printed, _) = timed(|| {
        line.clear();
        serde_json::to_writer(&mut line, &event).unwrap();
    });
    let (exported, wall) = timed(|| logs.write(&event, &line).unwrap());
    logs.close().unwrap();
    let lost = metrics.encode().contains("postern_log_records_exported_total{result=\"failure\"} 0\n");
    println!(
        "an event of {} bytes: {exported:.1} µs of CPU as a log record ({wall:.1} µs on the clock), {printed:.1} µs as a line of JSON",
        line.len()
    );
    assert!(lost, "the collector took every record");
}

/// Microseconds of CPU, of all threads, and on the clock, for each of the events.
fn timed(mut each: impl FnMut()) -> (f64, f64) {
    let (before, started) = (cpu(), Instant::now());
    (0..EVENTS).for_each(|_| each());
    let each = |micros: f64| micros / f64::from(EVENTS);
    (each(cpu() - before), each(started.elapsed().as_secs_f64() * 1e6))
}

/// The time that this process has had, in microseconds; the kernel counts in hundredths of a second (proc(5)).
fn cpu() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit(") ").next().unwrap().split(' ').collect();
    [fields[11], fields[12]].iter().map(|ticks| ticks.parse::<f64>().unwrap() * 1e4).sum()
}

/// An allowed request to a model.
fn event() -> Event {
    let destination = Destination {
        host: "api.anthropic.com".to_owned(),
        port: 443,
        action: Action::Inspect,
        intercepted: true,
        reason: None,
    };
    let decision = Decision {
        rule: Some(RuleId::new("agents/coding-agents/anthropic")),
        ..Decision::of(Verdict::Allow)
    };
    let id = fresh_id();
    Event {
        destination: Some(Arc::new(destination)),
        http: Some(Http::request("POST", "/v1/messages?beta=true", http::Version::HTTP_2)),
        connection: Some(id),
        exchange: Some(id),
        session: Some("01a2008d-747b-7101-8101-010101010101".into()),
        ..Event::new(id, Kind::Request, decision)
    }
}
