//! The tree of an expression as it is written, before its types are known.

/// A node, the offset that mistakes in it are told at, and how deep the tree below it is (from 1).
#[derive(Debug)]
pub(super) struct Syntax {
    pub(super) offset: usize,
    pub(super) depth: usize,
    pub(super) what: SyntaxKind,
}

#[derive(Debug)]
pub(super) enum SyntaxKind {
    Bool(bool),
    Int(i64),
    Text(String),
    Name(String),
    /// `a.b`
    Select(Box<Syntax>, String),
    /// `a[b]`
    Index(Box<[Syntax; 2]>),
    /// `f(x)`, or `a.f(x)`
    Call {
        target: Option<Box<Syntax>>,
        name: String,
        arguments: Vec<Syntax>,
    },
    List(Vec<Syntax>),
    Not(Box<Syntax>),
    Negate(Box<Syntax>),
    /// `a && b && c`
    And(Vec<Syntax>),
    Or(Vec<Syntax>),
    /// `a ? b : c`
    Choice(Box<[Syntax; 3]>),
    Binary(Operator, Box<[Syntax; 2]>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    In,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

impl Operator {
    /// As it is written.
    pub(super) fn mark(self) -> &'static str {
        match self {
            Self::Equal => "==",
            Self::NotEqual => "!=",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
            Self::In => "in",
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
            Self::Remainder => "%",
        }
    }

    /// How tightly it binds.
    pub(super) fn level(self) -> usize {
        match self {
            Self::Equal
            | Self::NotEqual
            | Self::Less
            | Self::LessOrEqual
            | Self::Greater
            | Self::GreaterOrEqual
            | Self::In => 0,
            Self::Add | Self::Subtract => 1,
            Self::Multiply | Self::Divide | Self::Remainder => 2,
        }
    }

    /// Reads one.
    pub(super) fn of(mark: &str) -> Option<Self> {
        const ALL: [Operator; 12] = [
            Operator::Equal,
            Operator::NotEqual,
            Operator::Less,
            Operator::LessOrEqual,
            Operator::Greater,
            Operator::GreaterOrEqual,
            Operator::In,
            Operator::Add,
            Operator::Subtract,
            Operator::Multiply,
            Operator::Divide,
            Operator::Remainder,
        ];
        ALL.into_iter().find(|operator| operator.mark() == mark)
    }
}
