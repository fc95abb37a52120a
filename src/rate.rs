//! How often something may be done: so many times a second, and some at once.

use std::time::{Duration, Instant};

/// A bucket that fills steadily, kept as the time at which it will be full again (the generic cell rate algorithm).
#[derive(Debug)]
pub(crate) struct Rate {
    /// The time in which it gains one.
    interval: Duration,
    /// How many it holds.
    burst: u32,
    full_at: Option<Instant>,
}

impl Rate {
    /// A full bucket.
    pub(crate) fn new(interval: Duration, burst: u32) -> Self {
        Self { interval, burst, full_at: None }
    }

    /// Takes one out of the bucket; `false` where it is empty.
    pub(crate) fn take(&mut self, now: Instant) -> bool {
        let full_at = self.full_at.map_or(now, |at| at.max(now)) + self.interval;
        let fits = full_at.saturating_duration_since(now) <= self.interval * self.burst;
        if fits {
            self.full_at = Some(full_at);
        }
        fits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: Duration = Duration::from_millis(1);
    const BURST: u32 = 2_000;

    #[test]
    fn a_burst_passes_and_then_a_steady_stream() {
        let (mut rate, start) = (Rate::new(INTERVAL, BURST), Instant::now());
        let taken = (0..BURST * 2).filter(|_| rate.take(start)).count();
        assert_eq!(taken, BURST as usize);
        let later = start + Duration::from_millis(100);
        assert_eq!((0..BURST).filter(|_| rate.take(later)).count(), 100);
        assert!(!rate.take(start), "a clock that was read earlier gives nothing back");
        assert!((0..BURST).all(|_| rate.take(later + INTERVAL * BURST)), "rest fills it, and no further");
        assert!(!rate.take(later + INTERVAL * BURST));
    }
}
