//! What an evaluation costs at most, known before anything is evaluated.
//!
//! A node costs 1, and what it does with texts and lists as much as their bounds allow: a text its bytes / 32, a regular
//! expression its bytes / 8, a comprehension the most elements of its list times its body.

use super::kind::Extent;
use super::syntax::Operator;
use super::tree::{Comprehension, Function, Macro, Node, NodeKind};
use super::value::{List, Value};

/// Bytes of a text that cost 1.
pub(super) const TEXT: u64 = 32;
/// Bytes of a text that cost 1 in a regular expression.
pub(super) const REGEX: u64 = 8;

/// A cost, how large the value gets, and the part that costs most of it.
#[derive(Debug, Clone)]
pub(super) struct Cost {
    pub(super) cost: u64,
    extent: Extent,
    /// The offset of the smallest part that costs more than half, and its cost.
    pub(super) worst: (usize, u64),
}

/// Measures an expression.
pub(super) fn cost(node: &Node) -> Cost {
    Measure { variables: Vec::new() }.measure(node)
}

struct Measure {
    /// How large the variables of the comprehensions around get.
    variables: Vec<Extent>,
}

impl Measure {
    fn measure(&mut self, node: &Node) -> Cost {
        let (own, extent, parts) = self.parts(node);
        let cost = parts.iter().fold(own.saturating_add(1), |sum, part| sum.saturating_add(part.cost));
        let worst = parts.iter().map(|part| part.worst).max_by_key(|(_, cost)| *cost);
        let worst = worst.filter(|(_, worst)| *worst > cost / 2).unwrap_or((node.offset, cost));
        Cost { cost, extent, worst }
    }

    /// What a node costs by itself, how large its value gets, and its parts.
    fn parts(&mut self, node: &Node) -> (u64, Extent, Vec<Cost>) {
        match &node.what {
            NodeKind::Constant(value) => (0, extent_of(value), Vec::new()),
            NodeKind::Field(field) => (0, field.extent(), Vec::new()),
            NodeKind::Has(fields) => (fields.len() as u64, Extent::default(), Vec::new()),
            NodeKind::Member(of, field) => (0, field.extent(), vec![self.measure(of)]),
            NodeKind::HasMember(of, _)
            | NodeKind::Not(of)
            | NodeKind::Negate(of)
            | NodeKind::TimePart(_, _, of) => (0, Extent::default(), vec![self.measure(of)]),
            NodeKind::Variable(number) => {
                (0, self.variables.get(*number).cloned().unwrap_or_default(), Vec::new())
            }
            NodeKind::And(nodes) | NodeKind::Or(nodes) => (0, Extent::default(), self.all(nodes)),
            NodeKind::Choice(nodes) => {
                let parts = self.all(nodes.as_slice());
                (0, largest(parts.get(1..).unwrap_or_default()), parts)
            }
            NodeKind::Binary(operator, nodes) => self.binary(*operator, nodes),
            NodeKind::List(nodes) => {
                let parts = self.all(nodes);
                (nodes.len() as u64, Extent::list(nodes.len() as u64, largest(&parts)), parts)
            }
            NodeKind::Index(nodes) => {
                let parts = self.all(nodes.as_slice());
                (0, parts.first().map(|list| list.extent.item()).unwrap_or_default(), parts)
            }
            NodeKind::Call(function, nodes) => self.call(*function, nodes),
            NodeKind::Matches(of, _) => {
                let part = self.measure(of);
                (part.extent.most / REGEX, Extent::default(), vec![part])
            }
            NodeKind::HostIn(of, patterns) => {
                let part = self.measure(of);
                // A text longer than a name is none.
                (HOST / TEXT + patterns.len() as u64, Extent::default(), vec![part])
            }
            NodeKind::Comprehension(which, of) => self.comprehension(*which, of),
        }
    }

    fn all(&mut self, nodes: &[Node]) -> Vec<Cost> {
        nodes.iter().map(|node| self.measure(node)).collect()
    }

    fn binary(&mut self, operator: Operator, nodes: &[Node; 2]) -> (u64, Extent, Vec<Cost>) {
        let (left, right) = (self.measure(&nodes[0]), self.measure(&nodes[1]));
        let (one, other) = (&left.extent, &right.extent);
        let both = one.most.saturating_add(other.most);
        let (own, extent) = match operator {
            Operator::In => (comparisons(other.most, one, &other.item()), Extent::default()),
            Operator::Add => {
                let is_list = one.item.is_some() || other.item.is_some();
                let joined = Extent { most: both, ..one.either(other) };
                (if is_list { both } else { both / TEXT }, joined)
            }
            Operator::Equal
            | Operator::NotEqual
            | Operator::Less
            | Operator::LessOrEqual
            | Operator::Greater
            | Operator::GreaterOrEqual => (comparison(one, other), Extent::default()),
            Operator::Subtract | Operator::Multiply | Operator::Divide | Operator::Remainder => {
                (0, Extent::default())
            }
        };
        (own, extent, vec![left, right])
    }

    fn call(&mut self, function: Function, nodes: &[Node]) -> (u64, Extent, Vec<Cost>) {
        let parts = self.all(nodes);
        let extent =
            |number: usize| parts.get(number).map(|part: &Cost| part.extent.clone()).unwrap_or_default();
        let (one, other) = (extent(0), extent(1));
        let (own, extent) = match function {
            Function::Size if one.item.is_some() => (0, Extent::default()),
            Function::Size | Function::Contains => (one.most / TEXT, Extent::default()),
            Function::StartsWith | Function::EndsWith => (one.most.min(other.most) / TEXT, Extent::default()),
            Function::LowerAscii => (one.most / TEXT, one),
        };
        (own, extent, parts)
    }

    fn comprehension(&mut self, which: Macro, of: &Comprehension) -> (u64, Extent, Vec<Cost>) {
        let list = self.measure(&of.list);
        let (most, item) = (list.extent.most, list.extent.item());
        self.variables.push(item.clone());
        let filter = of.filter.as_ref().map(|filter| self.measure(filter));
        let body = self.measure(&of.body);
        self.variables.pop();
        let each =
            body.cost.saturating_add(filter.as_ref().map_or(0, |filter| filter.cost)).saturating_add(1);
        let result = match which {
            Macro::All | Macro::Exists | Macro::ExistsOne => Extent::default(),
            Macro::Filter => Extent::list(most, item),
            Macro::Map => Extent::list(most, body.extent),
        };
        (most.saturating_mul(each), result, vec![list])
    }
}

/// The longest name of a host, in bytes.
pub(super) const HOST: u64 = 256;

/// What it costs to look for a value in a list.
fn comparisons(items: u64, value: &Extent, item: &Extent) -> u64 {
    items.saturating_mul(comparison(value, item).saturating_add(1))
}

/// What it costs to compare two values.
fn comparison(one: &Extent, other: &Extent) -> u64 {
    let most = one.most.min(other.most);
    if one.item.is_some() || other.item.is_some() {
        comparisons(most, &one.item(), &other.item())
    } else {
        most / TEXT
    }
}

fn largest(parts: &[Cost]) -> Extent {
    parts.iter().fold(Extent::default(), |largest, part| largest.either(&part.extent))
}

fn extent_of(value: &Value<'_>) -> Extent {
    match value {
        Value::Text(text) => Extent::text(text.len() as u64),
        Value::List(List::Values(values)) => {
            let item = values.iter().fold(Extent::default(), |most, value| most.either(&extent_of(value)));
            Extent::list(values.len() as u64, item)
        }
        Value::Bool(_)
        | Value::Int(_)
        | Value::Time(_)
        | Value::Duration(_)
        | Value::List(_)
        | Value::Object(_) => Extent::default(),
    }
}
