//! Remembers with which settings a conversation is edited, so that what was sent once is sent again in the same form.

use std::sync::Arc;
use std::time::{Duration, Instant};

use quick_cache::sync::Cache;

/// How many conversations are remembered.
const MOST: usize = 4_096;

/// How long one is remembered that nobody goes on with.
const AGE: Duration = Duration::from_secs(24 * 60 * 60);

/// Names a conversation: a digest of how it began.
pub type ConversationKey = [u8; 32];

/// The conversations of a gateway, each with the settings that it was first seen with.
#[derive(Debug)]
pub struct Conversations<S> {
    seen: Cache<ConversationKey, Seen<S>>,
    /// The settings that the gateway started with.
    first: Option<Arc<S>>,
}

#[derive(Debug)]
struct Seen<S> {
    settings: Option<Arc<S>>,
    last: Instant,
}

impl<S> Clone for Seen<S> {
    fn clone(&self) -> Self {
        Self { settings: self.settings.clone(), last: self.last }
    }
}

impl<S: PartialEq> Conversations<S> {
    /// None are known yet. `first`: the settings in force, none where nothing is edited.
    pub fn new(first: Option<Arc<S>>) -> Self {
        Self { seen: Cache::new(MOST), first }
    }

    /// Whether a request need not be looked at: nothing is edited now, and no conversation was begun with settings.
    pub fn is_idle(&self, current: Option<&Arc<S>>) -> bool {
        current.is_none() && self.seen.is_empty()
    }

    /// The settings by which a conversation is edited. `is_under_way`: it holds results already. One that is not remembered
    /// was edited before, if at all, by a gateway that started with the settings of this one.
    pub fn settings(
        &self,
        key: ConversationKey,
        is_under_way: bool,
        current: Option<&Arc<S>>,
        now: Instant,
    ) -> Option<Arc<S>> {
        let seen = self.seen.get(&key).filter(|seen| now.saturating_duration_since(seen.last) < AGE);
        let settings = match seen {
            Some(seen) => seen.settings,
            None if is_under_way && current != self.first.as_ref() => None,
            None => current.cloned(),
        };
        self.seen.insert(key, Seen { settings: settings.clone(), last: now });
        settings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conversation_keeps_the_settings_that_it_was_first_seen_with() {
        let (old, new, now) = (Arc::new(1), Arc::new(2), Instant::now());
        let known = Conversations::new(Some(Arc::clone(&old)));
        assert_eq!(known.settings([1; 32], false, Some(&old), now), Some(Arc::clone(&old)));
        assert_eq!(known.settings([1; 32], true, Some(&new), now), Some(Arc::clone(&old)));
        assert_eq!(known.settings([1; 32], true, None, now), Some(Arc::clone(&old)));
        assert_eq!(known.settings([2; 32], false, Some(&new), now), Some(new));
    }

    #[test]
    fn one_under_way_that_is_not_known_is_edited_by_the_first_settings_alone() {
        let (old, new, now) = (Arc::new(1), Arc::new(2), Instant::now());
        let known = Conversations::new(Some(Arc::clone(&old)));
        assert_eq!(known.settings([1; 32], true, Some(&old), now), Some(old));
        assert_eq!(known.settings([2; 32], true, Some(&new), now), None);
        // And it stays so.
        assert_eq!(known.settings([2; 32], true, Some(&new), now), None);
        let without = Conversations::new(None);
        assert_eq!(without.settings([1; 32], true, Some(&new), now), None);
        assert_eq!(without.settings([2; 32], false, Some(&new), now), Some(new));
    }

    #[test]
    fn one_that_rests_for_a_day_is_forgotten() {
        let (old, new, now) = (Arc::new(1), Arc::new(2), Instant::now());
        let known = Conversations::new(None);
        assert_eq!(known.settings([1; 32], false, Some(&old), now), Some(old));
        let rested = now + AGE;
        assert_eq!(known.settings([1; 32], false, Some(&new), rested), Some(new));
    }

    #[test]
    fn nothing_is_looked_at_where_nothing_was_ever_edited() {
        let (settings, now) = (Arc::new(1), Instant::now());
        let known = Conversations::new(None);
        assert!(known.is_idle(None) && !known.is_idle(Some(&settings)));
        known.settings([1; 32], false, Some(&settings), now);
        assert!(!known.is_idle(None), "a conversation goes on by its settings");
    }
}
