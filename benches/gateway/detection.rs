//! A gateway that searches for secrets beside one whose policy allows them; what `just bench-detection` runs.

use super::client::Way;
use super::fleet::{Fleet, Member};
use super::gateway::{PLAIN, POLICY};
use super::load::Load;
use super::{Comparison, Unit, rounds, show};

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
    let policies = [format!("{POLICY}  dataLoss: {{action: Allow}}\n"), POLICY.to_owned()];
    let fleet = Fleet::start(place.path(), &policies.map(Member::of)).await;
    show(&SEARCHED, &rounds(&SEARCHED, [0, 1].map(|number| fleet.side(number))).await);
    let [allowed, searched] = [0, 1].map(|number: usize| fleet.gateways[number].resident() as f64 / 1024.0);
    println!("\nmemory behind it: {allowed:.1} MiB, with detection {searched:.1} MiB");
}
