//! What an expression comes to where some of its facts are known.

use super::eval::Evaluation;
use super::fields::{Facts, Field};
use super::tree::{Node, NodeKind};

/// The value that an expression has whatever the facts are that are not known; none where one of them decides.
pub(super) fn settled(
    node: &Node,
    facts: &Facts<'_>,
    is_known: &dyn Fn(&Field) -> bool,
    most_cost: u64,
) -> Option<bool> {
    let mut fields = Vec::new();
    node.fields(&mut fields);
    if fields.iter().all(|(field, _)| is_known(field)) {
        return Evaluation::new(facts, most_cost).bool(node).ok();
    }
    let settled = |node: &Node| settled(node, facts, is_known, most_cost);
    let each = |nodes: &[Node], deciding: bool| {
        let mut settled = nodes.iter().map(settled);
        settled.any(|value| value == Some(deciding)).then_some(deciding)
    };
    if let NodeKind::And(nodes) = &node.what {
        return each(nodes, false);
    }
    if let NodeKind::Or(nodes) = &node.what {
        return each(nodes, true);
    }
    if let NodeKind::Not(of) = &node.what {
        return settled(of).map(|value| !value);
    }
    let NodeKind::Choice(parts) = &node.what else { return None };
    let [condition, then, otherwise] = parts.as_ref();
    match settled(condition) {
        Some(true) => settled(then),
        Some(false) => settled(otherwise),
        None => None,
    }
}
