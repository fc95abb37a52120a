//! Remembers texts in which nothing was found, by a hash that nobody else can make: a conversation is sent again with each
//! turn, and only what is new is searched.
//!
//! A text is remembered by itself, and as a step: with what stood before it, as far as that matters for seams. One look-up
//! then tells that text and seams are clean, and what stands before the next text. So is a whole item of a request, such as a
//! message.

use quick_cache::sync::Cache;

use crate::digest::SecretHash;
use crate::provider::request::RequestItem;

/// Tells the name of an item from that of a text.
const ITEM: &str = "item";

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

/// What stands in front of a text: the ends of the texts before it, by their hash.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(super) struct State(u128);

/// Texts in which nothing was found under one policy.
pub struct CleanTexts {
    /// Of a step, what it leads to; of others, nothing.
    texts: Cache<u128, State>,
    hash: SecretHash,
}

impl Default for CleanTexts {
    fn default() -> Self {
        Self { texts: Cache::new(MOST), hash: SecretHash::default() }
    }
}

impl CleanTexts {
    /// The name of a text. `way` tells apart ways in which a text may be searched.
    pub(super) fn key(&self, text: &[u8], way: (u64, Way)) -> u128 {
        self.hash.of((way, text))
    }

    /// The name of two texts that follow each other.
    pub(super) fn key_of_seam(&self, generation: u64, before: &[u8], behind: &[u8]) -> u128 {
        self.hash.of((generation, before, behind))
    }

    /// The name of a text behind this state. `kind` tells apart whatever else decides about its seams.
    pub(super) fn key_of_step(&self, from: State, text: &[u8], way: (u64, Way), kind: u8) -> u128 {
        self.hash.of((from, way, kind, text))
    }

    /// The name of an item of a request behind this state.
    pub(super) fn key_of_item(&self, from: State, generation: u64, item: &RequestItem<'_, '_>) -> u128 {
        self.hash.of((ITEM, from, generation, item))
    }

    /// What stands in front of the next text, where these ends stand there.
    pub(super) fn state(&self, ends: [&[u8]; 2]) -> State {
        State(self.hash.of(ends))
    }

    pub(super) fn has(&self, key: u128) -> bool {
        self.texts.get(&key).is_some()
    }

    pub(super) fn add(&self, key: u128) {
        self.texts.insert(key, State::default());
    }

    /// What a clean step leads to.
    pub(super) fn after(&self, step: u128) -> Option<State> {
        self.texts.get(&step)
    }

    pub(super) fn add_step(&self, step: u128, to: State) {
        self.texts.insert(step, to);
    }
}

impl std::fmt::Debug for CleanTexts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} clean texts", self.texts.len())
    }
}
