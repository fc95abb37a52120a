//! How old a snapshot is, and what that means (the clock is passed in).

use std::time::{Duration, SystemTime};

/// A snapshot up to this age is fresh.
const STALE_AFTER: Duration = Duration::from_secs(5 * 60);
/// From here on everything is denied until a fresh one arrives.
const EXPIRED_AFTER: Duration = Duration::from_secs(24 * 60 * 60);

/// How far a snapshot of this age may still be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Freshness {
    Fresh,
    /// Used, with a warning and a metric.
    Stale,
    /// Every destination and tool call is denied (rule `postern/builtin/expired`).
    Expired,
}

/// The age of a snapshot at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Age {
    pub freshness: Freshness,
    /// Since `syncedAt`, or since the load where there is none.
    pub elapsed: Duration,
}

impl Age {
    /// Judges a snapshot. Without `synced_at` (files on a laptop) the age counts from the load and never expires.
    /// A time in the future counts as now: clocks of a cluster differ a little.
    pub fn at(now: SystemTime, loaded_at: SystemTime, synced_at: Option<SystemTime>) -> Self {
        let elapsed = now.duration_since(synced_at.unwrap_or(loaded_at)).unwrap_or_default();
        let freshness = match synced_at {
            Some(_) if elapsed > EXPIRED_AFTER => Freshness::Expired,
            Some(_) if elapsed >= STALE_AFTER => Freshness::Stale,
            Some(_) | None => Freshness::Fresh,
        };
        Self { freshness, elapsed }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(seconds: u64) -> Freshness {
        let start = SystemTime::UNIX_EPOCH;
        Age::at(start + Duration::from_secs(seconds), start, Some(start)).freshness
    }

    #[test]
    fn a_synced_snapshot_grows_stale_after_five_minutes_and_expires_after_a_day() {
        assert_eq!(after(0), Freshness::Fresh);
        assert_eq!(after(299), Freshness::Fresh);
        assert_eq!(after(300), Freshness::Stale);
        assert_eq!(after(86_400), Freshness::Stale);
        assert_eq!(after(86_401), Freshness::Expired);
    }

    #[test]
    fn a_snapshot_from_files_counts_from_its_load_and_never_expires() {
        let loaded = SystemTime::UNIX_EPOCH;
        let age = Age::at(loaded + Duration::from_secs(1_000_000), loaded, None);
        assert_eq!(age, Age { freshness: Freshness::Fresh, elapsed: Duration::from_secs(1_000_000) });
    }

    #[test]
    fn a_time_in_the_future_is_now() {
        let now = SystemTime::UNIX_EPOCH;
        let age = Age::at(now, now, Some(now + Duration::from_secs(60)));
        assert_eq!(age, Age { freshness: Freshness::Fresh, elapsed: Duration::ZERO });
    }
}
