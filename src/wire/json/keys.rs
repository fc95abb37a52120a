//! Finds a key that stands twice in an object, in time that an agent cannot make grow faster than its body.

use super::error::Duplicate;
use super::string::Inside;
use super::{Document, Node};

/// Up to so many keys are compared each with each, which is what nearly all objects need; more are sorted.
const FEW: usize = 12;

/// The first key that stands again, among the keys of one object in their order. They are left in any order.
pub(super) fn find_duplicate(text: &str, nodes: &[Node], keys: &mut [u32]) -> Option<Duplicate> {
    let duplicate = |first: u32, again: u32| Duplicate {
        first: nodes[first as usize].start as usize,
        again: nodes[again as usize].start as usize,
    };
    let inside = |key: u32| inside(text, &nodes[key as usize]);
    if keys.len() <= FEW {
        return keys.iter().enumerate().find_map(|(count, &again)| {
            let same = |first: &&u32| is_same(inside(**first), inside(again));
            keys[..count].iter().find(same).map(|&first| duplicate(first, again))
        });
    }
    keys.sort_unstable_by(|&a, &b| inside(a).compare(inside(b)).then(a.cmp(&b)));
    keys.windows(2)
        .filter_map(|pair| <[u32; 2]>::try_from(pair).ok())
        .filter(|&[first, again]| is_same(inside(first), inside(again)))
        .map(|[first, again]| duplicate(first, again))
        .min_by_key(|duplicate| duplicate.again)
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

fn is_same(a: Inside<'_>, b: Inside<'_>) -> bool {
    if a.escaped || b.escaped { a.compare(b).is_eq() } else { a.text == b.text }
}
