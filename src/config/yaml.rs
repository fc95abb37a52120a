//! A YAML document as a tree that knows where each key and value stands.

use std::fmt;

use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_yaml::{Location, Spanned};

use crate::problem::Problem;

/// More nodes than any settings file has; reached by alias bombs alone.
const MAX_NODES: usize = 10_000;
const MAX_DEPTH: usize = 32;

/// One value with the place where it begins.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) value: Value,
    pub(super) position: (usize, usize),
}

#[derive(Debug)]
pub(super) enum Value {
    Null,
    Bool(bool),
    /// A whole number that is not negative.
    Whole(u64),
    /// Any other number: nothing in the settings takes one.
    OtherNumber,
    Text(String),
    List(Vec<Node>),
    Map(Vec<(Key, Node)>),
}

/// A key of a map with the place where it stands.
#[derive(Debug)]
pub(super) struct Key {
    pub(super) name: String,
    pub(super) position: (usize, usize),
}

/// Reads one document. Syntax errors, duplicate keys and exceeded bounds are said with line and column.
pub(super) fn read(text: &str) -> Result<Node, Problem> {
    let options = serde_yaml::options! {
        with_snippet: false,
        // `Off`, `no` and `0755` are words here, as in YAML 1.2.
        strict_booleans: true,
        leading_zero_numbers_as_strings: true,
        underscored_numbers_as_strings: true,
        budget: serde_yaml::budget! { max_nodes: MAX_NODES, max_depth: MAX_DEPTH },
    };
    let spanned: Spanned<Value> = serde_yaml::from_str_with_options(text, options).map_err(|error| {
        let mut problem = Problem::at("", message(&error));
        problem.position = error.location().as_ref().map(place);
        problem
    })?;
    Ok(spanned.into())
}

/// The parser's sentence without the place that it appends, which a [`Problem`] says in front.
fn message(error: &serde_yaml::Error) -> String {
    let whole = error.without_snippet().render_with_formatter(&serde_yaml::UserMessageFormatter);
    let first = whole.lines().next().unwrap_or_default();
    let bare = first.rsplit_once(" at line ").map_or(first, |(sentence, _)| sentence);
    format!("this is no valid YAML: {bare}")
}

fn place(location: &Location) -> (usize, usize) {
    let number = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
    (number(location.line()), number(location.column()))
}

impl Value {
    /// What the value is, for a sentence that says what was found instead of what was expected.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Null => "nothing",
            Self::Bool(_) => "true or false",
            Self::Whole(_) | Self::OtherNumber => "a number",
            Self::Text(_) => "text",
            Self::List(_) => "a list",
            Self::Map(_) => "a map",
        }
    }
}

impl From<Spanned<Value>> for Node {
    fn from(spanned: Spanned<Value>) -> Self {
        Self { position: place(&spanned.referenced), value: spanned.value }
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
        f.write_str("a YAML value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        Value::deserialize(deserializer)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Whole(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(u64::try_from(value).map_or(Value::OtherNumber, Value::Whole))
    }

    fn visit_u128<E>(self, _: u128) -> Result<Value, E> {
        Ok(Value::OtherNumber)
    }

    fn visit_i128<E>(self, _: i128) -> Result<Value, E> {
        Ok(Value::OtherNumber)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Value, E> {
        Ok(Value::OtherNumber)
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<Value, E> {
        Ok(Value::Text(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::Text(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element::<Spanned<Value>>()? {
            list.push(item.into());
        }
        Ok(Value::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Vec::new();
        while let Some((key, value)) = entries.next_entry::<Spanned<String>, Spanned<Value>>()? {
            map.push((Key { position: place(&key.referenced), name: key.value }, value.into()));
        }
        Ok(Value::Map(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(node: &Node) -> &[(Key, Node)] {
        let Value::Map(entries) = &node.value else { panic!("{node:?}") };
        entries
    }

    #[test]
    fn keys_and_values_know_where_they_stand() {
        let node = read("a: 1\nb:\n  - x\n  - c: true\n").unwrap();
        let top = map(&node);
        assert_eq!((top[0].0.position, top[0].1.position), ((1, 1), (1, 4)));
        let Value::List(items) = &top[1].1.value else { panic!() };
        assert_eq!(items[0].position, (3, 5));
        assert_eq!(map(&items[1])[0].0.position, (4, 5));
        assert_eq!(map(&items[1])[0].1.position, (4, 8));
    }

    #[test]
    fn a_syntax_error_says_its_line() {
        let problem = read("a: [1, 2\nb: 3\n").unwrap_err();
        assert_eq!(problem.position.map(|(line, _)| line), Some(2), "{problem}");
        assert!(problem.message.starts_with("this is no valid YAML: "), "{problem}");
    }

    #[test]
    fn a_key_written_twice_is_refused() {
        let problem = read("a: 1\na: 2\n").unwrap_err();
        assert_eq!(problem.position, Some((2, 1)), "{problem}");
        assert!(problem.message.contains("duplicate"), "{problem}");
    }

    #[test]
    fn a_second_document_is_refused() {
        read("a: 1\n---\nb: 2\n").unwrap_err();
    }

    #[test]
    fn an_alias_bomb_is_refused() {
        let mut text = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
        for i in 1..8 {
            let refs = vec![format!("*a{}", i - 1); 10].join(", ");
            text.push_str(&format!("a{i}: &a{i} [{refs}]\n"));
        }
        read(&text).unwrap_err();
    }
}
