//! Finds a duplicate key in an object, in time linear in the bytes of its keys.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::error::Duplicate;
use super::string::Inside;
use super::{Document, Node};

/// Up to this many keys are compared pairwise; nearly all objects have fewer.
const FEW: usize = 12;

/// The first duplicate among the keys of one object, in their order.
pub(super) fn find_duplicate(text: &str, nodes: &[Node], keys: &[u32]) -> Option<Duplicate> {
    let inside = |key: u32| inside(text, &nodes[key as usize]);
    let (first, again) = if keys.len() <= FEW {
        // Most keys differ in their lengths already.
        let may_be_same = |first: u32, again: u32| {
            let (first, again) = (&nodes[first as usize], &nodes[again as usize]);
            first.length() == again.length() || first.escaped || again.escaped
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
    Inside { text: &text[node.start as usize + 1..node.end as usize - 1], escaped: node.escaped }
}
