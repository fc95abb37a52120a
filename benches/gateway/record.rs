//! A gateway with a ledger beside one without, both with events on standard output; what `just bench-record` runs.

use std::path::Path;
use std::process::Command;

use super::client::Way;
use super::fleet::{Fleet, Member};
use super::gateway::{API, Gateway, PLAIN, POLICY, executable, write_policies};
use super::load::Load;
use super::{Comparison, SETTLE, Unit, rounds, show};

const RECORDED: Comparison = Comparison {
    names: ["stdout", "ledger"],
    ways: [Way::Gateway, Way::Gateway],
    loads: &[
        ("h1, 1 connection", Unit::Latency, Load::Requests { connections: 1, streams: 1 }),
        ("h1, 32 connections", Unit::Latency, Load::Requests { connections: 32, streams: 1 }),
        ("h2, 2 x 16 streams", Unit::Rate, Load::Requests { connections: 2, streams: 16 }),
        ("new connections", Unit::Rate, Load::Connections { cold: false }),
        ("events", Unit::Rate, Load::Events { name: PLAIN }),
        ("events, scrubbed", Unit::Rate, Load::Events { name: API }),
    ],
};

/// A rule over facts, a limit and a tool rule.
const MORE: &str = "  rules: [{name: opus, when: 'event.provider.model.contains(\"opus\")', action: Audit}]
  limits: {tokensPerDay: 1000000000}
  tools: [{name: sudo, kind: Shell, action: Deny, when: {param: command, operator: Contains, values: [sudo]}}]
";

pub(crate) async fn run() {
    let place = tempfile::tempdir().unwrap();
    let recorded = Member { settings: "ledger: {path: ledger.db}\n".to_owned(), ..Member::of(POLICY) };
    let fleet = Fleet::start(place.path(), &[Member::of(POLICY), recorded]).await;
    show(&RECORDED, &rounds(&RECORDED, [0, 1].map(|number| fleet.side(number))).await);
    drop(fleet);
    println!("\n{}", memory(&place.path().join("0"), &place.path().join("1")).await);
}

/// Idle memory with nothing on, and with a ledger, log records, spans, and rules of every kind.
async fn memory(plain: &Path, all: &Path) -> String {
    write_policies(all, &format!("{POLICY}{MORE}"));
    let off = Gateway::with_settings(plain, &mut Command::new(executable()));
    // Nobody collects there, which costs an idle gateway nothing.
    let collector = "http://127.0.0.1:9";
    let mut command = Command::new(executable());
    command.env("OTEL_EXPORTER_OTLP_LOGS_ENDPOINT", collector).env("OTEL_EXPORTER_OTLP_ENDPOINT", collector);
    let on = Gateway::with_settings(all, &mut command);
    tokio::time::sleep(SETTLE).await;
    let more = |of: fn(&Gateway) -> u64| {
        let [off, on] = [of(&off), of(&on)].map(|kib| kib as f64 / 1024.0);
        format!("{off:.1} MiB with all of it off, {on:.1} with all of it on ({:.1} more)", on - off)
    };
    let (resident, own) = (more(Gateway::resident), more(Gateway::own));
    format!("memory, idle: {resident}; without pages of files: {own}")
}
