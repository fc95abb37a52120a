//! Reads the body of a question, bounded in bytes, time and together with all that are read at once.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};

use crate::capacity::Peer;

/// The most bytes of a review, which carries an object as it is and as it was: the API server takes 3 MiB of each.
pub(super) const MAX_BYTES: usize = 8 << 20;

/// The most bytes of all reviews that are read and judged at a time, and of those of one peer.
const ALL_BYTES: usize = 64 << 20;
const PEER_BYTES: usize = 16 << 20;

/// How long a body may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// Why a body is not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refused {
    TooLarge,
    TooSlow,
    /// All that are under way, or the peer's own, take what there is.
    Busy,
    BrokenOff,
}

/// Room for the bodies that are read at once.
pub(super) struct Intake {
    all: usize,
    of_a_peer: usize,
    patience: Duration,
    taken: Mutex<BTreeMap<Peer, usize>>,
}

/// A whole body; the room that it takes comes back when it is dropped.
pub(super) struct Review<'a> {
    pub(super) bytes: Bytes,
    _room: Room<'a>,
}

/// The room that one body takes.
struct Room<'a> {
    intake: &'a Intake,
    peer: Peer,
    bytes: usize,
}

impl Intake {
    pub(super) fn new() -> Self {
        Self { all: ALL_BYTES, of_a_peer: PEER_BYTES, patience: PATIENCE, taken: Mutex::default() }
    }

    #[cfg(test)]
    pub(super) fn of(bytes: usize, patience: Duration) -> Self {
        Self { all: bytes, patience, ..Self::new() }
    }

    /// Reads to the end. Room is taken for what has come, not for what is announced: announcing costs nothing.
    pub(super) async fn read(&self, body: Incoming, peer: Peer) -> Result<Review<'_>, Refused> {
        if body.size_hint().lower() > MAX_BYTES as u64 {
            return Err(Refused::TooLarge);
        }
        let room = Room { intake: self, peer, bytes: 0 };
        tokio::time::timeout(self.patience, room.read(body)).await.unwrap_or(Err(Refused::TooSlow))
    }

    fn taken(&self) -> MutexGuard<'_, BTreeMap<Peer, usize>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<'a> Room<'a> {
    async fn read(mut self, mut body: Incoming) -> Result<Review<'a>, Refused> {
        let mut bytes = BytesMut::new();
        while let Some(frame) = body.frame().await {
            let Ok(data) = frame.map_err(|_| Refused::BrokenOff)?.into_data() else { continue };
            if bytes.len() + data.len() > MAX_BYTES {
                return Err(Refused::TooLarge);
            }
            self.take(data.len())?;
            bytes.extend_from_slice(&data);
        }
        Ok(Review { bytes: bytes.freeze(), _room: self })
    }

    fn take(&mut self, bytes: usize) -> Result<(), Refused> {
        let mut taken = self.intake.taken();
        let own = taken.get(&self.peer).copied().unwrap_or_default();
        if taken.values().sum::<usize>() + bytes > self.intake.all || own + bytes > self.intake.of_a_peer {
            return Err(Refused::Busy);
        }
        taken.insert(self.peer, own + bytes);
        self.bytes += bytes;
        Ok(())
    }
}

impl Drop for Room<'_> {
    fn drop(&mut self) {
        let mut taken = self.intake.taken();
        let Some(own) = taken.get_mut(&self.peer) else { return };
        *own -= self.bytes;
        if *own == 0 {
            taken.remove(&self.peer);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn a_peer_has_its_share_of_the_room_and_no_more() {
        let intake = Intake::new();
        let room = |last| Room { intake: &intake, peer: Peer::V4(Ipv4Addr::new(192, 0, 2, last)), bytes: 0 };
        let (mut greedy, mut second, mut other) = (room(1), room(1), room(2));
        assert_eq!(greedy.take(PEER_BYTES), Ok(()));
        assert_eq!(second.take(1), Err(Refused::Busy));
        assert_eq!(other.take(MAX_BYTES), Ok(()));
        drop(greedy);
        assert_eq!(second.take(1), Ok(()), "the room comes back");
        drop((second, other));
        assert!(intake.taken().is_empty());
    }
}
