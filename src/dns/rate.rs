//! How many questions are answered in a time: so many a second, and some at once.

use std::time::{Duration, Instant};

/// A bucket that fills steadily, kept as the time at which it will be full again (the generic cell rate algorithm).
#[derive(Debug, Default)]
pub(super) struct Rate {
    full_at: Option<Instant>,
}

/// A thousand questions a second: no client comes near, and a table of names is filled in a minute at the soonest.
const INTERVAL: Duration = Duration::from_millis(1);
/// So many may come at once.
const BURST: u32 = 2_000;

impl Rate {
    /// Takes one question out of the bucket; `false` where it is empty.
    pub(super) fn take(&mut self, now: Instant) -> bool {
        let full_at = self.full_at.map_or(now, |at| at.max(now)) + INTERVAL;
        let fits = full_at.saturating_duration_since(now) <= INTERVAL * BURST;
        if fits {
            self.full_at = Some(full_at);
        }
        fits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_passes_and_then_a_steady_stream() {
        let (mut rate, start) = (Rate::default(), Instant::now());
        let taken = (0..BURST * 2).filter(|_| rate.take(start)).count();
        assert_eq!(taken, BURST as usize);
        let later = start + Duration::from_millis(100);
        assert_eq!((0..BURST).filter(|_| rate.take(later)).count(), 100);
        assert!(!rate.take(start), "a clock that was read earlier gives nothing back");
        assert!((0..BURST).all(|_| rate.take(later + INTERVAL * BURST)), "rest fills it, and no further");
        assert!(!rate.take(later + INTERVAL * BURST));
    }
}
