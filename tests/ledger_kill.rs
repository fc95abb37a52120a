//! Kills a writer of the ledger under 20,000 events a second, again and again, and looks at what is left.
//!
//! A target without libtest: the same program is the writer. `--rounds N` kills it N times, else three times.

#![expect(clippy::unwrap_used, reason = "a test ends by panicking")]
#![expect(clippy::print_stdout, reason = "what it saw is what it is run for")]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use postern::decision::{Decision, RuleId, Verdict};
use postern::event::{Chain, Event, Kind};
use postern::ledger::store::{Store, StoreHealth, StoreSettings};
use postern::ledger::{Ledger, NamedSink, fresh_id};
use postern::telemetry::Metrics;
use rusqlite::{Connection, OpenFlags};

/// Events a second.
const RATE: u128 = 20_000;
/// So many starts write one file, then comes another.
const STARTS: usize = 4;
/// After so many events it is asked again whether there is room for more.
const BURST: u128 = 256;
/// As many events may wait between whoever emits them and the file.
const MOST_MISSING: u64 = 32_768;
/// A WAL of so many bytes is about to be written back.
const LONG_WAL: u64 = 15 << 20;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [write, file] = arguments.as_slice()
        && write == "--write"
    {
        return write_until_killed(Path::new(file));
    }
    // A word is a filter for other tests, and `--list` and the like are libtest's.
    let words =
        arguments.iter().filter(|argument| !argument.starts_with("--") && argument.parse::<u32>().is_err());
    if words.into_iter().any(|word| !"ledger_kill".contains(word.as_str()))
        || arguments.contains(&"--list".into())
    {
        return;
    }
    let rounds = arguments.iter().skip_while(|argument| *argument != "--rounds").nth(1);
    kill(rounds.map_or(3, |rounds| rounds.parse().unwrap()));
}

/// Emits events at the rate, and says on standard output how many.
fn write_until_killed(file: &Path) {
    let settings = StoreSettings {
        path: file.to_owned(),
        max_age: Duration::from_secs(24 * 60 * 60),
        max_bytes: 1 << 30,
        blocks: true,
    };
    let store = Store::open(settings, StoreHealth::default()).unwrap();
    let metrics = Arc::new(Metrics::new().unwrap());
    let ledger = Ledger::start(vec![NamedSink::blocking("ledger", store)], None, metrics).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (begun, mut emitted) = (Instant::now(), 0);
    loop {
        let due = begun.elapsed().as_millis() * RATE / 1_000;
        while emitted < due {
            // What was due while the writer was behind is not emitted at once: it would find no place in the queue.
            if emitted.is_multiple_of(BURST) {
                println!("{emitted}");
                runtime.block_on(ledger.ready());
            }
            let mut event = Event::new(fresh_id(), Kind::Request, Decision::of(Verdict::Allow));
            event.decision.rule = Some(RuleId::new("agents/coding-agents/anthropic"));
            ledger.emit(event);
            emitted += 1;
        }
        println!("{emitted}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn kill(rounds: usize) {
    let mut place = tempfile::tempdir().unwrap();
    let (mut most, mut all) = (0, 0);
    for round in 0..rounds {
        if round.is_multiple_of(STARTS) {
            place = tempfile::tempdir().unwrap();
        }
        let file = place.path().join("ledger.db");
        let (emitted, wal) = run_and_kill(round, &file);
        let kept = look(&file, round % STARTS + 1);
        assert!(kept <= emitted && emitted - kept <= MOST_MISSING, "{kept} of {emitted} are there");
        (most, all) = (most.max(emitted - kept), all + emitted);
        let missing = emitted - kept;
        println!("killed at {emitted} events with {wal} bytes of WAL: {missing} are missing");
    }
    println!("{rounds} kills, {all} events: every file is whole, at most {most} are missing");
}

/// Has this program write, and kills it: every other time when the WAL is about to be written back. Returns how many events
/// it had emitted, as far as it could say, and the length of the WAL.
fn run_and_kill(round: usize, file: &Path) -> (u64, u64) {
    let mut writer = Command::new(std::env::current_exe().unwrap());
    let mut writer = writer.arg("--write").arg(file).stdout(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(writer.stdout.take().unwrap()).lines();
    let mut emitted: u64 = 0;
    let wal = || std::fs::metadata(file.with_file_name("ledger.db-wal")).map_or(0, |wal| wal.len());
    let enough = 3_000 * (1 + round as u64 % 7);
    let is_due = |emitted| {
        if round.is_multiple_of(2) { emitted >= enough } else { emitted >= 1_000 && wal() >= LONG_WAL }
    };
    while !is_due(emitted) {
        emitted = said.next().unwrap().unwrap().parse().unwrap();
    }
    let long = wal();
    writer.kill().unwrap();
    writer.wait().unwrap();
    // What it had said and nobody had read yet; the last line may be cut.
    let rest = said.map_while(Result::ok).filter_map(|line| line.parse::<u64>().ok());
    (rest.fold(emitted, u64::max), long)
}

/// Looks at a file after so many starts. Returns how many events of the last start are there.
fn look(file: &Path, starts: usize) -> u64 {
    let read = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
    let text = |query: &str| read.query_row(query, [], |row| row.get::<_, String>(0)).unwrap();
    let number = |query: &str| {
        let number: i64 = read.query_row(query, [], |row| row.get(0)).unwrap();
        u64::try_from(number).unwrap()
    };
    assert_eq!(text("PRAGMA integrity_check"), "ok");
    assert_eq!(number("SELECT count(*) FROM starts"), starts as u64);
    assert_eq!(number("SELECT count(*) FROM starts WHERE ended IS NOT NULL"), 0, "none has ended in order");
    let newest = "FROM events WHERE start = (SELECT start FROM events ORDER BY n DESC LIMIT 1)";
    let kept = number(&format!("SELECT count(*) {newest}"));
    assert_eq!(kept, number(&format!("SELECT max(sequence) {newest}")), "what is missing is the end");
    let mut lines = read.prepare(&format!("SELECT event {newest} ORDER BY sequence")).unwrap();
    let mut chain = Chain::BEGIN;
    for line in lines.query_map([], |row| row.get::<_, String>(0)).unwrap() {
        let (named, found) = Chain::of_line(line.unwrap().as_bytes(), chain).unwrap();
        assert_eq!(named, found, "the chain goes on");
        chain = named;
    }
    drop(lines);
    drop(read);
    // The next gateway takes it for what it is.
    let settings = StoreSettings {
        path: file.to_owned(),
        max_age: Duration::from_secs(24 * 60 * 60),
        max_bytes: 1 << 30,
        blocks: true,
    };
    drop(Store::open(settings, StoreHealth::default()).unwrap());
    kept
}
