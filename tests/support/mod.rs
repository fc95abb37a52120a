//! What every black-box test stands on: certificate authorities, upstreams, the gateway's process, and agents.

pub(crate) mod agent;
pub(crate) mod answer;
pub(crate) mod body;
pub(crate) mod coding;
pub(crate) mod connection;
pub(crate) mod dns;
pub(crate) mod frames;
pub(crate) mod gateway;
pub(crate) mod h2;
pub(crate) mod journal;
pub(crate) mod pki;
pub(crate) mod schema;
pub(crate) mod setup;
pub(crate) mod upstream;
pub(crate) mod volume;

pub(crate) use agent::Agent;
pub(crate) use answer::Answer;
pub(crate) use connection::{Connection, Ending};
pub(crate) use dns::Resolver;
pub(crate) use gateway::Gateway;
pub(crate) use pki::Pki;
pub(crate) use setup::Setup;
pub(crate) use upstream::Upstream;
pub(crate) use volume::Volume;

/// How long anything may take before a test says that it did not happen: long, for machines that do other work too.
pub(crate) const PATIENCE: std::time::Duration = std::time::Duration::from_secs(60);

/// A directory in memory, where there is one, for files that are synced: on a disk they wait for all that others write.
pub(crate) fn directory() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}
