//! Checks types: every name, operator and function means something, or is told with its place and near names.

use super::fields::{EVENT, Field};
use super::kind::{Record, Type};
use super::syntax::{Operator, Syntax, SyntaxKind};
use super::tree::{Node, NodeKind};
use super::value::{List, Value};
use super::{MOST_COMPREHENSIONS, Mistake, Regexes, near};
use crate::yaml::field;

/// A checked node and its type.
pub(super) type Typed = (Node, Type);

/// Checks an expression, and gathers all mistakes.
pub(super) fn check(syntax: &Syntax, regexes: &mut dyn Regexes) -> Result<Node, Vec<Mistake>> {
    let mut checker = Checker { mistakes: Vec::new(), variables: Vec::new(), regexes };
    let (node, found) = checker.check(syntax);
    if !found.fits(&Type::Bool) {
        checker.say(syntax.offset, format!("a rule asks yes or no; this is {found}, expected bool"));
    }
    checker.mistakes.sort_by_key(|mistake| mistake.offset);
    checker.mistakes.dedup();
    if checker.mistakes.is_empty() { Ok(node) } else { Err(checker.mistakes) }
}

pub(super) struct Checker<'r> {
    pub(super) mistakes: Vec<Mistake>,
    /// Of the comprehensions around.
    pub(super) variables: Vec<(String, Type)>,
    pub(super) regexes: &'r mut dyn Regexes,
}

impl Checker<'_> {
    pub(super) fn say(&mut self, offset: usize, message: impl Into<String>) {
        self.mistakes.push(Mistake::new(offset, message));
    }

    /// The result where a mistake was told.
    pub(super) fn unknown(&mut self, offset: usize, message: impl Into<String>) -> Typed {
        self.say(offset, message);
        poison(offset)
    }

    pub(super) fn check(&mut self, syntax: &Syntax) -> Typed {
        let offset = syntax.offset;
        match &syntax.what {
            SyntaxKind::Bool(value) => constant(offset, Value::Bool(*value), Type::Bool),
            SyntaxKind::Int(value) => constant(offset, Value::Int(*value), Type::Int),
            SyntaxKind::Text(value) => constant(offset, Value::Text(value.clone().into()), Type::Text),
            SyntaxKind::Name(name) => self.name(offset, name),
            SyntaxKind::Select(base, name) => self.select(offset, base, name),
            SyntaxKind::Index(pair) => self.index(offset, pair),
            SyntaxKind::Call { target, name, arguments } => {
                self.call(offset, target.as_deref(), (name, arguments))
            }
            SyntaxKind::List(items) => self.list(offset, items),
            SyntaxKind::Not(operand) => self.prefixed(offset, operand, Type::Bool),
            SyntaxKind::Negate(operand) => self.prefixed(offset, operand, Type::Int),
            SyntaxKind::And(operands) => self.chain(offset, operands, NodeKind::And),
            SyntaxKind::Or(operands) => self.chain(offset, operands, NodeKind::Or),
            SyntaxKind::Choice(parts) => self.choice(offset, parts),
            SyntaxKind::Binary(operator, pair) => self.binary(offset, *operator, pair),
        }
    }

    /// Checks a part that has to be of a type.
    pub(super) fn expect(&mut self, syntax: &Syntax, expected: &Type, of: &str) -> Node {
        let (node, found) = self.check(syntax);
        if !found.fits(expected) {
            self.say(syntax.offset, format!("{of} is {found}; expected {expected}"));
        }
        node
    }

    fn name(&mut self, offset: usize, name: &str) -> Typed {
        let variable = self.variables.iter().enumerate().rev().find(|(_, (known, _))| known == name);
        if let Some((number, (_, of))) = variable {
            return (Node { offset, what: NodeKind::Variable(number) }, of.clone());
        }
        if name == "event" {
            return (poison(offset).0, Type::Group(""));
        }
        let known: Vec<&str> =
            std::iter::once("event").chain(self.variables.iter().map(|(name, _)| name.as_str())).collect();
        let message = if EVENT.iter().any(|field| field.path.split('.').next() == Some(name)) {
            format!("{} is not known here; did you mean `event.{name}`?", field::quoted(name))
        } else {
            format!("{} is not known here{}", field::quoted(name), near::hint(name, known))
        };
        self.unknown(offset, message)
    }

    fn select(&mut self, offset: usize, base: &Syntax, name: &str) -> Typed {
        let (node, of) = self.check(base);
        match of {
            Type::Unknown => poison(offset),
            Type::Group(path) => match group_field(path, name) {
                Some(GroupField::Field(field)) => {
                    (Node { offset, what: NodeKind::Field(field) }, field.r#type())
                }
                Some(GroupField::Group(path)) => (poison(offset).0, Type::Group(path)),
                None => {
                    let group = format!("event.{path}");
                    let message = format!(
                        "`{}` has no field {}{}",
                        group.trim_end_matches('.'),
                        field::quoted(name),
                        near::hint(name, group_names(path))
                    );
                    self.unknown(offset, message)
                }
            },
            Type::Object(record) => match member(record, name) {
                Some(field) => {
                    (Node { offset, what: NodeKind::Member(Box::new(node), field) }, field.r#type())
                }
                None => {
                    let names = record.fields().iter().map(Field::name);
                    let message =
                        format!("there is no field {} in it{}", field::quoted(name), near::hint(name, names));
                    self.unknown(offset, message)
                }
            },
            Type::Bool | Type::Int | Type::Text | Type::Time | Type::Duration | Type::List(_) => {
                self.unknown(offset, format!("{of} has no fields, so no {}", field::quoted(name)))
            }
        }
    }

    fn index(&mut self, offset: usize, pair: &[Syntax; 2]) -> Typed {
        let [list, index] = pair;
        let (list, of) = self.check(list);
        let index = self.expect(index, &Type::Int, "the index");
        if of == Type::Unknown {
            return poison(offset);
        }
        let Type::List(of) = of else {
            return self.unknown(offset, format!("{of} has no items; expected a list before `[`"));
        };
        (Node { offset, what: NodeKind::Index(Box::new([list, index])) }, *of)
    }

    fn list(&mut self, offset: usize, items: &[Syntax]) -> Typed {
        let (mut nodes, mut of) = (Vec::with_capacity(items.len()), Type::Unknown);
        for item in items {
            let (node, found) = self.check(item);
            match of.unite(&found) {
                Some(both) if !matches!(found, Type::Group(_)) => of = both,
                _ => self.say(
                    item.offset,
                    format!("the list has items of {of} and of {found}; expected one type"),
                ),
            }
            nodes.push(node);
        }
        let values: Option<Vec<Value<'static>>> = nodes.iter().map(constant_of).collect();
        let what = match values {
            Some(values) => NodeKind::Constant(Value::List(List::Values(values.into()))),
            None => NodeKind::List(nodes),
        };
        (Node { offset, what }, Type::list(of))
    }

    fn prefixed(&mut self, offset: usize, operand: &Syntax, of: Type) -> Typed {
        let (mark, make): (_, fn(Box<Node>) -> NodeKind) =
            if of == Type::Bool { ("!", NodeKind::Not) } else { ("-", NodeKind::Negate) };
        let node = self.expect(operand, &of, &format!("what stands behind `{mark}`"));
        (Node { offset, what: make(Box::new(node)) }, of)
    }

    fn chain(&mut self, offset: usize, operands: &[Syntax], make: fn(Vec<Node>) -> NodeKind) -> Typed {
        let nodes =
            operands.iter().map(|operand| self.expect(operand, &Type::Bool, "an operand of `&&` or `||`"));
        let nodes = nodes.collect();
        (Node { offset, what: make(nodes) }, Type::Bool)
    }

    fn choice(&mut self, offset: usize, parts: &[Syntax; 3]) -> Typed {
        let [condition, then, otherwise] = parts;
        let condition = self.expect(condition, &Type::Bool, "the condition before `?`");
        let ((then, one), (otherwise, other)) = (self.check(then), self.check(otherwise));
        let of = one.unite(&other).filter(|of| !matches!(of, Type::Group(_)));
        let Some(of) = of else {
            return self.unknown(offset, format!("the choice is {one} or {other}; expected one type"));
        };
        (Node { offset, what: NodeKind::Choice(Box::new([condition, then, otherwise])) }, of)
    }

    fn binary(&mut self, offset: usize, operator: Operator, pair: &[Syntax; 2]) -> Typed {
        let ((left, one), (right, other)) = (self.check(&pair[0]), self.check(&pair[1]));
        let Some(of) = result(operator, &one, &other) else {
            let mark = operator.mark();
            let expected = expected(operator);
            return self.unknown(
                offset,
                format!("`{mark}` does not go with {one} and {other}; expected {expected}"),
            );
        };
        (Node { offset, what: NodeKind::Binary(operator, Box::new([left, right])) }, of)
    }

    /// Checks what is asked of each element of a list.
    pub(super) fn within(&mut self, name: (usize, String), of: Type, bodies: &[&Syntax]) -> Vec<Typed> {
        if self.variables.len() >= MOST_COMPREHENSIONS {
            let message =
                format!("more than {MOST_COMPREHENSIONS} of all, exists, filter and map stand in each other");
            self.say(name.0, message);
            return bodies.iter().map(|body| poison(body.offset)).collect();
        }
        if name.1 == "event" {
            self.say(name.0, "the variable would hide `event`; choose another name");
        }
        self.variables.push((name.1, of));
        let checked = bodies.iter().map(|body| self.check(body)).collect();
        self.variables.pop();
        checked
    }
}

/// What an operator makes of two types.
fn result(operator: Operator, one: &Type, other: &Type) -> Option<Type> {
    let both = one.unite(other);
    let is = |of: &Type, wanted: &Type| of.fits(wanted);
    match operator {
        Operator::Equal | Operator::NotEqual => both.filter(Type::is_comparable).map(|_| Type::Bool),
        Operator::Less | Operator::LessOrEqual | Operator::Greater | Operator::GreaterOrEqual => {
            both.filter(Type::is_ordered).map(|_| Type::Bool)
        }
        Operator::In => {
            let Type::List(of) = other else { return (*other == Type::Unknown).then_some(Type::Bool) };
            of.unite(one).filter(Type::is_comparable).map(|_| Type::Bool)
        }
        Operator::Add => match (one, other) {
            (Type::Time, Type::Duration) | (Type::Duration, Type::Time) => Some(Type::Time),
            _ => both.filter(|of| {
                matches!(of, Type::Int | Type::Text | Type::Duration | Type::List(_) | Type::Unknown)
            }),
        },
        Operator::Subtract => match (one, other) {
            (Type::Time, Type::Time) => Some(Type::Duration),
            (Type::Time, Type::Duration) => Some(Type::Time),
            _ => both.filter(|of| matches!(of, Type::Int | Type::Duration | Type::Unknown)),
        },
        Operator::Multiply | Operator::Divide | Operator::Remainder => {
            (is(one, &Type::Int) && is(other, &Type::Int)).then_some(Type::Int)
        }
    }
}

/// What an operator goes with, for people.
fn expected(operator: Operator) -> &'static str {
    match operator {
        Operator::Equal | Operator::NotEqual => "two values of one type, no groups",
        Operator::Less | Operator::LessOrEqual | Operator::Greater | Operator::GreaterOrEqual => {
            "two values of one type, no lists"
        }
        Operator::In => "a value, and a list of its type",
        Operator::Add => "two of int, string, list or duration, or a timestamp and a duration",
        Operator::Subtract => "two of int, duration or timestamp, or a timestamp and a duration",
        Operator::Multiply | Operator::Divide | Operator::Remainder => "int and int",
    }
}

enum GroupField {
    Field(&'static Field),
    Group(&'static str),
}

/// What a name means in a group of `event`.
fn group_field(group: &str, name: &str) -> Option<GroupField> {
    EVENT.iter().find_map(|field| {
        let rest = field.path.strip_prefix(group)?.strip_prefix(name)?;
        if rest.is_empty() {
            return Some(GroupField::Field(field));
        }
        rest.starts_with('.').then_some(())?;
        let end = field.path.len() - rest.len() + 1;
        field.path.get(..end).map(GroupField::Group)
    })
}

/// The names in a group of `event`.
fn group_names(group: &str) -> Vec<&'static str> {
    let rest = EVENT.iter().filter_map(|field| field.path.strip_prefix(group));
    let mut names: Vec<&str> = rest.filter_map(|rest| rest.split('.').next()).collect();
    names.dedup();
    names
}

/// The field of an element of a list.
pub(super) fn member(record: Record, name: &str) -> Option<&'static Field> {
    record.fields().iter().find(|field| field.path == name)
}

/// The fields of a group.
pub(super) fn fields_of(group: &str) -> Vec<&'static Field> {
    EVENT.iter().filter(|field| field.path.starts_with(group)).collect()
}

pub(super) fn constant(offset: usize, value: Value<'static>, of: Type) -> Typed {
    (Node { offset, what: NodeKind::Constant(value) }, of)
}

fn constant_of(node: &Node) -> Option<Value<'static>> {
    if let NodeKind::Constant(value) = &node.what { Some(value.clone()) } else { None }
}

/// What stands where nothing could be checked: it is never evaluated, since a mistake was told or it is a group.
pub(super) fn poison(offset: usize) -> Typed {
    constant(offset, Value::Bool(false), Type::Unknown)
}
