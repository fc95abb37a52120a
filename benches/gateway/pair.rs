//! Two gateways before the same upstream, which differ in their policies alone.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use super::client::Client;
use super::gateway::{API, COLD, Gateway, MODEL, PLAIN, TUNNEL, executable, settings};
use super::pki::Pki;
use super::upstream;

/// The gateways, and an agent behind each.
pub(crate) struct Pair {
    pub(crate) clients: Vec<Arc<Client>>,
    pub(crate) gateways: Vec<Gateway>,
}

impl Pair {
    /// Starts both, each with its files in a directory of its own below `place`, and more in its settings.
    pub(crate) async fn start(place: &Path, policies: [String; 2], more: [&str; 2]) -> Self {
        let directories = ["first", "second"].map(|name| place.join(name));
        for directory in &directories {
            std::fs::create_dir(directory).unwrap();
        }
        let pki = Pki::new(&directories[0]);
        for file in std::fs::read_dir(&directories[0]).unwrap().map(Result::unwrap) {
            std::fs::copy(file.path(), directories[1].join(file.file_name())).unwrap();
        }
        let upstream = upstream::serve(pki.server(&[API, PLAIN, MODEL, TUNNEL, "*.cold.bench.test"])).await;
        let mut gateways = Vec::new();
        for ((directory, policy), more) in directories.iter().zip(policies).zip(more) {
            std::fs::write(directory.join("settings.yaml"), settings(upstream, COLD) + more).unwrap();
            std::fs::write(directory.join("policy.yaml"), policy).unwrap();
            gateways.push(Gateway::with_settings(directory, &mut Command::new(executable())));
        }
        let client = |gateway: &Gateway| Client::new(upstream, gateway.address, &pki);
        Self { clients: gateways.iter().map(client).collect(), gateways }
    }
}
