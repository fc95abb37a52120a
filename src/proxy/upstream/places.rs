//! Bounds the file descriptors of connections to upstreams, so that some are left for everything else.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::proxy::error::{Class, Failure};

/// How many names are resolved at a time. A lookup takes some descriptors of its own, and goes on in its thread though
/// nobody waits for it any more.
pub(crate) const LOOKUPS: usize = 64;

/// The places of all snapshots of a gateway.
#[derive(Debug, Clone)]
pub(crate) struct Places {
    connections: Arc<Semaphore>,
    lookups: Arc<Semaphore>,
}

/// The place of one connection or lookup; it comes back when dropped.
pub(crate) type Place = OwnedSemaphorePermit;

impl Places {
    pub(crate) fn new(connections: usize) -> Self {
        Self {
            connections: Arc::new(Semaphore::new(connections)),
            lookups: Arc::new(Semaphore::new(LOOKUPS)),
        }
    }

    /// A place for a connection. Where all are taken, `make_room` closes what is idle, and the next one that comes
    /// back is waited for.
    pub(super) async fn take(&self, patience: Duration, make_room: impl FnOnce()) -> Result<Place, Failure> {
        if let Some(place) = self.spare() {
            return Ok(place);
        }
        make_room();
        match tokio::time::timeout(patience, Arc::clone(&self.connections).acquire_owned()).await {
            Ok(Ok(place)) => Ok(place),
            Ok(Err(_)) | Err(_) => Err(Failure::new(
                Class::Descriptors,
                "the gateway has no file descriptor left for another connection to an upstream",
            )),
        }
    }

    /// A place for another connection, if one is free now.
    pub(super) fn spare(&self) -> Option<Place> {
        Arc::clone(&self.connections).try_acquire_owned().ok()
    }

    /// A place for a lookup; none only where the process ends.
    pub(super) async fn lookup(&self) -> Option<Place> {
        Arc::clone(&self.lookups).acquire_owned().await.ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(10);

    #[tokio::test(start_paused = true)]
    async fn where_all_are_taken_what_is_idle_is_closed_and_its_place_given_on() {
        let places = Places::new(1);
        let mut idle = places.take(PATIENCE, || panic!("there was room")).await.ok();
        assert!(places.spare().is_none());
        let taken = places.take(PATIENCE, || drop(idle.take())).await;
        assert!(taken.is_ok() && idle.is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_for_which_no_place_comes_back_fails_in_words() {
        let places = Places::new(1);
        let _held = places.take(PATIENCE, || ()).await.unwrap();
        let failure = places.take(PATIENCE, || ()).await.unwrap_err();
        assert_eq!(failure.class, Class::Descriptors);
        assert!(failure.message.contains("no file descriptor left"), "{failure}");
    }

    #[tokio::test(start_paused = true)]
    async fn lookups_are_bounded_by_themselves() {
        let places = Places::new(1);
        let mut held = Vec::new();
        for _ in 0..LOOKUPS {
            held.push(places.lookup().await.unwrap());
        }
        assert!(tokio::time::timeout(PATIENCE, places.lookup()).await.is_err());
        assert!(places.spare().is_some());
    }
}
