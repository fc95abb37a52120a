//! The built executable beside direct TLS, redirected beside CONNECT, with a ledger, detection, routes or shortened
//! results of tools beside without, with more of each beside less, in turns in one run: ratios and CPU time.
//!
//! The load and the upstream share one thread, so that the gateway has a core of its own where there are two.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a benchmark that cannot do its work has nothing to say"
)]
#![expect(clippy::print_stdout, reason = "a benchmark speaks")]

mod answers;
mod body;
mod client;
mod costs;
mod counted;
mod detection;
mod exchanges;
mod fleet;
mod gateway;
mod growth;
mod load;
mod outputs;
mod pki;
mod profile;
mod record;
mod redirect;
mod routes;
mod upstream;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use client::{Client, Way};
use gateway::{API, COLD, Gateway, MODEL, PLAIN, TUNNEL};
use load::{Cold, Load, Sample};
use pki::Pki;

/// Every round runs all that is measured, both ways back to back; what is shown is the median of the rounds.
const ROUNDS: usize = 5;
const WINDOW: Duration = Duration::from_millis(700);
/// Cold names are bounded, so their window is short.
const COLD_WINDOW: Duration = Duration::from_millis(400);
/// Idle connections whose memory is measured.
const HELD: usize = 1_000;
/// How long the gateway has to settle before its memory is read.
const SETTLE: Duration = Duration::from_secs(1);

const BESIDE_DIRECT: Comparison = Comparison {
    names: ["direct", "gateway"],
    ways: [Way::Direct, Way::Gateway],
    loads: &[
        ("h1, 1 connection", Unit::Latency, Load::Requests { connections: 1, streams: 1 }),
        ("h1, 32 connections", Unit::Rate, Load::Requests { connections: 32, streams: 1 }),
        ("h2, 2 x 16 streams", Unit::Rate, Load::Requests { connections: 2, streams: 16 }),
        ("new connections", Unit::Rate, Load::Connections { cold: false }),
        ("cold names", Unit::Rate, Load::Connections { cold: true }),
        ("events", Unit::Rate, Load::Events { name: PLAIN }),
        ("events, scrubbed", Unit::Rate, Load::Events { name: API }),
        ("down", Unit::Bytes, Load::Down { name: PLAIN }),
        ("down, scrubbed", Unit::Bytes, Load::Down { name: API }),
        ("up, binary", Unit::Bytes, Load::Up { name: PLAIN }),
        ("up, text", Unit::Bytes, Load::UpText { name: PLAIN }),
        ("down, tunnelled", Unit::Bytes, Load::Down { name: TUNNEL }),
        ("up, tunnelled", Unit::Bytes, Load::Up { name: TUNNEL }),
    ],
};

/// Two ways to the same upstream, and what is done over both.
pub(crate) struct Comparison {
    names: [&'static str; 2],
    ways: [Way; 2],
    loads: &'static [(&'static str, Unit, Load)],
}

/// What is shown of a sample, and what CPU time is shown for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    /// The median latency in µs; CPU µs for each item.
    Latency,
    /// Items a second; CPU µs for each.
    Rate,
    /// MB a second; CPU ms for each GB.
    Bytes,
}

/// Who asks, and whose CPU time is counted.
type Side<'a> = (&'a Arc<Client>, &'a Gateway);

/// One load in all rounds, over the first way and the second.
type Row = Vec<(Sample, Sample)>;

fn main() -> ExitCode {
    if let Some(ended) = counted::run_if_asked() {
        return ended;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.iter().any(|argument| argument == "--costs") {
        return if runtime.block_on(costs::run()) { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    let profiled =
        arguments.iter().position(|argument| argument == "--profile").map(|at| &arguments[at + 1..]);
    if let Some([name, profiler @ ..]) = profiled {
        runtime.block_on(profile::run(name, profiler));
    } else if std::env::args().any(|argument| argument == "--redirect") {
        runtime.block_on(redirect::run());
    } else if std::env::args().any(|argument| argument == "--ledger") {
        runtime.block_on(record::run());
    } else if std::env::args().any(|argument| argument == "--detection") {
        runtime.block_on(detection::run());
    } else if std::env::args().any(|argument| argument == "--outputs") {
        runtime.block_on(outputs::run());
    } else if std::env::args().any(|argument| argument == "--growth") {
        runtime.block_on(growth::run());
    } else if std::env::args().any(|argument| argument == "--routes") {
        runtime.block_on(routes::run());
    } else {
        runtime.block_on(run());
    }
    ExitCode::SUCCESS
}

async fn run() {
    let directory = tempfile::tempdir().unwrap();
    let pki = Pki::new(directory.path());
    let upstream = upstream::serve(pki.server(&[API, PLAIN, MODEL, TUNNEL, "*.cold.bench.test"])).await;
    let fresh = Gateway::start(directory.path(), upstream, 0);
    let memory = memory(&Client::new(upstream, fresh.address, &pki), &fresh).await;
    drop(fresh);
    let gateway = Gateway::start(directory.path(), upstream, COLD);
    let client = Client::new(upstream, gateway.address, &pki);
    show(&BESIDE_DIRECT, &rounds(&BESIDE_DIRECT, [(&client, &gateway); 2]).await);
    println!("\n{memory}");
}

/// Memory of the fresh process, and what connections add that have served a request and wait.
async fn memory(client: &Arc<Client>, gateway: &Gateway) -> String {
    tokio::time::sleep(SETTLE).await;
    let idle = gateway.resident();
    let held = load::hold(client, HELD).await;
    tokio::time::sleep(SETTLE).await;
    let resident = gateway.resident();
    drop(held);
    format!(
        "memory: {:.1} MiB idle, {:.1} MiB with {HELD} idle connections ({:.1} KiB each)",
        idle as f64 / 1024.0,
        resident as f64 / 1024.0,
        resident.saturating_sub(idle) as f64 / HELD as f64,
    )
}

async fn rounds(comparison: &Comparison, [left, right]: [Side<'_>; 2]) -> Vec<Row> {
    let Comparison { ways: [first, second], loads, .. } = *comparison;
    let mut rows: Vec<Row> = loads.iter().map(|_| Vec::new()).collect();
    let cold = Arc::new(Cold::default());
    for round in 0..ROUNDS {
        for (row, (_, _, load)) in rows.iter_mut().zip(loads) {
            let window = if matches!(load, Load::Connections { cold: true }) { COLD_WINDOW } else { WINDOW };
            let measure = |side, way| load::measure(side, (*load, way), window, &cold);
            // Which of the two is first changes from round to round.
            row.push(if round % 2 == 0 {
                (measure(left, first).await, measure(right, second).await)
            } else {
                let through = measure(right, second).await;
                (measure(left, first).await, through)
            });
        }
    }
    rows
}

fn show(comparison: &Comparison, rows: &[Row]) {
    let [first, second] = comparison.names;
    println!(
        "\n{ROUNDS} rounds; medians. The ratios are {second} / {first} of one round, median (lowest-highest)."
    );
    println!("CPU is the gateway's, for each item (µs) or GB (ms); core is how much of one it used.\n");
    println!(
        "{:<20}{first:>10}{second:>10} {:<8}{:>20}{:>10}{:>7}{:>20}",
        "", "", "ratio", "CPU", "core", "ratio of CPU"
    );
    for ((name, unit, _), row) in comparison.loads.iter().zip(rows) {
        let value = |sample: &Sample| unit.value(sample);
        let ratio = Spread::of(row.iter().map(|(first, second)| value(second) / value(first)));
        let cpu = Spread::of(row.iter().map(|(first, second)| unit.cpu(second) / unit.cpu(first)));
        println!(
            "{name:<20}{:>10.0}{:>10.0} {:<8}{:>20}{:>10.1}{:>7.2}{:>20}",
            Spread::of(row.iter().map(|(first, _)| value(first))).median,
            Spread::of(row.iter().map(|(_, second)| value(second))).median,
            unit.word(),
            ratio.shown(),
            Spread::of(row.iter().map(|(_, second)| unit.cpu(second))).median,
            Spread::of(row.iter().map(|(_, second)| second.cpu.div_duration_f64(second.elapsed))).median,
            if cpu.highest.is_finite() { cpu.shown() } else { String::new() },
        );
    }
    let p99 = |sample: &Sample| quantile(&sample.latencies, 0.99);
    println!();
    for ((name, ..), row) in
        comparison.loads.iter().zip(rows).filter(|((_, unit, _), _)| *unit == Unit::Latency)
    {
        let tail = Spread::of(row.iter().map(|(first, second)| p99(second) / p99(first)));
        println!("{:<40}{:>29}", format!("p99: {name}"), tail.shown());
    }
}

impl Unit {
    fn word(self) -> &'static str {
        match self {
            Self::Latency => "µs",
            Self::Rate => "/s",
            Self::Bytes => "MB/s",
        }
    }

    fn value(self, sample: &Sample) -> f64 {
        let rate = sample.items / sample.elapsed.as_secs_f64();
        match self {
            Self::Latency => quantile(&sample.latencies, 0.5),
            Self::Rate => rate,
            Self::Bytes => rate / 1e6,
        }
    }

    fn cpu(self, sample: &Sample) -> f64 {
        let item = match self {
            Self::Latency | Self::Rate => sample.items,
            Self::Bytes => sample.items / 1e6,
        };
        sample.cpu.as_secs_f64() * 1e6 / item.max(1.0)
    }
}

/// In µs; 0 where there is nothing.
fn quantile(sorted: &[Duration], share: f64) -> f64 {
    let at = (sorted.len() as f64 * share) as usize;
    sorted.get(at).map_or(0.0, |latency| latency.as_secs_f64() * 1e6)
}

struct Spread {
    lowest: f64,
    median: f64,
    highest: f64,
}

impl Spread {
    fn of(values: impl Iterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.collect();
        values.sort_by(f64::total_cmp);
        Self { lowest: values[0], median: values[values.len() / 2], highest: values[values.len() - 1] }
    }

    fn shown(&self) -> String {
        format!("{:.2} ({:.2}-{:.2})", self.median, self.lowest, self.highest)
    }
}
