//! Counts, in stable words, what a translation drops or mends.

use std::collections::BTreeMap;

/// What was dropped or mended, each word with its count, in the order of the words. The words are part of the events
/// and of the metrics: none comes out of a request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Notes(BTreeMap<&'static str, u32>);

impl Notes {
    /// Counts one more of this.
    pub fn add(&mut self, word: &'static str) {
        self.add_some(word, 1);
    }

    /// Counts some more of this; none is not counted.
    pub fn add_some(&mut self, word: &'static str, count: usize) {
        if count > 0 {
            let sum = self.0.entry(word).or_default();
            *sum = sum.saturating_add(u32::try_from(count).unwrap_or(u32::MAX));
        }
    }

    /// Counts what another list has too.
    pub fn extend(&mut self, other: &Self) {
        other.iter().for_each(|(word, count)| self.add_some(word, count as usize));
    }

    /// The words in their order, each with its count.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u32)> {
        self.0.iter().map(|(word, count)| (*word, *count))
    }

    /// How often a word was counted.
    pub fn count(&self, word: &str) -> u32 {
        self.0.get(word).copied().unwrap_or_default()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
