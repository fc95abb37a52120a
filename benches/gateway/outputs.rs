//! A gateway that shortens results of tools beside one that does not; what `just bench-outputs` runs.

use super::client::Way;
use super::fleet::{Fleet, Member};
use super::gateway::POLICY;
use super::load::Load;
use super::{Comparison, Unit, rounds, show};

/// What each of the 40 outputs is cut to, and above what: none of them is, or all are.
const TO: &str = "head: {lines: 10, tokens: 256}, tail: {lines: 15, tokens: 256}, diagnostics: 10";
const WAYS: [(&str, &str); 2] = [("left", "{lines: 400, tokens: 6000}"), ("cut", "{lines: 40, tokens: 800}")];

pub(crate) async fn run() {
    for (name, above) in WAYS {
        let shortened = Comparison {
            names: ["none", name],
            ways: [Way::Gateway, Way::Gateway],
            loads: &[
                ("1 to 40 outputs", Unit::Latency, Load::Printing),
                ("40 outputs, 150 KB", Unit::Latency, Load::LastPrinting),
            ],
        };
        let place = tempfile::tempdir().unwrap();
        let outputs =
            format!("  toolOutputs: {{of: [{{kind: Shell}}], compress: {{above: {above}, {TO}}}}}\n");
        let kept = place.path().join("evidence");
        std::fs::create_dir(&kept).unwrap();
        let settings = format!("evidence: {{directory: {}}}\n", kept.display());
        let cut = Member { settings, ..Member::of(format!("{POLICY}{outputs}")) };
        let fleet = Fleet::start(place.path(), &[Member::of(POLICY), cut]).await;
        show(&shortened, &rounds(&shortened, [0, 1].map(|number| fleet.side(number))).await);
        // What is cut is kept.
        assert_eq!(std::fs::read_dir(&kept).unwrap().count() > 0, name == "cut", "{name}");
    }
}
