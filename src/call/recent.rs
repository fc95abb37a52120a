//! Remembers something under the ids that providers give to answers and conversations: the newest, so many.

use std::fmt;

use quick_cache::sync::{Cache, DefaultLifecycle, EntryAction, EntryResult};
use quick_cache::{DefaultHashBuilder, OptionsBuilder, UnitWeighter};

/// The longest id, in bytes; providers allow 64 to 128 characters.
pub const LONGEST: usize = 256;

/// A bounded map from a provider's id to a value; shared by all exchanges.
pub struct Recent<V> {
    by_id: Cache<String, V>,
}

impl<V: Clone> Recent<V> {
    /// Remembers under at most so many ids, and forgets the oldest first.
    pub fn new(most: usize) -> Self {
        // Most ids are asked for once, soon: room for what is asked for often would fill up and keep new ids out. Shards
        // would forget new ids where theirs is full.
        let mut options = OptionsBuilder::new();
        options.shards(1).hot_allocation(0.0).estimated_items_capacity(most).weight_capacity(most as u64);
        let with = |options| {
            Cache::with_options(
                options,
                UnitWeighter,
                DefaultHashBuilder::default(),
                DefaultLifecycle::default(),
            )
        };
        Self { by_id: options.build().map_or_else(|_| Cache::new(most), with) }
    }

    /// Changes what is remembered under an id: at first that is `first`. Skips ids that no provider makes.
    pub fn change(&self, id: &str, first: impl FnOnce() -> V, change: impl Fn(&mut V)) {
        if id.is_empty() || id.len() > LONGEST {
            return;
        }
        // Two exchanges may belong to one conversation, so that it is changed under the lock of its entry.
        let entry = self.by_id.entry(id, None, |_, value| {
            change(value);
            EntryAction::Retain(())
        });
        if let EntryResult::Vacant(vacant) = entry {
            let mut value = first();
            change(&mut value);
            // It fails only where the entry was removed meanwhile, which is to forget it.
            let _ = vacant.insert(value);
        }
    }

    /// What is remembered under an id.
    pub fn of(&self, id: &str) -> Option<V> {
        self.by_id.get(id)
    }

    /// Forgets an id.
    pub fn forget(&self, id: &str) {
        self.by_id.remove(id);
    }
}

impl<V: Clone> fmt::Debug for Recent<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ids", self.by_id.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(recent: &Recent<u32>, id: &str) {
        recent.change(id, || 0, |count| *count += 1);
    }

    #[test]
    fn what_stands_under_an_id_is_changed_until_it_is_forgotten() {
        let recent = Recent::new(2);
        ["a", "a"].iter().for_each(|id| add(&recent, id));
        assert_eq!((recent.of("a"), recent.of("b")), (Some(2), None));
        recent.forget("a");
        assert_eq!(recent.of("a"), None);
    }

    #[test]
    fn new_ids_are_remembered_though_older_ones_fill_the_room() {
        let recent = Recent::new(4_096);
        (0..20_000).for_each(|number| add(&recent, &number.to_string()));
        let is_remembered = |number: &u32| recent.of(&number.to_string()).is_some();
        assert_eq!((18_000..20_000).filter(is_remembered).count(), 2_000);
        assert!((0..10_000).filter(is_remembered).count() <= 1, "old ids take the room of new ones");
    }

    #[test]
    fn no_more_ids_are_remembered_than_there_is_room_for() {
        let recent = Recent::new(2);
        (0..100).for_each(|number| add(&recent, &number.to_string()));
        let remembered = (0..100).filter(|number: &u32| recent.of(&number.to_string()).is_some()).count();
        assert!((1..=2).contains(&remembered), "{remembered}");
    }

    #[test]
    fn an_id_that_no_provider_makes_is_not_remembered() {
        let (recent, long) = (Recent::new(2), "b".repeat(LONGEST + 1));
        ["", &long].iter().for_each(|id| add(&recent, id));
        assert_eq!((recent.of(""), recent.of(&long)), (None, None));
    }
}
