//! Bytes in transit through an exchange: they count against the budget until they are written or dropped.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::{Buf, Bytes};

use crate::proxy::budget::{Budget, Reserved};

/// A piece of a body as hyper is given it. Hyper drops it once its last byte was written.
pub(crate) struct Chunk {
    bytes: Bytes,
    weight: Weight,
}

/// The memory that a chunk gives back when it is dropped.
enum Weight {
    None,
    Reserved { _reserved: Reserved },
    Transit(Arc<InTransit>, usize),
}

impl Chunk {
    /// Bytes that are not counted: short texts of the gateway.
    pub(crate) fn free(bytes: Bytes) -> Self {
        Self { bytes, weight: Weight::None }
    }

    /// A body that was held whole, with its reserved memory.
    pub(crate) fn reserved(bytes: Bytes, reserved: Reserved) -> Self {
        Self { bytes, weight: Weight::Reserved { _reserved: reserved } }
    }

    /// The bytes, for a reader that accounts for them itself.
    pub(crate) fn into_bytes(mut self) -> Bytes {
        std::mem::take(&mut self.bytes)
    }
}

impl fmt::Debug for Chunk {
    /// Shows the length alone: the content may be secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Chunk({} bytes)", self.bytes.len())
    }
}

impl Buf for Chunk {
    fn remaining(&self) -> usize {
        self.bytes.remaining()
    }

    fn chunk(&self) -> &[u8] {
        self.bytes.chunk()
    }

    fn advance(&mut self, count: usize) {
        self.bytes.advance(count);
    }

    fn copy_to_bytes(&mut self, length: usize) -> Bytes {
        self.bytes.copy_to_bytes(length)
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        if let Weight::Transit(shared, bytes) = &self.weight {
            shared.release(*bytes);
        }
    }
}

/// The bytes of one body that have been read on one side and not yet written on the other.
pub(crate) struct Transit(Arc<InTransit>);

struct InTransit {
    budget: Arc<Budget>,
    /// `limits.bufferedBytes`.
    limit: usize,
    bytes: AtomicUsize,
    /// Locked for one swap of a waker: reader and writer of a body are mostly one task.
    waiting: Mutex<Option<Waker>>,
}

impl Transit {
    pub(crate) fn new(budget: &Arc<Budget>, limit: usize) -> Self {
        let (bytes, waiting) = (AtomicUsize::new(0), Mutex::new(None));
        Self(Arc::new(InTransit { budget: Arc::clone(budget), limit, bytes, waiting }))
    }

    /// Waits until the next piece may be read. One piece may always be in transit, so that no exchange stops; more only
    /// while memory is not short.
    pub(crate) fn poll_room(&self, cx: &mut Context<'_>) -> Poll<()> {
        if self.0.has_room() {
            return Poll::Ready(());
        }
        *self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner) = Some(cx.waker().clone());
        // A piece may have been written between the two looks.
        if self.0.has_room() { Poll::Ready(()) } else { Poll::Pending }
    }

    /// Counts a piece until it is dropped.
    pub(crate) fn carry(&self, bytes: Bytes) -> Chunk {
        let length = bytes.len();
        self.0.bytes.fetch_add(length, Ordering::SeqCst);
        self.0.budget.add(length);
        Chunk { bytes, weight: Weight::Transit(Arc::clone(&self.0), length) }
    }
}

impl InTransit {
    fn has_room(&self) -> bool {
        let bytes = self.bytes.load(Ordering::SeqCst);
        bytes == 0 || bytes < self.budget.share(self.limit)
    }

    fn release(&self, bytes: usize) {
        self.budget.subtract(bytes);
        self.bytes.fetch_sub(bytes, Ordering::SeqCst);
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(waker) = waiting {
            waker.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::Metrics;

    #[test]
    fn one_piece_is_always_on_its_way_and_more_only_while_memory_is_not_short() {
        let budget = Budget::new(Arc::new(Metrics::new().unwrap()));
        let limit = 64 << 20;
        let (transit, mut cx) = (Transit::new(&budget, limit), Context::from_waker(Waker::noop()));
        let piece = || Bytes::from(vec![0; 100 << 10]);

        let chunks: Vec<Chunk> = (0..3)
            .map(|_| {
                assert!(transit.poll_room(&mut cx).is_ready());
                transit.carry(piece())
            })
            .collect();
        assert!(transit.poll_room(&mut cx).is_pending(), "300 KiB are more than one share");
        assert_eq!(budget.held(), 300 << 10);
        drop(chunks);
        assert!(transit.poll_room(&mut cx).is_ready());
        assert_eq!(budget.held(), 0);

        let mut other = budget.open(limit);
        assert_eq!(other.set(limit), Ok(()));
        assert!(transit.poll_room(&mut cx).is_ready(), "what is open goes on");
        let chunk = transit.carry(piece());
        assert!(transit.poll_room(&mut cx).is_pending());
        drop(chunk);
        assert!(transit.poll_room(&mut cx).is_ready());
    }
}
