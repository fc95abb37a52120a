//! A gateway that shortens results of tools beside one that does not; what `just bench-outputs` runs.

use super::client::Way;
use super::gateway::POLICY;
use super::load::Load;
use super::pair::Pair;
use super::{Comparison, Unit, rounds, show};

/// What each of the 40 outputs is cut to, and above what: none of them is, or all are.
const TO: &str = "head: {lines: 10, tokens: 256}, tail: {lines: 20, tokens: 256}, diagnostics: 10";
const WAYS: [(&str, &str); 2] = [("left", "{lines: 400, tokens: 6000}"), ("cut", "{lines: 40, tokens: 600}")];

pub(crate) async fn run() {
    for (name, above) in WAYS {
        let shortened = Comparison {
            names: ["none", name],
            ways: [Way::Gateway, Way::Gateway],
            loads: &[("40 outputs, 150 KB", Unit::Latency, Load::Printing)],
        };
        let place = tempfile::tempdir().unwrap();
        let outputs =
            format!("  toolOutputs: {{of: [{{kind: Shell}}], compress: {{above: {above}, {TO}}}}}\n");
        let kept = place.path().join("evidence");
        std::fs::create_dir(&kept).unwrap();
        let settings = format!("evidence: {{directory: {}}}\n", kept.display());
        let policies = [POLICY.to_owned(), format!("{POLICY}{outputs}")];
        let Pair { clients, gateways } = Pair::start(place.path(), policies, ["", &settings]).await;
        let sides = [(&clients[0], &gateways[0]), (&clients[1], &gateways[1])];
        show(&shortened, &rounds(&shortened, sides).await);
    }
}
