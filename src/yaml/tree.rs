//! YAML as a tree whose every node knows its line and column, read within a budget.

use std::fmt;

use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_yaml::Spanned;
use serde_yaml::budget::BudgetBreach;
use serde_yaml::options::{DuplicateKeyPolicy, MergeKeyPolicy};

use crate::problem::Problem;

/// The largest file that is read.
const MAX_BYTES: usize = 1024 * 1024;
/// How many nodes a file may have, those that an alias repeats counted each time.
const MAX_NODES: usize = 10_000;
/// How deep nodes may nest: what is read is walked by recursion, and a file as it is meant needs less.
const MAX_DEPTH: usize = 32;

/// Line and column, from 1.
pub(crate) type Position = (usize, usize);

/// One node with its place.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) position: Position,
    pub(crate) value: Value,
}

impl Node {
    pub(crate) fn is_null(&self) -> bool {
        matches!(self.value, Value::Null)
    }

    /// The value of a key, where this is a map that has it.
    pub(crate) fn value_mut(&mut self, name: &str) -> Option<&mut Self> {
        let Value::Map(entries) = &mut self.value else { return None };
        entries.iter_mut().find(|(key, _)| key.text == name).map(|(_, node)| node)
    }
}

#[derive(Debug, Clone)]
pub(crate) enum Value {
    Null,
    Bool(bool),
    Unsigned(u64),
    Signed(i64),
    Float(f64),
    Text(String),
    /// An item that could not be read is taken out, and the others keep their numbers.
    List(Vec<Option<Node>>),
    /// In the order of the file, repeated keys included.
    Map(Vec<(Key, Node)>),
}

#[derive(Debug, Clone)]
pub(crate) struct Key {
    pub(crate) position: Position,
    pub(crate) text: String,
}

/// Reads the documents of a file; empty ones are left out.
pub(crate) fn documents(text: &str) -> Result<Vec<Node>, Problem> {
    if text.len() > MAX_BYTES {
        return Err(Problem::at("", format!("the file is {} bytes long; at most 1 MiB is read", text.len())));
    }
    let mut options = serde_yaml::options! {
        budget: serde_yaml::budget! { max_nodes: MAX_NODES, max_events: 4 * MAX_NODES, max_depth: MAX_DEPTH },
        duplicate_keys: DuplicateKeyPolicy::PassThrough,
        merge_keys: MergeKeyPolicy::Error,
        strict_booleans: true,
        with_snippet: false,
    };
    options.alias_limits.max_total_replayed_events = MAX_NODES;
    serde_yaml::from_multiple_with_options(text, options).map_err(|error| explain(&error))
}

/// The parser's complaint in our words where a policy's author is likely to meet it.
fn explain(error: &serde_yaml::Error) -> Problem {
    use serde_yaml::Error as E;
    let mut inner = error.without_snippet();
    while let E::AliasError { error, .. } = inner {
        inner = error;
    }
    #[expect(clippy::wildcard_enum_match_arm, reason = "the parser's enum is open; its own words do for the rest")]
    let message = match inner {
        E::UnknownAnchor { .. } => {
            "a value that begins with `*` is an alias in YAML: put the pattern in quotes, as in \"*.example.com\""
                .to_owned()
        }
        E::Budget { breach: BudgetBreach::Depth { .. }, .. } => {
            format!("the file nests deeper than {MAX_DEPTH} lists and mappings")
        }
        E::Budget { .. } | E::AliasReplayLimitExceeded { .. } => {
            format!("the file is too large or repeats itself by aliases: at most {MAX_NODES} nodes are read")
        }
        other => format!("not valid YAML: {}", bare(&other.to_string())),
    };
    let mut problem = Problem::at("", message);
    problem.position = error.location().map(|location| position(&location));
    problem
}

/// The parser's message without what it adds: excerpts below it, and the place, which a problem has already.
fn bare(text: &str) -> &str {
    let line = text.lines().next().unwrap_or_default();
    line.split_once(" at line ").map_or(line, |(message, _)| message)
}

fn position(location: &serde_yaml::Location) -> Position {
    let number = |value: u64| usize::try_from(value).unwrap_or(usize::MAX);
    (number(location.line()), number(location.column()))
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<Value>::deserialize(deserializer)?;
        Ok(Self { position: position(&spanned.referenced), value: spanned.value })
    }
}

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<String>::deserialize(deserializer)?;
        Ok(Self { position: position(&spanned.referenced), text: spanned.value })
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValueVisitor)
    }
}

struct ValueVisitor;

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Unsigned(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(u64::try_from(value).map_or(Value::Signed(value), Value::Unsigned))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Value::Float(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::Text(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::Text(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(node) = items.next_element()? {
            list.push(Some(node));
        }
        Ok(Value::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Vec::new();
        while let Some(entry) = entries.next_entry()? {
            map.push(entry);
        }
        Ok(Value::Map(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_know_their_places() {
        let nodes = documents("a: 1\nb:\n  - x\n  - {c: true}\n---\nd: ~\n").unwrap();
        assert_eq!(nodes.len(), 2);
        let Value::Map(entries) = &nodes[0].value else { panic!("a mapping") };
        assert_eq!(entries[1].0.position, (2, 1));
        let Value::List(items) = &entries[1].1.value else { panic!("a list") };
        assert_eq!(items[0].as_ref().unwrap().position, (3, 5));
        assert_eq!(items[1].as_ref().unwrap().position, (4, 5));
    }

    #[test]
    fn an_alias_bomb_is_stopped_early() {
        let mut text = String::from("a0: &a0 [x, x, x, x, x, x, x, x]\n");
        for level in 1..9 {
            let alias = format!("*a{}", level - 1);
            text += &format!("a{level}: &a{level} [{}]\n", [alias.as_str(); 8].join(", "));
        }
        let problem = documents(&text).unwrap_err();
        assert!(problem.message.contains("10000 nodes"), "{problem}");
    }

    #[test]
    fn an_unquoted_wildcard_is_explained() {
        let problem = documents("hosts: [*.example.com]\n").unwrap_err();
        assert!(problem.message.contains("quotes"), "{problem}");
        assert_eq!(problem.position.map(|(line, _)| line), Some(1));
    }

    #[test]
    fn a_file_over_its_bound_is_not_read() {
        assert!(documents(&"# x\n".repeat(300_000)).unwrap_err().message.contains("1 MiB"));
    }

    #[test]
    fn what_nests_without_end_is_told_before_it_is_walked() {
        let nested = |depth: usize| documents(&format!("a: {}{}", "[".repeat(depth), "]".repeat(depth)));
        assert!(nested(MAX_DEPTH - 1).is_ok());
        assert!(nested(MAX_DEPTH).unwrap_err().message.contains("32 lists"), "{:?}", nested(MAX_DEPTH));
        assert!(nested(100_000).is_err(), "the parser itself gives up");
    }

    #[test]
    fn many_nodes_are_too_many() {
        let text = format!("a: [{}]", "x, ".repeat(MAX_NODES));
        assert!(documents(&text).unwrap_err().message.contains("10000 nodes"));
    }
}
