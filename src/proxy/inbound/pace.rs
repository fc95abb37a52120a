//! Slows down repeated refusals on one connection; allowed requests never wait.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::drain::Drain;

/// How many refusals do not wait; one is forgotten each second.
const FREE: u32 = 20;
/// The wait of the first refusal beyond them; each later one doubles it.
const LEAST: Duration = Duration::from_millis(10);
/// The longest wait of a refusal.
const MOST: Duration = Duration::from_secs(1);
/// The doublings of `LEAST` that come to `MOST`.
const DOUBLINGS: u32 = 7;

/// The refusals of one connection. The lock is taken at refusals alone: streams of h2 share it.
#[derive(Debug, Default)]
pub(crate) struct Pace(Mutex<Refusals>);

#[derive(Debug, Default)]
struct Refusals {
    /// How many are remembered.
    count: u32,
    /// Until when those before are forgotten.
    forgotten: Option<Instant>,
}

impl Pace {
    /// Waits before a refusal is sent, unless the process stops.
    pub(crate) async fn refused(&self, drain: &Drain) {
        let wait = self.next(Instant::now());
        if wait > Duration::ZERO {
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = drain.stopping() => {}
            }
        }
    }

    /// Counts a refusal and returns its wait.
    fn next(&self, now: Instant) -> Duration {
        let mut refusals = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let since = *refusals.forgotten.get_or_insert(now);
        let seconds = now.duration_since(since).as_secs();
        refusals.forgotten = Some(since + Duration::from_secs(seconds));
        let left = refusals.count.saturating_sub(u32::try_from(seconds).unwrap_or(u32::MAX));
        refusals.count = (left + 1).min(FREE + DOUBLINGS + 1);
        match refusals.count.checked_sub(FREE + 1) {
            None => Duration::ZERO,
            Some(doublings) => (LEAST * 2_u32.pow(doublings)).min(MOST),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn refusals_wait_longer_and_longer_up_to_a_bound() {
        let (pace, now) = (Pace::default(), Instant::now());
        let waits: Vec<u128> = (0..30).map(|_| pace.next(now).as_millis()).collect();
        assert!(waits[..20].iter().all(|wait| *wait == 0), "{waits:?}");
        assert_eq!(waits[20..], [10, 20, 40, 80, 160, 320, 640, 1_000, 1_000, 1_000]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_refusal_is_forgotten_each_second() {
        let (pace, now) = (Pace::default(), Instant::now());
        for _ in 0..100 {
            pace.next(now);
        }
        assert_eq!(pace.next(now + Duration::from_secs(1)), MOST, "who goes on as before stays as slow");
        assert_eq!(pace.next(now + Duration::from_secs(9)), Duration::from_millis(10));
        assert_eq!(pace.next(now + Duration::from_secs(60)), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_waits_where_the_process_stops() {
        let (pace, drain) = (Pace::default(), Drain::default());
        drain.shut_down(Duration::ZERO).await;
        let begun = Instant::now();
        for _ in 0..100 {
            pace.refused(&drain).await;
        }
        assert_eq!(begun.elapsed(), Duration::ZERO);
    }
}
