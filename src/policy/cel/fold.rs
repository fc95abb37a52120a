//! What an expression comes to by its kind and direction alone.

use super::eval::Evaluation;
use super::fields::{Facts, Field};
use super::tree::{Node, NodeKind};

/// The fields that are known of an event before it happens.
const STAGE: [&str; 2] = ["kind", "direction"];

/// The value that an expression has for every event of this kind and direction; none where other facts decide.
pub(super) fn settled(node: &Node, stage: &Facts<'_>, most_cost: u64) -> Option<bool> {
    let mut fields = Vec::new();
    node.fields(&mut fields);
    let is_known = |(field, _): &(&Field, usize)| STAGE.contains(&field.path);
    if fields.iter().all(is_known) {
        return Evaluation::new(stage, most_cost).bool(node).ok();
    }
    let each = |nodes: &[Node], deciding: bool| {
        let mut settled = nodes.iter().map(|node| settled(node, stage, most_cost));
        settled.any(|value| value == Some(deciding)).then_some(deciding)
    };
    if let NodeKind::And(nodes) = &node.what {
        return each(nodes, false);
    }
    if let NodeKind::Or(nodes) = &node.what {
        return each(nodes, true);
    }
    if let NodeKind::Not(of) = &node.what {
        return settled(of, stage, most_cost).map(|value| !value);
    }
    let NodeKind::Choice(parts) = &node.what else { return None };
    let [condition, then, otherwise] = parts.as_ref();
    match settled(condition, stage, most_cost) {
        Some(true) => settled(then, stage, most_cost),
        Some(false) => settled(otherwise, stage, most_cost),
        None => None,
    }
}
