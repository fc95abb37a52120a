//! Shares a pace fairly between namespaces: one item of each in turn, beginning after the one that was served last. Pure.

use std::collections::{BTreeMap, VecDeque};

/// Takes up to `most` of the waiting items, one of each namespace in turn, so that a namespace with many does not hold
/// up one with few. Begins with the namespace that follows `after`, so that rounds that end early do not always leave
/// out the same ones.
pub(super) fn in_turn<T>(waiting: BTreeMap<String, Vec<T>>, after: &str, most: usize) -> Vec<T> {
    let passed = waiting.keys().filter(|namespace| namespace.as_str() <= after).count();
    let mut queues: VecDeque<_> = waiting.into_values().map(Vec::into_iter).collect();
    queues.rotate_left(passed);
    let mut taken = Vec::new();
    while taken.len() < most
        && let Some(mut queue) = queues.pop_front()
    {
        if let Some(item) = queue.next() {
            taken.push(item);
            queues.push_back(queue);
        }
    }
    taken
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiting(namespaces: &[(&str, usize)]) -> BTreeMap<String, Vec<String>> {
        let of = |(name, count): &(&str, usize)| {
            ((*name).to_owned(), (0..*count).map(|at| format!("{name}{at}")).collect())
        };
        namespaces.iter().map(of).collect()
    }

    #[test]
    fn a_crowd_does_not_come_before_others() {
        let taken = in_turn(waiting(&[("crowd", 1_000), ("few", 2), ("one", 1)]), "", 7);
        assert_eq!(taken, ["crowd0", "few0", "one0", "crowd1", "few1", "crowd2", "crowd3"]);
    }

    #[test]
    fn rounds_that_end_early_serve_everybody_in_the_end() {
        let all = || waiting(&[("a", 9), ("b", 9), ("c", 9)]);
        assert_eq!(in_turn(all(), "", 2), ["a0", "b0"]);
        assert_eq!(in_turn(all(), "b", 2), ["c0", "a0"]);
        assert_eq!(in_turn(all(), "c", 1), ["a0"]);
        assert_eq!(in_turn(all(), "bb", 1), ["c0"], "whoever was served last may be gone");
    }

    #[test]
    fn what_waits_is_taken_once() {
        assert_eq!(in_turn(waiting(&[("a", 2), ("b", 0)]), "z", 10), ["a0", "a1"]);
    }
}
