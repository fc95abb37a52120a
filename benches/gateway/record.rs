//! A gateway with a ledger beside one without, both with events on standard output; what `just bench-record` runs.

use std::path::Path;
use std::process::Command;

use super::client::{Client, Way};
use super::gateway::{API, COLD, Gateway, MODEL, PLAIN, POLICY, TUNNEL, executable, settings};
use super::load::Load;
use super::pki::Pki;
use super::{Comparison, SETTLE, Unit, rounds, show, upstream};

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
    let directory = |name: &str| {
        let directory = place.path().join(name);
        std::fs::create_dir(&directory).unwrap();
        directory
    };
    let (plain, recorded) = (directory("plain"), directory("recorded"));
    let pki = Pki::new(&plain);
    for file in std::fs::read_dir(&plain).unwrap().map(Result::unwrap) {
        std::fs::copy(file.path(), recorded.join(file.file_name())).unwrap();
    }
    let upstream = upstream::serve(pki.server(&[API, PLAIN, MODEL, TUNNEL, "*.cold.bench.test"])).await;
    let text = settings(upstream, COLD);
    std::fs::write(plain.join("settings.yaml"), &text).unwrap();
    std::fs::write(recorded.join("settings.yaml"), format!("{text}ledger: {{path: ledger.db}}\n")).unwrap();
    let start = |directory: &Path| Gateway::with_settings(directory, &mut Command::new(executable()));
    let gateways = [start(&plain), start(&recorded)];
    let clients = gateways.each_ref().map(|gateway| Client::new(upstream, gateway.address, &pki));
    let sides = [(&clients[0], &gateways[0]), (&clients[1], &gateways[1])];
    show(&RECORDED, &rounds(&RECORDED, sides).await);
    drop(gateways);
    println!("\n{}", memory(&plain, &recorded).await);
}

/// Idle memory with nothing on, and with a ledger, log records, spans, and rules of every kind.
async fn memory(plain: &Path, all: &Path) -> String {
    std::fs::write(all.join("policy.yaml"), format!("{POLICY}{MORE}")).unwrap();
    let off = Gateway::with_settings(plain, &mut Command::new(executable()));
    // Nobody collects there, which costs an idle gateway nothing.
    let collector = "http://127.0.0.1:9";
    let mut command = Command::new(executable());
    command.env("OTEL_EXPORTER_OTLP_LOGS_ENDPOINT", collector).env("OTEL_EXPORTER_OTLP_ENDPOINT", collector);
    let on = Gateway::with_settings(all, &mut command);
    tokio::time::sleep(SETTLE).await;
    let [off, on] = [off.resident(), on.resident()].map(|kib| kib as f64 / 1024.0);
    format!(
        "memory, idle: {off:.1} MiB with all of it off, {on:.1} MiB with all of it on ({:.1} MiB more)",
        on - off
    )
}
