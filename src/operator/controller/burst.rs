//! How many things a namespace may have in a row, and how far apart they are in the long run. Pure.

use std::time::{Duration, Instant};

/// How many in a row: nobody who edits by hand gets there.
pub(super) const IN_A_ROW: u32 = 20;

/// What a namespace had lately: the moment when it would have had all of it, each a step after the other, and so when
/// it may have all of [`IN_A_ROW`] again.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Burst(Option<Instant>);

impl Burst {
    /// When the next one may be had, the steps being this long.
    pub(super) fn next(self, now: Instant, step: Duration) -> Instant {
        let Some(even) = self.0 else { return now };
        let early = step.saturating_mul(IN_A_ROW - 1);
        even.checked_sub(early).map_or(now, |next| next.max(now))
    }

    /// Notes that one was had.
    pub(super) fn take(&mut self, now: Instant, step: Duration) {
        self.0 = Some(self.0.map_or(now, |even| even.max(now)) + step);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP: Duration = Duration::from_secs(5);

    #[test]
    fn twenty_come_at_once_and_then_one_a_step() {
        let (start, mut burst) = (Instant::now(), Burst::default());
        let mut had = Vec::new();
        for second in 0..40 {
            let now = start + Duration::from_secs(second);
            while burst.next(now, STEP) <= now {
                burst.take(now, STEP);
                had.push(second);
            }
        }
        assert_eq!(had.iter().filter(|second| **second == 0).count(), IN_A_ROW as usize);
        assert_eq!(had[IN_A_ROW as usize..], [5, 10, 15, 20, 25, 30, 35]);
    }

    #[test]
    fn who_rests_has_all_of_it_again() {
        let (start, mut burst) = (Instant::now(), Burst::default());
        (0..IN_A_ROW).for_each(|_| burst.take(start, STEP));
        let rested = start + STEP * IN_A_ROW;
        let had = (0..50).take_while(|_| {
            let may = burst.next(rested, STEP) <= rested;
            burst.take(rested, STEP);
            may
        });
        assert_eq!(had.count(), IN_A_ROW as usize);
    }
}
