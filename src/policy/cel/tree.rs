//! A checked expression: every name is resolved, every constant compiled.

use regex::Regex;
use time::UtcOffset;

use super::fields::Field;
use super::syntax::Operator;
use super::value::Value;
use crate::policy::pattern::Pattern;

/// A node, and where it is written.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) offset: usize,
    pub(super) what: NodeKind,
}

#[derive(Debug)]
pub(super) enum NodeKind {
    Constant(Value<'static>),
    /// A field of the event.
    Field(&'static Field),
    /// Whether a field of the event is there, or any field of a group.
    Has(Vec<&'static Field>),
    /// A field of an element of a list.
    Member(Box<Node>, &'static Field),
    /// Whether that is there.
    HasMember(Box<Node>, &'static Field),
    /// The element that a comprehension is at; the outermost has the number 0.
    Variable(usize),
    Not(Box<Node>),
    Negate(Box<Node>),
    And(Vec<Node>),
    Or(Vec<Node>),
    Choice(Box<[Node; 3]>),
    Binary(Operator, Box<[Node; 2]>),
    List(Vec<Node>),
    Index(Box<[Node; 2]>),
    Call(Function, Vec<Node>),
    Matches(Box<Node>, Regex),
    HostIn(Box<Node>, Vec<Pattern>),
    TimePart(TimePart, UtcOffset, Box<Node>),
    Comprehension(Macro, Box<Comprehension>),
}

/// A list, and what is asked of each element.
#[derive(Debug)]
pub(super) struct Comprehension {
    pub(super) list: Node,
    /// Of `map` with three arguments: which elements.
    pub(super) filter: Option<Node>,
    pub(super) body: Node,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Macro {
    All,
    Exists,
    ExistsOne,
    Filter,
    Map,
}

/// A function without a part that is constant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Function {
    Size,
    Contains,
    StartsWith,
    EndsWith,
    LowerAscii,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TimePart {
    Hours,
    Minutes,
    /// 0 is Sunday.
    DayOfWeek,
    /// From 1.
    Date,
    /// From 0.
    Month,
}

impl Node {
    /// The nodes directly below.
    pub(super) fn children(&self) -> Vec<&Self> {
        match &self.what {
            NodeKind::Constant(_) | NodeKind::Field(_) | NodeKind::Has(_) | NodeKind::Variable(_) => {
                Vec::new()
            }
            NodeKind::Member(of, _)
            | NodeKind::HasMember(of, _)
            | NodeKind::Not(of)
            | NodeKind::Negate(of)
            | NodeKind::Matches(of, _)
            | NodeKind::HostIn(of, _)
            | NodeKind::TimePart(_, _, of) => vec![of],
            NodeKind::And(nodes) | NodeKind::Or(nodes) | NodeKind::List(nodes) | NodeKind::Call(_, nodes) => {
                nodes.iter().collect()
            }
            NodeKind::Choice(nodes) => nodes.iter().collect(),
            NodeKind::Binary(_, nodes) | NodeKind::Index(nodes) => nodes.iter().collect(),
            NodeKind::Comprehension(_, of) => {
                [Some(&of.list), of.filter.as_ref(), Some(&of.body)].into_iter().flatten().collect()
            }
        }
    }

    /// The fields of the event that it reads, and where.
    pub(super) fn fields(&self, into: &mut Vec<(&'static Field, usize)>) {
        if let NodeKind::Field(field) = &self.what {
            into.push((field, self.offset));
        }
        if let NodeKind::Has(fields) = &self.what {
            into.extend(fields.iter().map(|field| (*field, self.offset)));
        }
        self.children().into_iter().for_each(|child| child.fields(into));
    }
}
