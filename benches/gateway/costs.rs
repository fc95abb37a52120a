//! Counts what the gateway allocates for an exchange, and fails where that has grown; what `just costs` runs.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use super::client::Client;
use super::counted::{self, Counts};
use super::exchanges::{self, EXCHANGES, Exchange};
use super::gateway::{API, GUARDED, MODEL, PLAIN, TUNNEL, settings, write_policies};
use super::pki::Pki;
use super::upstream;

/// Exchanges before anything counts: caches and buffers are filled.
const WARM: usize = 64;
/// Exchanges that are counted together.
const BATCH: usize = 50;
/// What is told is the least of so many batches: what happens once a second, and bytes that come in more pieces, only add.
const BATCHES: usize = 9;
/// How much more an exchange may take than what is written down, in hundredths: how bytes come in pieces differs from run to
/// run.
const MORE_ALLOCATIONS: u64 = 3;
const MORE_BYTES: u64 = 10;

/// Counts all exchanges and compares them with `costs.txt`. Returns whether none has grown.
pub(crate) async fn run() -> bool {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path();
    let pki = Pki::new(directory);
    let upstream = upstream::serve(pki.server(&[API, PLAIN, MODEL, GUARDED, TUNNEL])).await;
    std::fs::write(directory.join("settings.yaml"), settings(upstream, 0)).unwrap();
    write_policies(directory, &exchanges::policy());
    let gateway = counted::start(directory);
    let client = Client::new(upstream, gateway.address, &pki);
    let mut counted = Vec::new();
    for exchange in &EXCHANGES {
        let mut repeated = exchange.begin(&client).await;
        repeated.run(WARM).await;
        let mut batches = Vec::new();
        for _ in 0..BATCHES {
            let before = counted::counts(directory);
            repeated.run(BATCH).await;
            batches.push(counted::counts(directory) - before);
        }
        counted.push((exchange, least(&batches)));
    }
    compare(&counted)
}

/// The least of each number, for one exchange.
fn least(batches: &[Counts]) -> Counts {
    let least = |number: fn(&Counts) -> u64| {
        let number = batches.iter().map(number).min().unwrap_or_default();
        (number + BATCH as u64 / 2) / BATCH as u64
    };
    Counts { allocations: least(|counts| counts.allocations), bytes: least(|counts| counts.bytes) }
}

fn file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/gateway/costs.txt")
}

/// Shows what was counted beside what is written down, which `POSTERN_BLESS=1` writes anew.
fn compare(counted: &[(&Exchange, Counts)]) -> bool {
    let blesses = std::env::var_os("POSTERN_BLESS").is_some();
    if blesses {
        std::fs::write(file(), written(counted)).unwrap();
    }
    let text = std::fs::read_to_string(file()).unwrap_or_default();
    let expected = read(&text);
    println!("{:<14}{:>12}{:>12}{:>12}{:>12}", "exchange", "allocations", "written", "bytes", "written");
    let mut grown = Vec::new();
    for (exchange, counts) in counted {
        let before = expected.get(exchange.name).copied().unwrap_or(Counts { allocations: 0, bytes: 0 });
        println!(
            "{:<14}{:>12}{:>12}{:>12}{:>12}",
            exchange.name, counts.allocations, before.allocations, counts.bytes, before.bytes
        );
        let is_more = |now: u64, before: u64, more: u64| now * 100 > before * (100 + more);
        if is_more(counts.allocations, before.allocations, MORE_ALLOCATIONS)
            || is_more(counts.bytes, before.bytes, MORE_BYTES)
        {
            grown.push(exchange.name);
        }
    }
    if !grown.is_empty() {
        println!(
            "\nMore is allocated than benches/gateway/costs.txt says, by more than {MORE_ALLOCATIONS} % of the allocations or \
             {MORE_BYTES} % of the bytes: {}. Find out what allocates (`just instructions` shows who calls the allocator), \
             or write the new numbers by `POSTERN_BLESS=1 just costs` and say why in the commit.",
            grown.join(", ")
        );
    }
    grown.is_empty()
}

fn written(counted: &[(&Exchange, Counts)]) -> String {
    let head =
        "# What one exchange allocates in the gateway, in a debug build: its name, allocations, bytes.\n";
    counted.iter().fold(head.to_owned(), |mut text, (exchange, counts)| {
        writeln!(text, "{} {} {}", exchange.name, counts.allocations, counts.bytes).unwrap();
        text
    })
}

fn read(text: &str) -> BTreeMap<&str, Counts> {
    let line = |line| {
        let [name, allocations, bytes] =
            <[&str; 3]>::try_from(str::split_whitespace(line).collect::<Vec<_>>()).ok()?;
        Some((name, Counts { allocations: allocations.parse().ok()?, bytes: bytes.parse().ok()? }))
    };
    text.lines().filter(|line| !line.starts_with('#')).filter_map(line).collect()
}
