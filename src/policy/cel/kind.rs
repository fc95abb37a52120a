//! Types of expressions, and how large their values get.

use std::fmt;

use super::fields::{FINDING, Field, TOOL};

/// A type. What failed to check has none, and fits everywhere, so that a mistake is told once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Type {
    Bool,
    Int,
    Text,
    Time,
    Duration,
    List(Box<Self>),
    /// The elements of `event.provider.tools` or `event.dlp`.
    Object(Record),
    /// A group of fields of `event`: its path, with a dot at its end where it is not empty.
    Group(&'static str),
    Unknown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Record {
    Tool,
    Finding,
}

impl Record {
    pub(super) fn fields(self) -> &'static [Field] {
        match self {
            Self::Tool => TOOL,
            Self::Finding => FINDING,
        }
    }
}

impl Type {
    pub(super) fn list(of: Self) -> Self {
        Self::List(Box::new(of))
    }

    /// The type that both are, where there is one.
    pub(super) fn unite(&self, other: &Self) -> Option<Self> {
        match (self, other) {
            (Self::Unknown, known) | (known, Self::Unknown) => Some(known.clone()),
            (Self::List(one), Self::List(other)) => one.unite(other).map(Self::list),
            (one, other) => (one == other).then(|| one.clone()),
        }
    }

    pub(super) fn fits(&self, other: &Self) -> bool {
        self.unite(other).is_some()
    }

    /// Whether `==` compares such values.
    pub(super) fn is_comparable(&self) -> bool {
        match self {
            Self::Object(_) | Self::Group(_) => false,
            Self::List(of) => of.is_comparable(),
            Self::Bool | Self::Int | Self::Text | Self::Time | Self::Duration | Self::Unknown => true,
        }
    }

    /// Whether `<` orders such values.
    pub(super) fn is_ordered(&self) -> bool {
        match self {
            Self::Object(_) | Self::Group(_) | Self::List(_) => false,
            Self::Bool | Self::Int | Self::Text | Self::Time | Self::Duration | Self::Unknown => true,
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool => f.write_str("bool"),
            Self::Int => f.write_str("int"),
            Self::Text => f.write_str("string"),
            Self::Time => f.write_str("timestamp"),
            Self::Duration => f.write_str("duration"),
            Self::List(of) => write!(f, "list({of})"),
            Self::Object(record) => {
                let names: Vec<&str> = record.fields().iter().map(|field| field.name()).collect();
                write!(f, "{{{}}}", names.join(", "))
            }
            Self::Group(path) => write!(f, "the group `event{}{}`", dot(path), path.trim_end_matches('.')),
            Self::Unknown => f.write_str("any"),
        }
    }
}

fn dot(path: &str) -> &'static str {
    if path.is_empty() { "" } else { "." }
}

/// How large a value gets: the bytes of a text, or the items of a list and how large each is.
#[derive(Debug, Clone, Default)]
pub(super) struct Extent {
    pub(super) most: u64,
    pub(super) item: Option<Box<Self>>,
}

impl Extent {
    /// A text of at most so many bytes.
    pub(super) fn text(most: u64) -> Self {
        Self { most, item: None }
    }

    pub(super) fn list(most: u64, item: Self) -> Self {
        Self { most, item: Some(Box::new(item)) }
    }

    /// How large an item gets.
    pub(super) fn item(&self) -> Self {
        self.item.as_deref().cloned().unwrap_or_default()
    }

    /// Large enough for either.
    pub(super) fn either(&self, other: &Self) -> Self {
        let item = match (&self.item, &other.item) {
            (Some(one), Some(other)) => Some(Box::new(one.either(other))),
            (one, other) => one.clone().or_else(|| other.clone()),
        };
        Self { most: self.most.max(other.most), item }
    }
}
