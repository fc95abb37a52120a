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

    /// Changes the time in which it gains one.
    #[cfg(any(feature = "operator", test))]
    pub(crate) fn set_interval(&mut self, interval: Duration) {
        self.interval = interval;
    }

    /// When there is one in the bucket: `now`, or later.
    pub(crate) fn next(&self, now: Instant) -> Instant {
        let early = self.interval.saturating_mul(self.burst.saturating_sub(1));
        self.full_at.and_then(|at| at.checked_sub(early)).map_or(now, |at| at.max(now))
    }

    /// Takes one out of the bucket; `false` where it is empty.
    pub(crate) fn take(&mut self, now: Instant) -> bool {
        let fits = self.next(now) <= now;
        if fits {
            self.spend(now);
        }
        fits
    }

    /// Takes one out of the bucket, also where it is empty: the next one comes later by as much.
    pub(crate) fn spend(&mut self, now: Instant) {
        self.full_at = Some(self.full_at.map_or(now, |at| at.max(now)) + self.interval);
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
    #[test]
    fn the_next_one_comes_a_step_after_a_burst() {
        let (start, step, mut rate) = (Instant::now(), Duration::from_secs(5), Rate::new(INTERVAL, 20));
        rate.set_interval(step);
        let mut had = Vec::new();
        for second in 0..40 {
            let now = start + Duration::from_secs(second);
            while rate.next(now) <= now {
                rate.spend(now);
                had.push(second);
            }
        }
        assert_eq!(had.iter().filter(|second| **second == 0).count(), 20);
        assert_eq!(had[20..], [5, 10, 15, 20, 25, 30, 35]);
    }

    #[test]
    fn what_is_spent_of_an_empty_bucket_is_waited_for() {
        let (start, mut rate) = (Instant::now(), Rate::new(INTERVAL, 1));
        (0..3).for_each(|_| rate.spend(start));
        assert_eq!(rate.next(start), start + 3 * INTERVAL);
        assert!(!rate.take(start + 2 * INTERVAL) && rate.take(start + 3 * INTERVAL));
    }
}
