//! Files that cannot be read: since when, and whether that has lasted.

use std::time::Duration;

use tokio::time::Instant;

/// How long files may be out of reach before that is more than a hiccup (design 5.8).
const PATIENCE: Duration = Duration::from_secs(60);

/// The looks that could not read everything, in a row.
#[derive(Debug, Default)]
pub(super) struct Unread {
    since: Option<Instant>,
    said: bool,
}

/// What of it is worth an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum News {
    /// It has lasted for the whole patience.
    Lasting,
    /// All can be read again.
    Over,
}

impl Unread {
    /// Notes a look at a time: whether all could be read.
    pub(super) fn note(&mut self, is_readable: bool, now: Instant) -> Option<News> {
        if is_readable {
            return std::mem::take(self).said.then_some(News::Over);
        }
        let since = *self.since.get_or_insert(now);
        let is_news = !self.said && now.duration_since(since) >= PATIENCE;
        self.said |= is_news;
        is_news.then_some(News::Lasting)
    }

    /// For how long it has been so.
    pub(super) fn lasts(&self, now: Instant) -> Duration {
        self.since.map_or(Duration::ZERO, |since| now.duration_since(since))
    }

    /// Whether it has been so for the whole patience.
    pub(super) fn is_lasting(&self) -> bool {
        self.said
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lasts_is_said_once_and_so_is_its_end() {
        let (mut unread, begin) = (Unread::default(), Instant::now());
        let at = |seconds| begin + Duration::from_secs(seconds);
        assert_eq!(unread.note(true, at(0)), None);
        for second in 5..65 {
            assert_eq!(unread.note(false, at(second)), None, "{second}");
            assert!(!unread.is_lasting());
        }
        assert_eq!(unread.note(false, at(65)), Some(News::Lasting));
        assert_eq!(unread.note(false, at(66)), None);
        assert_eq!((unread.is_lasting(), unread.lasts(at(66)).as_secs()), (true, 61));
        assert_eq!(unread.note(true, at(67)), Some(News::Over));
        assert_eq!((unread.is_lasting(), unread.lasts(at(68)).as_secs()), (false, 0));
    }

    #[test]
    fn a_hiccup_is_no_news() {
        let (mut unread, begin) = (Unread::default(), Instant::now());
        for seconds in [0, 59, 60, 119, 120] {
            let readable = seconds % 60 == 0;
            assert_eq!(unread.note(readable, begin + Duration::from_secs(seconds)), None);
        }
    }
}
