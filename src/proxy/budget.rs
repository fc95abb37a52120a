//! Counts the bytes of bodies that are held in memory, over all exchanges, and refuses more than there may be.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::telemetry::Metrics;

/// What is held now.
pub(crate) struct Budget {
    held: AtomicUsize,
    metrics: Arc<Metrics>,
}

/// There is no room: `limits.bufferedBytes` would be exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Exhausted;

impl Budget {
    pub(crate) fn new(metrics: Arc<Metrics>) -> Arc<Self> {
        Arc::new(Self { held: AtomicUsize::new(0), metrics })
    }

    /// Room for nothing yet, of at most `limit` bytes over all exchanges.
    pub(crate) fn open(self: &Arc<Self>, limit: usize) -> Reserved {
        Reserved { budget: Arc::clone(self), limit, bytes: 0 }
    }
}

/// Room that one exchange has, until it is dropped.
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
        if let Some(more) = bytes.checked_sub(self.bytes) {
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
