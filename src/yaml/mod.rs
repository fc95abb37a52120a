//! YAML as users write it, read into types: every mistake with its line, column and field, and all of them at once.

pub(crate) mod field;
pub(crate) mod origin;
pub(crate) mod part;
pub(crate) mod read;
mod tree;

pub(crate) use tree::{Key, Node, Position, Value, documents};
