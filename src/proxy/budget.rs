//! Counts the bytes that are held in memory for agents, over all connections, and refuses more than there may be.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::config::limits::Limits;
use crate::decision::Decision;
use crate::proxy::window::Windows;
use crate::telemetry::Metrics;

/// What a connection costs before it asks for anything: its task, two TLS states, the buffers of HTTP.
const CONNECTION: usize = 24 << 10;
/// What an exchange costs beside its bytes: its task, what is remembered of it, a stream upstream.
const EXCHANGE: usize = 16 << 10;
/// The part of `limits.bufferedBytes` that one exchange counts for at most, so that a small limit still serves some.
const EXCHANGES: usize = 1 << 10;
/// The least and the most that one body may have on its way, read and not yet written.
const SHARE: std::ops::RangeInclusive<usize> = 16 << 10..=256 << 10;

/// What is held now, and what may be.
pub(crate) struct Budget {
    held: AtomicUsize,
    metrics: Arc<Metrics>,
    /// The windows that h2 agents were given.
    pub(crate) windows: Windows,
}

/// There is no room: `limits.bufferedBytes` would be exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Exhausted;

impl Exhausted {
    /// How it is said to an agent.
    pub(crate) fn ruling() -> Decision {
        Decision::builtin("bound", "too many bytes are held at this moment (limits.bufferedBytes)")
    }
}

impl Budget {
    pub(crate) fn new(metrics: Arc<Metrics>) -> Arc<Self> {
        Arc::new(Self { held: AtomicUsize::new(0), metrics, windows: Windows::default() })
    }

    /// Room for nothing yet, of at most `limit` bytes over all exchanges.
    pub(crate) fn open(self: &Arc<Self>, limit: usize) -> Reserved {
        Reserved { budget: Arc::clone(self), limit, bytes: 0 }
    }

    /// Counts an open connection. `limits.connections` bounds their number, so it is never refused here; all of them
    /// together count for at most three quarters of `limits.bufferedBytes`.
    pub(crate) fn connection(self: &Arc<Self>, limits: &Limits) -> Reserved {
        let bytes = CONNECTION.min(limits.buffered_bytes / 4 * 3 / limits.connections.max(1));
        let mut reserved = self.open(usize::MAX);
        // Only a limit can be exceeded, and this has none.
        let _ = reserved.set(bytes);
        reserved
    }

    /// Room for one exchange whose head has so many bytes.
    pub(crate) fn exchange(self: &Arc<Self>, limits: &Limits, head: usize) -> Result<Reserved, Exhausted> {
        let mut reserved = self.open(limits.buffered_bytes);
        reserved.set(EXCHANGE.min(limits.buffered_bytes / EXCHANGES) + head)?;
        Ok(reserved)
    }

    /// Room for what nobody reads yet, half-sent heads and bytes that are copied: it leaves half of the limit to bodies.
    pub(crate) fn unread(self: &Arc<Self>, limits: &Limits) -> Reserved {
        self.open(limits.buffered_bytes / 2)
    }

    /// How much one body may have on its way now: less, the more is held.
    pub(crate) fn share(&self, limit: usize) -> usize {
        let free = (limit / 2).saturating_sub(self.held());
        (free / 64).clamp(*SHARE.start(), *SHARE.end())
    }

    pub(crate) fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    /// Counts what is held already, whether or not there is room.
    pub(crate) fn add(&self, bytes: usize) {
        self.held.fetch_add(bytes, Ordering::Relaxed);
        self.metrics.buffered(i64::try_from(bytes).unwrap_or(i64::MAX));
    }

    pub(crate) fn subtract(&self, bytes: usize) {
        self.held.fetch_sub(bytes, Ordering::Relaxed);
        self.metrics.buffered(-i64::try_from(bytes).unwrap_or(i64::MAX));
    }
}

/// Room that somebody has, until it is dropped.
pub(crate) struct Reserved {
    budget: Arc<Budget>,
    limit: usize,
    bytes: usize,
}

impl Reserved {
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Makes it room for so many bytes, more or fewer than before.
    pub(crate) fn set(&mut self, bytes: usize) -> Result<(), Exhausted> {
        // To need no more than before is never too much, even where others hold more than the limit.
        if let Some(more) = bytes.checked_sub(self.bytes).filter(|more| *more > 0) {
            let fits = |held: usize| held.checked_add(more).filter(|held| *held <= self.limit);
            let taken = self.budget.held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits);
            taken.map_err(|_| Exhausted)?;
        } else {
            self.budget.held.fetch_sub(self.bytes - bytes, Ordering::Relaxed);
        }
        let change = i64::try_from(bytes).unwrap_or(i64::MAX) - i64::try_from(self.bytes).unwrap_or(i64::MAX);
        if change != 0 {
            self.budget.metrics.buffered(change);
        }
        self.bytes = bytes;
        Ok(())
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        // To need nothing is never too much.
        let _ = self.set(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_is_bounded_over_all_exchanges_and_given_back() {
        let budget = Budget::new(Arc::new(Metrics::new().unwrap()));
        let (mut one, mut other) = (budget.open(10), budget.open(10));
        assert_eq!(one.set(7), Ok(()));
        assert_eq!(other.set(4), Err(Exhausted));
        assert_eq!(other.set(3), Ok(()));
        assert_eq!(one.set(2), Ok(()));
        assert_eq!(other.set(8), Ok(()));
        drop(other);
        assert_eq!(one.set(10), Ok(()));
        assert_eq!(budget.held.load(Ordering::Relaxed), 10);
    }
}
