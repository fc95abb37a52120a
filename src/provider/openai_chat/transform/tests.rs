//! The names of transforms, and that a list of them is a set.

use super::*;

#[test]
fn every_transform_is_found_by_its_word() {
    for transform in Transform::ALL {
        assert_eq!(transform.as_str().parse(), Ok(*transform));
    }
    assert_eq!("Reasoning".parse::<Transform>(), Err(UnknownTransform));
    assert_eq!(Transform::ALL.iter().filter(|transform| transform.is_schema()).count(), 4);
}

#[test]
fn the_order_of_a_list_does_not_matter() {
    let all: Transforms = Transform::ALL.iter().copied().collect();
    let reversed: Transforms = Transform::ALL.iter().rev().copied().collect();
    assert_eq!(all, reversed);
    assert_eq!(all.iter().collect::<Vec<_>>(), Transform::ALL);
    let without = all.without(Transform::ToolUse);
    assert!(all.has(Transform::ToolUse) && !without.has(Transform::ToolUse));
    assert_eq!(without.iter().count(), Transform::ALL.len() - 1);
    assert!(Transform::ALL.iter().all(|transform| !Transforms::default().has(*transform)));
}
