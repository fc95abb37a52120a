//! The keys of an object: a duplicate among them, found in time linear in their bytes, and marks by which most keys that
//! an object does not have are told without a look at those that it has.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::error::Duplicate;
use super::string::Inside;
use super::{Document, Node};

/// Up to this many keys are compared pairwise; nearly all objects have fewer.
const FEW: usize = 12;

/// One bit for each of 16 kinds of keys. Readers ask an object for dozens of keys, of which it has few.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct KeyMarks(u16);

impl KeyMarks {
    pub(super) const NONE: Self = Self(0);
    /// There may be any key, and one that is not all lower-case ASCII.
    pub(super) const ANY: Self = Self(u16::MAX);

    /// The mark of a key, in whatever case its letters are.
    pub(super) fn of(key: &[u8]) -> Self {
        const LOWER: u8 = 0x20;
        let (Some(first), Some(last)) = (key.first(), key.last()) else { return Self(1) };
        let kind = (key.len() * 7) ^ usize::from(first | LOWER) ^ (usize::from(last | LOWER) << 1);
        Self(1 << (kind % 16))
    }

    pub(super) fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether there may be a key with this mark.
    #[inline]
    pub(super) fn may_have(self, mark: Self) -> bool {
        self.0 & mark.0 != 0
    }
}

/// The first duplicate among the keys of one object, in their order.
pub(super) fn find_duplicate(text: &str, nodes: &[Node], keys: &[u32]) -> Option<Duplicate> {
    let inside = |key: u32| inside(text, &nodes[key as usize]);
    let (first, again) = if keys.len() <= FEW {
        // Most keys differ in their lengths already.
        let may_be_same = |first: u32, again: u32| {
            let (first, again) = (&nodes[first as usize], &nodes[again as usize]);
            first.length() == again.length() || first.is_escaped() || again.is_escaped()
        };
        let is_same = |first: u32, again: u32| may_be_same(first, again) && inside(first) == inside(again);
        keys.iter().enumerate().find_map(|(count, &again)| {
            let first = keys[..count].iter().find(|&&first| is_same(first, again));
            first.map(|&first| (first, again))
        })?
    } else {
        // Rust's hash is keyed at random: no choice of names makes this slow.
        let mut seen = HashMap::with_capacity(keys.len());
        keys.iter().find_map(|&again| match seen.entry(inside(again)) {
            Entry::Occupied(first) => Some((*first.get(), again)),
            Entry::Vacant(place) => {
                place.insert(again);
                None
            }
        })?
    };
    let start = |key: u32| nodes[key as usize].start as usize;
    Some(Duplicate { first: start(first), again: start(again) })
}

impl Document<'_> {
    /// What is between the quotes of a string's node.
    pub(super) fn inside(&self, node: u32) -> Inside<'_> {
        inside(self.text, self.node(node))
    }
}

fn inside<'a>(text: &'a str, node: &Node) -> Inside<'a> {
    Inside { text: &text[node.start as usize + 1..node.end as usize - 1], escaped: node.is_escaped() }
}
