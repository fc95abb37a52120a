//! Reads the body of a question, bounded in bytes, time and together with all that are read at once.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The most bytes of a review, which carries an object as it is and as it was: the API server takes 3 MiB of each.
pub(super) const MAX_BYTES: usize = 8 << 20;

/// The most bytes of all reviews that are read and judged at a time.
const ALL_BYTES: usize = 64 << 20;

/// How long a body may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// Why a body is not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refused {
    TooLarge,
    TooSlow,
    /// All that are under way take what there is.
    Busy,
    BrokenOff,
}

/// Room for the bodies that are read at once.
pub(super) struct Intake {
    room: Arc<Semaphore>,
    patience: Duration,
}

/// A whole body; the room that it takes comes back when it is dropped.
pub(super) struct Review {
    pub(super) bytes: Bytes,
    _room: Option<OwnedSemaphorePermit>,
}

impl Intake {
    pub(super) fn new() -> Self {
        Self { room: Arc::new(Semaphore::new(ALL_BYTES)), patience: PATIENCE }
    }

    #[cfg(test)]
    pub(super) fn of(bytes: usize, patience: Duration) -> Self {
        Self { room: Arc::new(Semaphore::new(bytes)), patience }
    }

    /// Reads to the end. Room is taken for what has come, not for what is announced: announcing costs nothing.
    pub(super) async fn read(&self, body: Incoming) -> Result<Review, Refused> {
        if body.size_hint().lower() > MAX_BYTES as u64 {
            return Err(Refused::TooLarge);
        }
        tokio::time::timeout(self.patience, self.read_all(body)).await.unwrap_or(Err(Refused::TooSlow))
    }

    async fn read_all(&self, mut body: Incoming) -> Result<Review, Refused> {
        let (mut bytes, mut room) = (BytesMut::new(), None::<OwnedSemaphorePermit>);
        while let Some(frame) = body.frame().await {
            let Ok(data) = frame.map_err(|_| Refused::BrokenOff)?.into_data() else { continue };
            if bytes.len() + data.len() > MAX_BYTES {
                return Err(Refused::TooLarge);
            }
            let wanted = u32::try_from(data.len()).map_err(|_| Refused::TooLarge)?;
            let more = Arc::clone(&self.room).try_acquire_many_owned(wanted).map_err(|_| Refused::Busy)?;
            match &mut room {
                Some(room) => room.merge(more),
                None => room = Some(more),
            }
            bytes.extend_from_slice(&data);
        }
        Ok(Review { bytes: bytes.freeze(), _room: room })
    }
}
