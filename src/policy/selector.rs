//! Which pods a policy selects.

use super::compile::Labels;
use super::document::{Expression, Operator, Selector};

/// Whether a pod with these labels is selected; an absent or empty selector selects every pod.
pub fn selects(selector: Option<&Selector>, labels: &Labels) -> bool {
    selector.is_none_or(|selector| {
        selector.match_labels.iter().all(|(key, value)| labels.get(key) == Some(value))
            && selector.match_expressions.iter().all(|expression| holds(expression, labels))
    })
}

/// As Kubernetes has it: `NotIn` holds where the label is missing.
fn holds(expression: &Expression, labels: &Labels) -> bool {
    let value = labels.get(&expression.key);
    match expression.operator {
        Some(Operator::In) => value.is_some_and(|value| expression.values.contains(value)),
        Some(Operator::NotIn) => value.is_none_or(|value| !expression.values.contains(value)),
        Some(Operator::Exists) => value.is_some(),
        Some(Operator::DoesNotExist) => value.is_none(),
        None => false,
    }
}
