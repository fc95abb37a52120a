//! `postern policy`.

mod check;
mod explain;
mod init;
mod learn;
mod list;
mod trial;

use super::{Place, Said};

/// Three policies: one enforced for coders, one of the cluster that only records, one for others.
const CODING_AGENTS: &str = include_str!("coding-agents.yaml");

/// A directory with [`CODING_AGENTS`] in `policy.yaml`.
fn place() -> Place {
    let place = Place::new();
    place.write("policy.yaml", CODING_AGENTS);
    place
}

/// What went to standard output of a command that succeeded.
#[track_caller]
fn printed(said: &Said) -> &str {
    assert_eq!((said.code, said.stderr.as_str()), (Some(0), ""), "{said:?}");
    &said.stdout
}
