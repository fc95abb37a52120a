//! File descriptors: as many as the system allows, shared out so that agents cannot take those of the gateway itself.

use std::sync::OnceLock;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::problem::Problem;
use crate::proxy::upstream::LOOKUPS;

/// Descriptors that agents never get: 64 connections each of the admin port, the status socket and DNS over TCP, two
/// descriptors of each lookup of a name, and 64 for listeners, files, canaries, standard streams and the exporter.
const RESERVE: u64 = 4 * 64 + 2 * LOOKUPS as u64;
/// With fewer the reserve leaves too little to work with.
const LEAST: u64 = 512;
/// More places than there could be use for.
const MOST: u64 = 1 << 20;
/// The limit of macOS where it reports an infinite one (`OPEN_MAX`).
const WITHOUT_LIMIT: u64 = 10_240;

/// The soft limit that the process was started with.
static STARTED_WITH: OnceLock<Rlimit> = OnceLock::new();

/// How many descriptors agents may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shares {
    /// Connections from agents at a time.
    pub(super) connections: usize,
    /// Connections to upstreams at a time.
    pub(super) upstreams: usize,
}

/// Raises the soft limit to the hard one. Returns how many descriptors this process may have.
pub(super) fn raise() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    STARTED_WITH.get_or_init(|| limit);
    let wanted = limit.maximum.or(Some(WITHOUT_LIMIT));
    if limit.current < wanted
        && let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: wanted, ..limit })
    {
        tracing::warn!(%error, "the limit of file descriptors cannot be raised");
    }
    getrlimit(Resource::Nofile).current.unwrap_or(WITHOUT_LIMIT)
}

/// Runs `act`, which starts another process, under the limit that this one was started with: programs that use
/// select(2) break where there are more descriptors than it can count.
pub(crate) fn as_started<R>(act: impl FnOnce() -> R) -> R {
    let now = getrlimit(Resource::Nofile);
    let before = STARTED_WITH.get().map_or(now.current, |limit| limit.current);
    // Where a limit cannot be set, it stays as it is.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: before, ..now });
    let result = act();
    let _ = setrlimit(Resource::Nofile, now);
    result
}

/// Shares out `all` descriptors: `wanted` connections from agents, or as many as leave one for an upstream each.
///
/// # Errors
/// There are too few to work with.
pub(super) fn share(all: u64, wanted: usize) -> Result<Shares, Problem> {
    if all < LEAST {
        let message = format!(
            "this process may have {all} file descriptors, and needs {LEAST}: raise the hard limit (`ulimit -Hn`)"
        );
        return Err(Problem::at("limits.connections", message));
    }
    let left = (all - RESERVE).min(2 * MOST);
    let connections = usize::try_from(left / 2).unwrap_or(usize::MAX).min(wanted);
    let upstreams = usize::try_from(left).unwrap_or(usize::MAX) - connections;
    Ok(Shares { connections, upstreams })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_get_what_they_want_where_there_is_enough() {
        let shares = share(1 << 20, 10_000).unwrap();
        assert_eq!(shares, Shares { connections: 10_000, upstreams: (1 << 20) - 384 - 10_000 });
        assert_eq!(share(u64::MAX, 5).unwrap().connections, 5);
    }

    #[test]
    fn what_is_left_beside_the_reserve_is_halved_between_agents_and_upstreams() {
        assert_eq!(share(1_024, 10_000).unwrap(), Shares { connections: 320, upstreams: 320 });
        assert_eq!(share(LEAST, 10_000).unwrap(), Shares { connections: 64, upstreams: 64 });
    }

    #[test]
    fn too_few_are_said_with_the_remedy() {
        let problem = share(LEAST - 1, 10).unwrap_err();
        assert!(problem.message.contains("511 file descriptors") && problem.message.contains("ulimit -Hn"));
    }
}
