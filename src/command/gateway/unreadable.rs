//! A streak of looks at files that could not be read: since when, and whether it has lasted.

use std::time::Duration;

use tokio::time::Instant;

/// How long files may be unreadable before that is more than a hiccup.
const PATIENCE: Duration = Duration::from_secs(60);

/// The looks that could not read everything, in a row.
#[derive(Debug, Default)]
pub(super) struct UnreadStreak {
    since: Option<Instant>,
    is_reported: bool,
}

/// A change of the streak that is worth an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StreakNews {
    /// It has lasted for the whole patience.
    Lasting,
    /// All can be read again.
    Over,
}

impl UnreadStreak {
    /// Notes a look, and whether all files could be read.
    pub(super) fn note(&mut self, is_readable: bool, now: Instant) -> Option<StreakNews> {
        if is_readable {
            return std::mem::take(self).is_reported.then_some(StreakNews::Over);
        }
        let since = *self.since.get_or_insert(now);
        let is_news = !self.is_reported && now.duration_since(since) >= PATIENCE;
        self.is_reported |= is_news;
        is_news.then_some(StreakNews::Lasting)
    }

    /// Returns how long the streak lasts by now.
    pub(super) fn lasts(&self, now: Instant) -> Duration {
        self.since.map_or(Duration::ZERO, |since| now.duration_since(since))
    }

    /// Whether the streak has lasted for the whole patience.
    pub(super) fn is_lasting(&self) -> bool {
        self.is_reported
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lasts_is_said_once_and_so_is_its_end() {
        let (mut unread, begin) = (UnreadStreak::default(), Instant::now());
        let at = |seconds| begin + Duration::from_secs(seconds);
        assert_eq!(unread.note(true, at(0)), None);
        for second in 5..65 {
            assert_eq!(unread.note(false, at(second)), None, "{second}");
            assert!(!unread.is_lasting());
        }
        assert_eq!(unread.note(false, at(65)), Some(StreakNews::Lasting));
        assert_eq!(unread.note(false, at(66)), None);
        assert_eq!((unread.is_lasting(), unread.lasts(at(66)).as_secs()), (true, 61));
        assert_eq!(unread.note(true, at(67)), Some(StreakNews::Over));
        assert_eq!((unread.is_lasting(), unread.lasts(at(68)).as_secs()), (false, 0));
    }

    #[test]
    fn a_hiccup_is_no_news() {
        let (mut unread, begin) = (UnreadStreak::default(), Instant::now());
        for seconds in [0, 59, 60, 119, 120] {
            let readable = seconds % 60 == 0;
            assert_eq!(unread.note(readable, begin + Duration::from_secs(seconds)), None);
        }
    }
}
