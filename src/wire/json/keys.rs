//! Finds a key that stands twice in an object, in time that grows with the bytes of its keys and no faster.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::error::Duplicate;
use super::string::Inside;
use super::{Document, Node};

/// Up to so many keys are compared each with each, which is what nearly all objects need.
const FEW: usize = 12;

/// The first key that stands again, among the keys of one object in their order.
pub(super) fn find_duplicate(text: &str, nodes: &[Node], keys: &[u32]) -> Option<Duplicate> {
    let inside = |key: u32| inside(text, &nodes[key as usize]);
    let (first, again) = if keys.len() <= FEW {
        // Most keys differ in their lengths already.
        let may_be_same = |one: u32, other: u32| {
            let (one, other) = (&nodes[one as usize], &nodes[other as usize]);
            one.length() == other.length() || one.escaped || other.escaped
        };
        let is_same = |one: u32, other: u32| may_be_same(one, other) && inside(one) == inside(other);
        keys.iter().enumerate().find_map(|(count, &again)| {
            let first = keys[..count].iter().find(|&&first| is_same(first, again));
            first.map(|&first| (first, again))
        })?
    } else {
        // Hashed under a key that nobody can guess: no choice of names makes this slow.
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
    Inside { text: &text[node.start as usize + 1..node.end as usize - 1], escaped: node.escaped }
}
