//! Reads the body of a review, bounded in bytes and time, and in bytes together with all that are read at once.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};

use crate::capacity::Peer;

/// The most bytes of a review, which holds the new and the old object: the API server accepts objects up to 3 MiB.
pub(super) const MAX_BYTES: usize = 8 << 20;

/// The most bytes of all reviews that are read and judged at once, and of those of one peer.
const ALL_BYTES: usize = 64 << 20;
const PEER_BYTES: usize = 16 << 20;

/// How long a body may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// Why a body is not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IntakeError {
    TooLarge,
    TooSlow,
    /// The bodies in progress, in all or of this peer, leave no room.
    Busy,
    BrokenOff,
}

/// The memory for the bodies that are read at once.
pub(super) struct Intake {
    in_all: usize,
    of_a_peer: usize,
    patience: Duration,
    taken: Mutex<BTreeMap<Peer, usize>>,
}

/// A whole body; its room is given back when it is dropped.
pub(super) struct Review<'a> {
    pub(super) bytes: Bytes,
    _room: BodyRoom<'a>,
}

/// The room that one body takes.
struct BodyRoom<'a> {
    intake: &'a Intake,
    peer: Peer,
    bytes: usize,
}

impl Intake {
    pub(super) fn new() -> Self {
        Self { in_all: ALL_BYTES, of_a_peer: PEER_BYTES, patience: PATIENCE, taken: Mutex::default() }
    }

    #[cfg(test)]
    pub(super) fn of(bytes: usize, patience: Duration) -> Self {
        Self { in_all: bytes, patience, ..Self::new() }
    }

    /// Reads a body to its end. Takes room for the bytes that have arrived, not for a length that anybody can announce.
    pub(super) async fn read(&self, body: Incoming, peer: Peer) -> Result<Review<'_>, IntakeError> {
        if body.size_hint().lower() > MAX_BYTES as u64 {
            return Err(IntakeError::TooLarge);
        }
        let room = BodyRoom { intake: self, peer, bytes: 0 };
        tokio::time::timeout(self.patience, room.read(body)).await.unwrap_or(Err(IntakeError::TooSlow))
    }

    fn taken(&self) -> MutexGuard<'_, BTreeMap<Peer, usize>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<'a> BodyRoom<'a> {
    async fn read(mut self, mut body: Incoming) -> Result<Review<'a>, IntakeError> {
        let mut bytes = BytesMut::new();
        while let Some(frame) = body.frame().await {
            let Ok(data) = frame.map_err(|_| IntakeError::BrokenOff)?.into_data() else { continue };
            if bytes.len() + data.len() > MAX_BYTES {
                return Err(IntakeError::TooLarge);
            }
            self.take(data.len())?;
            bytes.extend_from_slice(&data);
        }
        Ok(Review { bytes: bytes.freeze(), _room: self })
    }

    fn take(&mut self, bytes: usize) -> Result<(), IntakeError> {
        let mut taken = self.intake.taken();
        let of_peer = taken.get(&self.peer).copied().unwrap_or_default() + bytes;
        if taken.values().sum::<usize>() + bytes > self.intake.in_all || of_peer > self.intake.of_a_peer {
            return Err(IntakeError::Busy);
        }
        taken.insert(self.peer, of_peer);
        self.bytes += bytes;
        Ok(())
    }
}

impl Drop for BodyRoom<'_> {
    fn drop(&mut self) {
        let mut taken = self.intake.taken();
        let Some(of_peer) = taken.get_mut(&self.peer) else { return };
        *of_peer -= self.bytes;
        if *of_peer == 0 {
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
        let room =
            |last| BodyRoom { intake: &intake, peer: Peer::V4(Ipv4Addr::new(192, 0, 2, last)), bytes: 0 };
        let (mut greedy, mut second, mut other) = (room(1), room(1), room(2));
        assert_eq!(greedy.take(PEER_BYTES), Ok(()));
        assert_eq!(second.take(1), Err(IntakeError::Busy));
        assert_eq!(other.take(MAX_BYTES), Ok(()));
        drop(greedy);
        assert_eq!(second.take(1), Ok(()), "the room comes back");
        drop((second, other));
        assert!(intake.taken().is_empty());
    }
}
