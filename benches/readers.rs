//! What readers of the record cost, each as a whole process: a ledger and lines of a million events, 100,000 for trials.
//!
//! `cargo bench --bench readers -- 100000` makes a smaller record. Prints seconds, the best of three, and fails where a bar is not met.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a bench that cannot start should say so, and prints a table"
)]

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use postern::event::{Chain, Event, Id, Timestamp};
use postern::ledger::Sink;
use postern::ledger::store::{Store, StoreHealth, StoreSettings};
use serde_json::{Value, json};

/// A week.
const SPAN: u64 = 7 * 86_400_000;
const BEGIN: u64 = 1_795_305_600_000;

const POLICY: &str = "\
apiVersion: postern.dev/v1alpha1
kind: EgressPolicy
metadata: {name: coders, namespace: agents}
spec:
  destinations: [{name: anthropic, hosts: [api.anthropic.com], action: Inspect}]
  tools: [{name: no-rm, kind: Shell, action: Deny, when: {param: command, operator: Contains, values: [rm]}}]
";

fn main() -> ExitCode {
    let count: u64 = std::env::args().find_map(|argument| argument.parse().ok()).unwrap_or(1_000_000);
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let at = |name: &str| place.path().join(name).display().to_string();
    write(place.path(), "all", count);
    write(place.path(), "tenth", count / 10);
    fs::write(at("old.yaml"), POLICY).unwrap();
    fs::write(at("new.yaml"), POLICY.replace("[rm]", "[rm, curl]")).unwrap();
    let (db, lines, tenth) = (at("all.db"), at("all.jsonl"), at("tenth.db"));
    let (old, new, middle) = (at("old.yaml"), at("new.yaml"), id(count / 2).to_string());
    let since = Timestamp::from_unix_millis(BEGIN + SPAN - 3_600_000).to_string();
    let runs: [(&str, f64, &[&str]); 12] = [
        ("show", 0.01, &["ledger", "show", &middle, "--ledger", &db]),
        ("query, an hour", 0.3, &["ledger", "query", "--since", &since, "--ledger", &db]),
        (
            "query, a session",
            0.3,
            &["ledger", "query", "--session", "s-17", "--verdict", "Deny", "--ledger", &db],
        ),
        ("query, a rule", 0.3, &["ledger", "query", "--rule", "no-rm", "--limit", "1000", "--ledger", &db]),
        (
            "query, SQL",
            0.3,
            &["ledger", "query", "--sql", "SELECT tool, count(*) FROM events GROUP BY tool", "--ledger", &db],
        ),
        (
            "query, a verdict and a host",
            f64::MAX,
            &["ledger", "query", "--verdict", "Deny", "--host", "api.anthropic.com", "--ledger", &db],
        ),
        ("stats", 3.0, &["ledger", "stats", "--by", "model", "--ledger", &db]),
        ("stats of lines", 3.0, &["ledger", "stats", "--by", "model", "--ledger", &lines]),
        ("verify", 5.0, &["ledger", "verify", "--ledger", &db]),
        ("verify of lines", 5.0, &["ledger", "verify", "--ledger", &lines]),
        ("learn, a tenth", 5.0, &["policy", "learn", "--ledger", &tenth]),
        ("diff, a tenth", 5.0, &["policy", "diff", &old, &new, "--ledger", &tenth]),
    ];
    let mut is_met = true;
    for (name, bar, arguments) in runs {
        let seconds = (0..3).map(|_| run(arguments)).min().unwrap().as_secs_f64();
        // A smaller record says nothing of the bars.
        let fails = count >= 1_000_000 && seconds > bar;
        let bar = if bar == f64::MAX { "none".to_owned() } else { format!("{bar} s") };
        println!("{name:<28} {seconds:>8.3} s   bar {bar}{}", if fails { "   NOT MET" } else { "" });
        is_met &= !fails;
    }
    if is_met { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn run(arguments: &[&str]) -> Duration {
    let begin = Instant::now();
    let mut command = Command::new(env!("CARGO_BIN_EXE_postern"));
    let status = command.args(arguments).stdout(Stdio::null()).status().unwrap();
    let took = begin.elapsed();
    assert!(status.success(), "{arguments:?}");
    took
}

fn id(number: u64) -> Id {
    Id::new(Timestamp::from_unix_millis(BEGIN + number), [7; 10])
}

/// A ledger and a file of lines with so many events, as agents cause them.
fn write(place: &Path, name: &str, count: u64) {
    let path = place.join(format!("{name}.db"));
    let settings = StoreSettings {
        path,
        max_age: Duration::from_secs(10 * 365 * 86_400),
        max_bytes: 64 << 30,
        blocks: true,
    };
    let mut store = Store::open(settings, StoreHealth::default()).unwrap();
    let mut lines = BufWriter::new(File::create(place.join(format!("{name}.jsonl"))).unwrap());
    let (start, mut chain) = (id(0), Chain::BEGIN);
    for number in 1..=count {
        let mut event = Event::read(event(number, count).to_string().as_bytes()).unwrap();
        (event.sequence, event.start) = (number, Some(start));
        let mut line = serde_json::to_vec(&event).unwrap();
        chain = chain.after(&line);
        chain.append_to(&mut line);
        event.chain = Some(chain);
        store.write(&event, &line).unwrap();
        line.push(b'\n');
        lines.write_all(&line).unwrap();
    }
    store.close().unwrap();
    lines.flush().unwrap();
}

/// Of five events: a request, three calls, and the answer that made them.
fn event(number: u64, count: u64) -> Value {
    let time = Timestamp::from_unix_millis(BEGIN + number * SPAN / count);
    let (turn, part) = (number / 5, number % 5);
    let tool = ["Bash", "Read", "Edit", "mcp__github__get_issue"][usize::try_from(turn % 4).unwrap()];
    let verdict = if part == 2 && turn % 50 == 0 { "Deny" } else { "Allow" };
    let rule = if part == 0 || part == 4 { "agents/coders/anthropic" } else { "agents/coders/no-rm" };
    let mut event = json!({
        "apiVersion": "postern.dev/event/v1", "id": id(number), "time": time, "sequence": number, "count": 1,
        "kind": "ToolCall", "direction": "Inbound", "session": format!("s-{}", turn % 200),
        "trace": "4bf92f3577b34da6a3ce929d0e0e4736", "credential": "anthropic",
        "workload": {"namespace": "agents", "pod": "coder-0", "serviceAccount": "coder", "node": "node-1"},
        "destination": {"host": "api.anthropic.com", "port": 443, "action": "Inspect", "intercepted": true},
        "http": {"method": "POST", "path": "/v1/messages", "status": 200, "version": "HTTP/2"},
        "provider": {"name": "anthropic", "api": "messages", "model": "claude-sonnet-5-5", "stream": true},
        "decision": {"verdict": verdict, "rule": rule, "enforcement": "Enforce"},
        "connection": id(turn / 20), "exchange": id(turn * 5),
    });
    let more = match part {
        0 => {
            json!({"kind": "Request", "direction": "Outbound", "payload": {"bytes": 150_000 + number % 977}})
        }
        4 => {
            json!({"kind": "Response", "usage": {"inputTokens": 40_000, "outputTokens": 600, "cacheReadTokens": 38_000},
            "payload": {"bytes": 4_000}})
        }
        _ => json!({"toolCall": {"id": format!("toolu_{number}"), "name": tool, "kindsBy": "Catalogue",
            "inputSha256": format!("{:064x}", number % 5_003), "inputBytes": 80}}),
    };
    event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    if number == count {
        // Without it the record looks cut off.
        event["kind"] = "Lifecycle".into();
        event["decision"] = json!({"verdict": "Allow", "reason": "the gateway has stopped"});
    }
    event
}
