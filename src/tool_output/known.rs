//! Remembers what became of texts, by a hash that nobody else can make: a conversation sends its results again with each turn,
//! and what becomes of one depends on its text and the settings alone.

use std::fmt;
use std::hash::Hash;
use std::sync::Arc;

use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{DefaultHashBuilder, OptionsBuilder, Weighter};

use super::plan::{PlannedChange, PlannedText, Replacement};
use crate::digest::SecretHash;

/// How many bytes of texts are remembered, about.
const MOST_BYTES: u64 = 8 << 20;
/// What an entry takes beside its texts.
const ENTRY: u64 = 128;
/// How many entries there are, where each has a usual size.
const USUAL: usize = 2_048;

/// What becomes of a long text; none of one that is short enough.
pub(super) type OfText = Option<Arc<PlannedText>>;

/// What became of texts.
pub struct KnownCuts {
    texts: Cache<u128, OfText, Bytes>,
    hash: SecretHash,
}

impl Default for KnownCuts {
    fn default() -> Self {
        // What is new is asked for again soon, and what is old no more: half of the room is for it. In shards of their own
        // long texts would find none.
        let mut options = OptionsBuilder::new();
        options.shards(1).hot_allocation(0.5).estimated_items_capacity(USUAL).weight_capacity(MOST_BYTES);
        let texts = options.build().map_or_else(
            |_| Cache::with_weighter(USUAL, MOST_BYTES, Bytes),
            |options| {
                Cache::with_options(
                    options,
                    Bytes,
                    DefaultHashBuilder::default(),
                    DefaultLifecycle::default(),
                )
            },
        );
        Self { texts, hash: SecretHash::default() }
    }
}

impl KnownCuts {
    /// What becomes of the text that `key` names, with everything that decides about it.
    pub(super) fn of(&self, key: impl Hash + Copy, plan: impl FnOnce() -> OfText) -> OfText {
        let key = self.hash.of(key);
        self.texts.get(&key).unwrap_or_else(|| {
            let planned = plan();
            self.texts.insert(key, planned.clone());
            planned
        })
    }
}

impl fmt::Debug for KnownCuts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} texts", self.texts.len())
    }
}

/// Counts the bytes of an entry.
#[derive(Debug, Clone)]
struct Bytes;

impl Weighter<u128, OfText> for Bytes {
    fn weight(&self, _: &u128, of: &OfText) -> u64 {
        let texts = of.as_ref().map_or(0, |long| match &long.change {
            PlannedChange::Cut { left: Replacement { text, json }, .. } => {
                text.len() + json.len() + long.before.len()
            }
            PlannedChange::Refer { .. } | PlannedChange::Leave(_) => long.before.len(),
        });
        ENTRY + texts as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(text: &str) -> OfText {
        Some(Arc::new(PlannedText { before: text.into(), change: PlannedChange::Leave("test") }))
    }

    #[test]
    fn a_text_is_planned_once_and_no_other_is_taken_for_it() {
        let known = KnownCuts::default();
        let of = |text: &str, bound: usize| {
            let mut is_planned = false;
            known.of((text, bound), || {
                is_planned = true;
                left(text)
            });
            is_planned
        };
        assert!(of("a", 1) && of("b", 1) && of("a", 2));
        assert!(!of("a", 1) && !of("b", 1) && !of("a", 2));
    }

    #[test]
    fn what_is_remembered_is_bounded_by_its_bytes() {
        let known = KnownCuts::default();
        let text = "x".repeat(64 << 10);
        for number in 0..1_000 {
            known.of(number, || left(&text));
        }
        assert!(known.texts.weight() <= MOST_BYTES, "{}", known.texts.weight());
        assert!(known.texts.len() > 64);
    }
}
