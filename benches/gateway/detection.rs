//! A gateway that searches for secrets beside one whose policy allows them; what `just bench-detection` runs.

use std::process::Command;

use super::client::{Client, Way};
use super::gateway::{API, COLD, Gateway, MODEL, PLAIN, POLICY, TUNNEL, executable, settings};
use super::load::Load;
use super::pki::Pki;
use super::{Comparison, Unit, rounds, show, upstream};

const SEARCHED: Comparison = Comparison {
    names: ["Allow", "detection"],
    ways: [Way::Gateway, Way::Gateway],
    loads: &[
        ("conversation", Unit::Latency, Load::Conversation),
        ("h1, 1 connection", Unit::Latency, Load::Requests { connections: 1, streams: 1 }),
        ("h1, 32 connections", Unit::Rate, Load::Requests { connections: 32, streams: 1 }),
        ("h2, 2 x 16 streams", Unit::Rate, Load::Requests { connections: 2, streams: 16 }),
        ("new connections", Unit::Rate, Load::Connections { cold: false }),
        ("events", Unit::Rate, Load::Events { name: PLAIN }),
        ("down", Unit::Bytes, Load::Down { name: PLAIN }),
        ("up, binary", Unit::Bytes, Load::Up { name: PLAIN }),
        ("up, text", Unit::Bytes, Load::UpText { name: PLAIN }),
    ],
};

pub(crate) async fn run() {
    let place = tempfile::tempdir().unwrap();
    let [allowing, searching] = ["allowing", "searching"].map(|name| place.path().join(name));
    for directory in [&allowing, &searching] {
        std::fs::create_dir(directory).unwrap();
    }
    let pki = Pki::new(&allowing);
    for file in std::fs::read_dir(&allowing).unwrap().map(Result::unwrap) {
        std::fs::copy(file.path(), searching.join(file.file_name())).unwrap();
    }
    let upstream = upstream::serve(pki.server(&[API, PLAIN, MODEL, TUNNEL, "*.cold.bench.test"])).await;
    let policies = [format!("{POLICY}  dataLoss: {{action: Allow}}\n"), POLICY.to_owned()];
    let mut gateways = Vec::new();
    for (directory, policy) in [&allowing, &searching].into_iter().zip(policies) {
        std::fs::write(directory.join("settings.yaml"), settings(upstream, COLD)).unwrap();
        std::fs::write(directory.join("policy.yaml"), policy).unwrap();
        gateways.push(Gateway::with_settings(directory, &mut Command::new(executable())));
    }
    let clients: Vec<_> =
        gateways.iter().map(|gateway| Client::new(upstream, gateway.address, &pki)).collect();
    let sides = [(&clients[0], &gateways[0]), (&clients[1], &gateways[1])];
    show(&SEARCHED, &rounds(&SEARCHED, sides).await);
    let [allowed, searched] = [0, 1].map(|number: usize| gateways[number].resident() as f64 / 1024.0);
    println!("\nmemory behind it: {allowed:.1} MiB, with detection {searched:.1} MiB");
}
