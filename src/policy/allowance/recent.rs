//! The requests of the last minute, counted by the second.

use std::fmt;

/// How many seconds count.
const WINDOW: u64 = 60;

/// How many requests there were in each of the last 60 seconds. Its text is `SECOND:COUNT` for each second with
/// requests, the earliest first, separated by blanks; seconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecentRequests {
    latest: u64,
    counts: [u32; WINDOW as usize],
}

impl Default for RecentRequests {
    fn default() -> Self {
        Self { latest: 0, counts: [0; WINDOW as usize] }
    }
}

impl RecentRequests {
    /// Reads the text of it; none where it is no such text.
    pub fn parse(text: &str) -> Option<Self> {
        let mut recent = Self::default();
        let mut first = None;
        for pair in text.split_ascii_whitespace() {
            let (second, count) = pair.split_once(':')?;
            let (second, count): (u64, u32) = (second.parse().ok()?, count.parse().ok()?);
            let first = *first.get_or_insert(second);
            if second < recent.latest || second - first >= WINDOW {
                return None;
            }
            recent.latest = second;
            *recent.at(second)? = count;
        }
        Some(recent)
    }

    /// Moves on to this second. A clock that was set back by more than the window starts the count anew: else the agent
    /// would wait until the clock is where it was.
    pub(super) fn advance(&mut self, now: u64) {
        if now <= self.latest && self.latest - now < WINDOW {
            return;
        }
        let passed = if now > self.latest { (now - self.latest).min(WINDOW) } else { WINDOW };
        for second in 0..passed {
            if let Some(count) = self.at(now.saturating_sub(second)) {
                *count = 0;
            }
        }
        self.latest = now;
    }

    pub(super) fn count(&mut self) {
        if let Some(count) = self.at(self.latest) {
            *count = count.saturating_add(1);
        }
    }

    pub(super) fn total(&self) -> u64 {
        self.counts.iter().map(|count| u64::from(*count)).sum()
    }

    /// Returns the seconds until fewer than `most` requests count.
    pub(super) fn wait(&self, most: u64) -> u64 {
        let mut total = self.total();
        for passed in 1..WINDOW {
            // The second that has left the window by then.
            total = total.saturating_sub(u64::from(self.of(self.latest + passed)));
            if total < most {
                return passed;
            }
        }
        WINDOW
    }

    /// How many requests the second had that shares its place with this one.
    fn of(&self, second: u64) -> u32 {
        let place = usize::try_from(second % WINDOW).ok();
        place.and_then(|place| self.counts.get(place)).copied().unwrap_or_default()
    }

    fn at(&mut self, second: u64) -> Option<&mut u32> {
        usize::try_from(second % WINDOW).ok().and_then(|place| self.counts.get_mut(place))
    }
}

impl fmt::Display for RecentRequests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.latest.saturating_sub(WINDOW - 1)..=self.latest;
        let counts = seconds.map(|second| (second, self.of(second))).filter(|(_, count)| *count > 0);
        for (place, (second, count)) in counts.enumerate() {
            let blank = if place == 0 { "" } else { " " };
            write!(f, "{blank}{second}:{count}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(seconds: &[u64]) -> RecentRequests {
        let mut recent = RecentRequests::default();
        for second in seconds {
            recent.advance(*second);
            recent.count();
        }
        recent
    }

    #[test]
    fn its_text_has_each_second_with_requests_and_is_read_back() {
        for (seconds, text) in [
            (&[][..], ""),
            (&[1_000, 1_000, 1_059], "1000:2 1059:1"),
            (&[1_000, 1_059, 1_060], "1059:1 1060:1"),
            (&[3], "3:1"),
        ] {
            let recent = counted(seconds);
            assert_eq!(recent.to_string(), text);
            let mut read = RecentRequests::parse(text).unwrap();
            read.advance(recent.latest);
            assert_eq!(read, recent, "{text}");
        }
    }

    #[test]
    fn what_is_read_back_leaves_the_window_as_if_it_had_stayed() {
        let mut read = RecentRequests::parse("1000:2 1059:1").unwrap();
        assert_eq!((read.wait(3), read.wait(1)), (1, 60));
        read.advance(1_060);
        assert_eq!(read.total(), 1);
        read.advance(5_000);
        assert_eq!(read.total(), 0);
    }

    #[test]
    fn another_text_is_none() {
        for text in ["1000", "x:1", "1000:x", "1000:-1", "1059:1 1000:1", "1000:1 1060:1", "1000:4294967296"]
        {
            assert_eq!(RecentRequests::parse(text), None, "{text}");
        }
    }
}
