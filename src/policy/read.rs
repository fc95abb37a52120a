//! Reads a typed value out of a YAML tree, and goes on after a mistake, so that all of them are told at once.

use std::fmt;

use serde::de::{
    DeserializeOwned, DeserializeSeed, Error, Expected, IntoDeserializer, MapAccess, SeqAccess, Unexpected,
    Visitor,
};
use serde::{Deserializer, forward_to_deserialize_any};

use super::field;
use crate::yaml::{Key, Node, Position, Value};

/// How many mistakes of one document are told.
const MAX_FAULTS: usize = 50;

/// A mistake that was found while reading, and the place it stands in.
#[derive(Debug)]
pub(super) struct Fault {
    /// From the outermost field inwards.
    pub(super) steps: Vec<PathStep>,
    pub(super) position: Position,
    pub(super) message: String,
    /// Whether the field itself is unknown, rather than its value wrong.
    pub(super) unknown: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PathStep {
    Key(String),
    Item(usize),
}

/// Reads `T`. What could not be read is taken out of the tree, and the rest is read again without it:
/// serde alone stops at the first mistake.
pub(super) fn read<T: DeserializeOwned>(root: &mut Node) -> (Option<T>, Vec<Fault>) {
    let mut faults = Vec::new();
    take_repeated(root, &mut Vec::new(), &mut faults);
    while faults.len() < MAX_FAULTS {
        match T::deserialize(&*root) {
            Ok(value) => return (Some(value), faults),
            Err(mut stop) => {
                stop.steps.reverse();
                let position = stop.position.unwrap_or(root.position);
                let removed = remove(root, &stop.steps);
                let ReadError { steps, message, unknown, .. } = stop;
                faults.push(Fault { steps, position, message, unknown });
                if !removed {
                    break;
                }
            }
        }
    }
    (None, faults)
}

/// Takes out every key that its mapping already has.
fn take_repeated(node: &mut Node, above: &mut Vec<PathStep>, faults: &mut Vec<Fault>) {
    match &mut node.value {
        Value::Map(entries) => {
            let mut seen = std::collections::HashSet::new();
            entries.retain(|(key, _)| {
                let fresh = seen.insert(key.text.clone());
                if !fresh {
                    let mut steps = above.clone();
                    steps.push(PathStep::Key(key.text.clone()));
                    let message = "the field is written twice".to_owned();
                    faults.push(Fault { steps, position: key.position, message, unknown: false });
                }
                fresh
            });
            for (key, value) in entries {
                above.push(PathStep::Key(key.text.clone()));
                take_repeated(value, above, faults);
                above.pop();
            }
        }
        Value::List(items) => {
            for (number, item) in items.iter_mut().enumerate() {
                above.push(PathStep::Item(number));
                if let Some(item) = item {
                    take_repeated(item, above, faults);
                }
                above.pop();
            }
        }
        Value::Null
        | Value::Bool(_)
        | Value::Unsigned(_)
        | Value::Signed(_)
        | Value::Float(_)
        | Value::Text(_) => {}
    }
}

/// Takes a node out of the tree; false where that is the root or is not there.
fn remove(node: &mut Node, steps: &[PathStep]) -> bool {
    let Some((first, rest)) = steps.split_first() else { return false };
    match (&mut node.value, first) {
        (Value::Map(entries), PathStep::Key(name)) => {
            let Some(at) = entries.iter().position(|(key, _)| key.text == *name) else { return false };
            if rest.is_empty() {
                entries.remove(at);
                return true;
            }
            entries.get_mut(at).is_some_and(|(_, value)| remove(value, rest))
        }
        (Value::List(items), PathStep::Item(number)) => {
            let Some(item) = items.get_mut(*number) else { return false };
            if rest.is_empty() {
                return item.take().is_some();
            }
            item.as_mut().is_some_and(|item| remove(item, rest))
        }
        (_, PathStep::Key(_) | PathStep::Item(_)) => false,
    }
}

/// The error on its way out: its steps are gathered from the inside.
#[derive(Debug)]
pub(crate) struct ReadError {
    steps: Vec<PathStep>,
    position: Option<Position>,
    message: String,
    unknown: bool,
}

impl ReadError {
    fn says(message: String) -> Self {
        Self { steps: Vec::new(), position: None, message, unknown: false }
    }

    fn through(mut self, step: PathStep, position: Position) -> Self {
        self.steps.push(step);
        self.position.get_or_insert(position);
        self
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ReadError {}

impl Error for ReadError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::says(message.to_string())
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        let expected = expected.to_string();
        let wanted = match expected.as_str() {
            "i64" => "a whole number",
            "a sequence" => "a list",
            "a map" => "a mapping",
            other => other,
        };
        let plain = matches!(
            found,
            Unexpected::Bool(_) | Unexpected::Unsigned(_) | Unexpected::Signed(_) | Unexpected::Float(_)
        );
        let hint = if plain && wanted == "a string" { ": put it in quotes" } else { "" };
        Self::says(format!("expected {wanted}, found {}{hint}", describe(found)))
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::invalid_type(found, expected)
    }

    fn unknown_variant(found: &str, expected: &'static [&'static str]) -> Self {
        Self::says(format!("unknown value {}; expected {}", field::quoted(found), alternatives(expected)))
    }

    fn unknown_field(_: &str, expected: &'static [&'static str]) -> Self {
        let mut stop = Self::says(format!("unknown field; expected {}", alternatives(expected)));
        stop.unknown = true;
        stop
    }
}

/// What was found, in the words of YAML.
fn describe(found: Unexpected<'_>) -> String {
    #[expect(clippy::wildcard_enum_match_arm, reason = "serde's words do for what YAML cannot hold")]
    match found {
        Unexpected::Unit | Unexpected::Option => "nothing".to_owned(),
        Unexpected::Seq => "a list".to_owned(),
        Unexpected::Map => "a mapping".to_owned(),
        Unexpected::Str(text) => format!("the text {}", field::quoted(text)),
        Unexpected::Unsigned(number) => format!("the number {number}"),
        Unexpected::Signed(number) => format!("the number {number}"),
        Unexpected::Bool(value) => format!("the boolean {value}"),
        other => other.to_string(),
    }
}

/// `A`, `A or B`, `A, B or C`.
fn alternatives(words: &[&str]) -> String {
    match words.split_last() {
        Some((last, [])) => (*last).to_owned(),
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
        None => "no field at all".to_owned(),
    }
}

impl<'de> Deserializer<'de> for &'de Node {
    type Error = ReadError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match &self.value {
            Value::Null => visitor.visit_unit(),
            Value::Bool(value) => visitor.visit_bool(*value),
            Value::Unsigned(value) => visitor.visit_u64(*value),
            Value::Signed(value) => visitor.visit_i64(*value),
            Value::Float(value) => visitor.visit_f64(*value),
            Value::Text(value) => visitor.visit_borrowed_str(value),
            Value::List(items) => visitor.visit_seq(ListItems { rest: items, number: 0 }),
            Value::Map(entries) => visitor.visit_map(MapEntries { rest: entries.iter(), value: None }),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match self.value {
            Value::Null => visitor.visit_none(),
            Value::Bool(_)
            | Value::Unsigned(_)
            | Value::Signed(_)
            | Value::Float(_)
            | Value::Text(_)
            | Value::List(_)
            | Value::Map(_) => visitor.visit_some(self),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        if let Value::Text(word) = &self.value {
            return visitor.visit_enum(word.as_str().into_deserializer());
        }
        Err(ReadError::says(format!("expected {}", alternatives(variants))))
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf
        unit unit_struct newtype_struct seq tuple tuple_struct map struct identifier
    }
}

struct ListItems<'de> {
    rest: &'de [Option<Node>],
    number: usize,
}

impl<'de> SeqAccess<'de> for ListItems<'de> {
    type Error = ReadError;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, ReadError> {
        while let Some((item, rest)) = self.rest.split_first() {
            let number = self.number;
            (self.rest, self.number) = (rest, number + 1);
            if let Some(node) = item {
                let value = seed.deserialize(node);
                return value.map(Some).map_err(|stop| stop.through(PathStep::Item(number), node.position));
            }
        }
        Ok(None)
    }
}

struct MapEntries<'de> {
    rest: std::slice::Iter<'de, (Key, Node)>,
    value: Option<&'de (Key, Node)>,
}

impl<'de> MapAccess<'de> for MapEntries<'de> {
    type Error = ReadError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, ReadError> {
        self.value = self.rest.next();
        let Some((key, _)) = self.value else { return Ok(None) };
        let name = seed.deserialize(key.text.as_str().into_deserializer());
        name.map(Some).map_err(|stop: ReadError| stop.through(PathStep::Key(key.text.clone()), key.position))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, ReadError> {
        let (key, node) =
            self.value.take().ok_or_else(|| ReadError::says("a value without a key".to_owned()))?;
        seed.deserialize(node).map_err(|stop| stop.through(PathStep::Key(key.text.clone()), node.position))
    }
}
