//! Gateways before the same upstream, which differ in their policies, settings or threads alone.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use super::client::Client;
use super::gateway::{
    API, COLD, GUARDED, Gateway, MODEL, PLAIN, TUNNEL, executable, settings, write_policies,
};
use super::pki::Pki;
use super::upstream;

/// What one gateway has of its own.
#[derive(Default)]
pub(crate) struct Member {
    pub(crate) policy: String,
    /// What stands behind the settings that all have.
    pub(crate) settings: String,
    /// How many threads serve; one a core if it is not said.
    pub(crate) threads: Option<usize>,
}

/// The gateways, and an agent behind each.
pub(crate) struct Fleet {
    pub(crate) clients: Vec<Arc<Client>>,
    pub(crate) gateways: Vec<Gateway>,
}

impl Member {
    pub(crate) fn of(policy: impl Into<String>) -> Self {
        Self { policy: policy.into(), ..Self::default() }
    }
}

impl Fleet {
    /// Starts them, each with its files in a directory of its own below `place`.
    pub(crate) async fn start(place: &Path, members: &[Member]) -> Self {
        let pki = Pki::new(place);
        let names = [API, PLAIN, MODEL, GUARDED, TUNNEL, "*.cold.bench.test"];
        let upstream = upstream::serve(pki.server(&names)).await;
        let authorities: Vec<_> =
            std::fs::read_dir(place).unwrap().map(|file| file.unwrap().path()).collect();
        let start = |(number, member): (usize, &Member)| {
            let directory = place.join(number.to_string());
            std::fs::create_dir(&directory).unwrap();
            for file in authorities.iter().filter(|path| path.is_file()) {
                std::fs::copy(file, directory.join(file.file_name().unwrap())).unwrap();
            }
            std::fs::write(directory.join("settings.yaml"), settings(upstream, COLD) + &member.settings)
                .unwrap();
            write_policies(&directory, &member.policy);
            let mut command = Command::new(executable());
            // What the gateway's runtime reads.
            command.envs(member.threads.map(|threads| ("TOKIO_WORKER_THREADS", threads.to_string())));
            Gateway::with_settings(&directory, &mut command)
        };
        let gateways: Vec<Gateway> = members.iter().enumerate().map(start).collect();
        let client = |gateway: &Gateway| Client::new(upstream, gateway.address, &pki);
        Self { clients: gateways.iter().map(client).collect(), gateways }
    }

    pub(crate) fn side(&self, number: usize) -> (&Arc<Client>, &Gateway) {
        (&self.clients[number], &self.gateways[number])
    }
}
