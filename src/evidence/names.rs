//! Remembers the names of texts by a hash that nobody else can make: a conversation sends its texts again with each turn, and
//! SHA-256 takes six times as long.

use std::fmt;
use std::hash::BuildHasher;

use foldhash::quality::RandomState;
use quick_cache::sync::Cache;

use super::id::EvidenceId;

/// How many names are remembered.
const MOST: usize = 16_384;

/// Names that were computed before.
pub(super) struct KnownNames {
    names: Cache<u128, EvidenceId>,
    seeds: [RandomState; 2],
}

impl Default for KnownNames {
    fn default() -> Self {
        Self { names: Cache::new(MOST), seeds: [RandomState::default(), RandomState::default()] }
    }
}

impl KnownNames {
    /// The name of a text, as [`EvidenceId::of`] says it.
    pub(super) fn of(&self, text: &str) -> EvidenceId {
        let [one, other] = self.seeds.each_ref().map(|seed| u128::from(seed.hash_one(text)));
        let key = one << 64 | other;
        self.names.get(&key).unwrap_or_else(|| {
            let name = EvidenceId::of(text);
            self.names.insert(key, name);
            name
        })
    }
}

impl fmt::Debug for KnownNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} names", self.names.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_the_same_the_second_time() {
        let names = KnownNames::default();
        for text in ["", "a", "b", "a", "", "b"] {
            assert_eq!(names.of(text), EvidenceId::of(text));
        }
        assert_eq!(names.names.len(), 3);
    }
}
