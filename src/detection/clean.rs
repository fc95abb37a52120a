//! Remembers texts in which nothing was found, by a hash that nobody else can make: a conversation is sent again with each
//! turn, and only what is new is searched.

use std::hash::BuildHasher;

use foldhash::quality::RandomState;
use quick_cache::sync::Cache;

/// How many texts are remembered.
const MOST: usize = 65_536;

/// A way in which a text may be searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Way {
    /// As JSON writes it.
    Whole,
    Sealed,
    /// As it is, for an event: what is of confidence Low is no finding.
    Name,
    /// A part of a head.
    Part,
}

/// Texts in which nothing was found under one policy.
pub struct CleanTexts {
    texts: Cache<u128, ()>,
    seeds: [RandomState; 2],
}

impl Default for CleanTexts {
    fn default() -> Self {
        Self { texts: Cache::new(MOST), seeds: [RandomState::default(), RandomState::default()] }
    }
}

impl CleanTexts {
    /// The name of a text. `way` tells apart ways in which a text may be searched.
    pub(super) fn key(&self, text: &[u8], way: (u64, Way)) -> u128 {
        let [one, other] = self.seeds.each_ref().map(|seed| u128::from(seed.hash_one((way, text))));
        one << 64 | other
    }

    /// The name of two texts that follow each other.
    pub(super) fn key_of_seam(&self, generation: u64, before: &[u8], behind: &[u8]) -> u128 {
        let [one, other] =
            self.seeds.each_ref().map(|seed| u128::from(seed.hash_one((generation, before, behind))));
        one << 64 | other
    }

    pub(super) fn has(&self, key: u128) -> bool {
        self.texts.get(&key).is_some()
    }

    pub(super) fn add(&self, key: u128) {
        self.texts.insert(key, ());
    }
}

impl std::fmt::Debug for CleanTexts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} clean texts", self.texts.len())
    }
}
