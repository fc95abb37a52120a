//! Counts the bytes that are held in memory for agents, over all connections, and refuses more than there may be.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::config::limits::Limits;
use crate::decision::Decision;
use crate::proxy::window::Windows;
use crate::telemetry::Metrics;

/// The memory of a connection before its first request: its task, two TLS states, the buffers of HTTP.
const CONNECTION: usize = 24 << 10;
/// The memory of an exchange beside its bytes: its task, its record, a stream upstream.
const EXCHANGE: usize = 16 << 10;
/// The part of `limits.bufferedBytes` that one exchange counts for at most, so that a small limit still serves some.
const EXCHANGES: usize = 1 << 10;
/// The least and the most bytes of one body that may be read and not yet written.
const SHARE: std::ops::RangeInclusive<usize> = 16 << 10..=256 << 10;

/// The bytes that are held now.
pub(crate) struct Budget {
    held: AtomicUsize,
    metrics: Arc<Metrics>,
    /// The windows that h2 agents were given.
    pub(crate) windows: Windows,
}

/// No memory is left: `limits.bufferedBytes` would be exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Exhausted;

impl Exhausted {
    /// The denial that an agent reads.
    pub(crate) fn ruling() -> Decision {
        Decision::builtin("bound", "too many bytes are held at this moment (limits.bufferedBytes)")
    }
}

impl Budget {
    pub(crate) fn new(metrics: Arc<Metrics>) -> Arc<Self> {
        Arc::new(Self { held: AtomicUsize::new(0), metrics, windows: Windows::default() })
    }

    /// A reservation of nothing yet, under a limit of `limit` bytes over all exchanges.
    pub(crate) fn open(self: &Arc<Self>, limit: usize) -> Reserved {
        Reserved { budget: Arc::clone(self), limit, bytes: 0 }
    }

    /// Counts an open connection. `limits.connections` bounds their number, so it is never refused here; all of them
    /// together count for at most three quarters of `limits.bufferedBytes`.
    pub(crate) fn connection(self: &Arc<Self>, limits: &Limits) -> Reserved {
        let bytes = CONNECTION.min(limits.buffered_bytes / 4 * 3 / limits.connections.max(1));
        let mut reserved = self.open(usize::MAX);
        // It has no limit, so that this never fails.
        let _ = reserved.set(bytes);
        reserved
    }

    /// A reservation for one exchange whose head has so many bytes.
    pub(crate) fn exchange(self: &Arc<Self>, limits: &Limits, head: usize) -> Result<Reserved, Exhausted> {
        let mut reserved = self.open(limits.buffered_bytes);
        reserved.set(EXCHANGE.min(limits.buffered_bytes / EXCHANGES) + head)?;
        Ok(reserved)
    }

    /// A reservation for unread bytes, such as half-sent heads: it leaves half of the limit to bodies.
    pub(crate) fn unread(self: &Arc<Self>, limits: &Limits) -> Reserved {
        self.open(limits.buffered_bytes / 2)
    }

    /// How many bytes of one body may be in transit now: fewer, the more is held.
    pub(crate) fn share(&self, limit: usize) -> usize {
        let free = (limit / 2).saturating_sub(self.held());
        (free / 64).clamp(*SHARE.start(), *SHARE.end())
    }

    pub(crate) fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    /// Counts bytes that are held already, even beyond the limit.
    pub(crate) fn add(&self, bytes: usize) {
        self.held.fetch_add(bytes, Ordering::Relaxed);
        self.metrics.buffered(i64::try_from(bytes).unwrap_or(i64::MAX));
    }

    pub(crate) fn subtract(&self, bytes: usize) {
        self.held.fetch_sub(bytes, Ordering::Relaxed);
        self.metrics.buffered(-i64::try_from(bytes).unwrap_or(i64::MAX));
    }
}

/// A reservation of memory, until it is dropped.
pub(crate) struct Reserved {
    budget: Arc<Budget>,
    limit: usize,
    bytes: usize,
}

impl Reserved {
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Changes the reservation to so many bytes.
    pub(crate) fn set(&mut self, bytes: usize) -> Result<(), Exhausted> {
        // A reservation can always shrink, even where others hold more than the limit.
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
        // To shrink never fails.
        let _ = self.set(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(buffered_bytes: usize, connections: usize) -> Limits {
        Limits { buffered_bytes, connections, ..Limits::default() }
    }

    #[test]
    fn connections_are_never_refused_and_leave_a_quarter_to_exchanges() {
        let (budget, small) = (Budget::new(Arc::new(Metrics::new().unwrap())), limits(1 << 20, 1_000));
        let open: Vec<Reserved> = (0..1_000).map(|_| budget.connection(&small)).collect();
        assert!(budget.held() <= (1 << 20) / 4 * 3, "{}", budget.held());
        drop(open);
        let _one = budget.connection(&limits(256 << 20, 10_000));
        assert_eq!(budget.held(), (256 << 20) / 4 * 3 / 10_000);
    }

    #[test]
    fn an_exchange_counts_its_head_and_a_small_limit_still_serves_some() {
        let (budget, small) = (Budget::new(Arc::new(Metrics::new().unwrap())), limits(1 << 20, 10));
        let exchange = budget.exchange(&small, 100).unwrap();
        assert_eq!(exchange.bytes(), (1 << 20) / EXCHANGES + 100);
        assert_eq!(budget.exchange(&small, 1 << 20).err(), Some(Exhausted));
        let mut unread = budget.unread(&small);
        assert_eq!(unread.set(1 << 19), Err(Exhausted), "half of the limit stays with bodies");
    }

    #[test]
    fn a_body_has_less_on_its_way_the_more_is_held() {
        let (budget, limit) = (Budget::new(Arc::new(Metrics::new().unwrap())), 64 << 20);
        assert_eq!(budget.share(limit), *SHARE.end());
        let mut held = budget.open(limit);
        held.set(limit / 2 - 64 * (100 << 10)).unwrap();
        assert_eq!(budget.share(limit), 100 << 10);
        held.set(limit).unwrap();
        assert_eq!(budget.share(limit), *SHARE.start());
    }

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
