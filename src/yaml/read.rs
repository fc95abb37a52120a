//! Reads a typed value out of a YAML tree, and goes on after a mistake, so that all of them are told at once.

use std::fmt;
use std::path::Path;

use serde::de::{
    DeserializeOwned, DeserializeSeed, Error, Expected, IntoDeserializer, MapAccess, SeqAccess, Unexpected,
    Visitor,
};
use serde::{Deserialize, Deserializer, forward_to_deserialize_any};

use super::{Key, Node, Position, Value, field};
use crate::problem::Problem;

/// How many mistakes of one document are told.
const MAX_FAULTS: usize = 50;

/// The name under which a type of a path asks for [`Context::directory`]: it is given the bytes of the joined path.
pub(crate) const FILE_PATH: &str = "$postern::file_path";
/// The name under which a type of text asks for `{fromEnv: VARIABLE}` too: a variable is given as a newtype.
pub(crate) const TEXT_OR_VARIABLE: &str = "$postern::text_or_variable";

/// Looks up a variable of the environment.
pub type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

/// What a file is read with besides its text. Policies need none of it.
#[derive(Clone, Copy)]
pub(crate) struct Context<'a> {
    /// Relative paths are relative to it.
    pub(crate) directory: &'a Path,
    /// Where `fromEnv` looks.
    pub(crate) environment: Environment<'a>,
    /// Whether a key with nothing after its colon is as if it were not written.
    pub(crate) is_lenient: bool,
}

impl Default for Context<'_> {
    fn default() -> Self {
        Self { directory: Path::new(""), environment: &|_| None, is_lenient: false }
    }
}

/// A mistake that was found while reading, and the place it stands in.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) kind: FaultKind,
    /// The field, as in `spec.tools[2].name`.
    pub(crate) path: String,
    pub(crate) position: Position,
    pub(crate) message: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FaultKind {
    /// The value is wrong.
    Value,
    /// The field itself is unknown; these are known.
    UnknownField(&'static [&'static str]),
    /// The field has no value and needs one.
    MissingField,
    /// The value stands in a variable that the environment does not have.
    UnsetVariable,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Key(String),
    Item(usize),
}

impl Fault {
    fn new(kind: FaultKind, steps: &[Step], position: Position, message: String) -> Self {
        let path = steps.iter().fold(String::new(), |path, step| match step {
            Step::Key(name) => field::key(&path, name),
            Step::Item(number) => field::item(&path, *number),
        });
        Self { kind, path, position, message }
    }
}

impl From<Fault> for Problem {
    fn from(fault: Fault) -> Self {
        Self { position: Some(fault.position), ..Self::at(fault.path, fault.message) }
    }
}

/// Reads `T`. What could not be read is taken out of the tree, and the rest is read again without it:
/// serde alone stops at the first mistake.
pub(crate) fn read<T: DeserializeOwned>(root: &mut Node, context: &Context<'_>) -> (Option<T>, Vec<Fault>) {
    let mut faults = Vec::new();
    take_repeated(root, &mut Vec::new(), &mut faults);
    while faults.len() < MAX_FAULTS {
        match T::deserialize(Reader { node: &*root, context }) {
            Ok(value) => return (Some(value), faults),
            Err(mut stop) => {
                stop.steps.reverse();
                let position = stop.position.unwrap_or(root.position);
                let is_missing = stop.kind == FaultKind::MissingField;
                // A field that is missing cannot be taken out: its mapping is.
                let kept = stop.steps.len() - usize::from(is_missing);
                let removed = remove(root, stop.steps.get(..kept).unwrap_or_default());
                let fault = Fault::new(stop.kind, &stop.steps, position, stop.message);
                // A field whose value was taken out is missing, which is told already.
                if !(is_missing && faults.iter().any(|told: &Fault| told.path == fault.path)) {
                    faults.push(fault);
                }
                if !removed {
                    break;
                }
            }
        }
    }
    (None, faults)
}

/// Takes out every key that its mapping already has.
fn take_repeated(node: &mut Node, above: &mut Vec<Step>, faults: &mut Vec<Fault>) {
    match &mut node.value {
        Value::Map(entries) => {
            let mut seen = std::collections::HashSet::new();
            entries.retain(|(key, _)| {
                let fresh = seen.insert(key.text.clone());
                if !fresh {
                    let mut steps = above.clone();
                    steps.push(Step::Key(key.text.clone()));
                    let message = "the field is written twice".to_owned();
                    faults.push(Fault::new(FaultKind::Value, &steps, key.position, message));
                }
                fresh
            });
            for (key, value) in entries {
                above.push(Step::Key(key.text.clone()));
                take_repeated(value, above, faults);
                above.pop();
            }
        }
        Value::List(items) => {
            for (number, item) in items.iter_mut().enumerate() {
                above.push(Step::Item(number));
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
fn remove(node: &mut Node, steps: &[Step]) -> bool {
    let Some((first, rest)) = steps.split_first() else { return false };
    match (&mut node.value, first) {
        (Value::Map(entries), Step::Key(name)) => {
            let Some(at) = entries.iter().position(|(key, _)| key.text == *name) else { return false };
            if rest.is_empty() {
                entries.remove(at);
                return true;
            }
            entries.get_mut(at).is_some_and(|(_, value)| remove(value, rest))
        }
        (Value::List(items), Step::Item(number)) => {
            let Some(item) = items.get_mut(*number) else { return false };
            if rest.is_empty() {
                return item.take().is_some();
            }
            item.as_mut().is_some_and(|item| remove(item, rest))
        }
        (_, Step::Key(_) | Step::Item(_)) => false,
    }
}

/// The error on its way out: its steps are gathered from the inside.
#[derive(Debug)]
pub(crate) struct Stop {
    steps: Vec<Step>,
    position: Option<Position>,
    message: String,
    kind: FaultKind,
}

impl Stop {
    fn says(message: String) -> Self {
        Self { steps: Vec::new(), position: None, message, kind: FaultKind::Value }
    }

    fn through(mut self, step: Step, position: Position) -> Self {
        self.steps.push(step);
        self.position.get_or_insert(position);
        self
    }
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Stop {}

impl Error for Stop {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::says(message.to_string())
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        let expected = expected.to_string();
        let wanted = match expected.as_str() {
            "i64" | "u64" => "a whole number",
            "a sequence" => "a list",
            "a map" => "a mapping",
            other if other.starts_with("struct ") => "a mapping",
            other => other,
        };
        let plain = matches!(
            found,
            Unexpected::Bool(_) | Unexpected::Unsigned(_) | Unexpected::Signed(_) | Unexpected::Float(_)
        );
        let hint = if plain && matches!(wanted, "a string" | "a path") { ": put it in quotes" } else { "" };
        Self::says(format!("expected {wanted}, found {}{hint}", describe(found)))
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::invalid_type(found, expected)
    }

    fn unknown_variant(found: &str, expected: &'static [&'static str]) -> Self {
        Self::says(format!("unknown value {}; expected {}", field::quoted(found), alternatives(expected)))
    }

    fn unknown_field(_: &str, expected: &'static [&'static str]) -> Self {
        let message = format!("unknown field; expected {}", alternatives(expected));
        Self { kind: FaultKind::UnknownField(expected), ..Self::says(message) }
    }

    fn missing_field(name: &'static str) -> Self {
        let steps = vec![Step::Key(name.to_owned())];
        Self { kind: FaultKind::MissingField, steps, ..Self::says("is required".to_owned()) }
    }
}

/// What was found, in the words of YAML.
fn describe(found: Unexpected<'_>) -> String {
    #[expect(clippy::wildcard_enum_match_arm, reason = "serde's words do for what YAML cannot hold")]
    match found {
        Unexpected::Unit | Unexpected::Option => "nothing".to_owned(),
        Unexpected::Seq => "a list".to_owned(),
        Unexpected::Map => "a mapping".to_owned(),
        // It may be a URL with a password.
        Unexpected::Str(text) if text.contains('@') => "text".to_owned(),
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

/// A node that is being read.
#[derive(Clone, Copy)]
struct Reader<'de, 'c> {
    node: &'de Node,
    context: &'c Context<'c>,
}

/// `{fromEnv: VARIABLE}`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Variable {
    #[serde(rename = "fromEnv", deserialize_with = "variable_name")]
    name: String,
}

fn variable_name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    match String::deserialize(deserializer)? {
        name if name.is_empty() => Err(Error::custom("is empty")),
        name => Ok(name),
    }
}

impl<'de, 'c> Reader<'de, 'c> {
    fn entries(self, entries: &'de [(Key, Node)], known: &'static [&'static str]) -> Entries<'de, 'c> {
        Entries { rest: entries.iter(), value: None, known, context: self.context }
    }

    fn variable<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Stop> {
        let Variable { name } = Variable::deserialize(self)?;
        match (self.context.environment)(&name).filter(|value| !value.is_empty()) {
            Some(value) => visitor.visit_newtype_struct(value.into_deserializer()),
            None => Err(Stop {
                kind: FaultKind::UnsetVariable,
                ..Stop::says(format!(
                    "takes its value from the environment variable {name}, which is not set"
                ))
            }),
        }
    }
}

impl<'de> Deserializer<'de> for Reader<'de, '_> {
    type Error = Stop;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Stop> {
        match &self.node.value {
            Value::Null => visitor.visit_unit(),
            Value::Bool(value) => visitor.visit_bool(*value),
            Value::Unsigned(value) => visitor.visit_u64(*value),
            Value::Signed(value) => visitor.visit_i64(*value),
            Value::Float(value) => visitor.visit_f64(*value),
            Value::Text(value) => visitor.visit_borrowed_str(value),
            Value::List(items) => visitor.visit_seq(Items { rest: items, number: 0, context: self.context }),
            Value::Map(entries) => visitor.visit_map(self.entries(entries, &[])),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Stop> {
        match self.node.value {
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
    ) -> Result<V::Value, Stop> {
        if let Value::Text(word) = &self.node.value {
            return visitor.visit_enum(word.as_str().into_deserializer());
        }
        Err(Stop::says(format!("expected {}", alternatives(variants))))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Stop> {
        match (&self.node.value, self.context.is_lenient) {
            (Value::Map(entries), true) => visitor.visit_map(self.entries(entries, fields)),
            // serde would take the items for the fields, in their order.
            (Value::List(_), _) => Err(Stop::invalid_type(Unexpected::Seq, &visitor)),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Stop> {
        match (name, &self.node.value) {
            (FILE_PATH, Value::Text(text)) if text.is_empty() => Err(Stop::says("is empty".to_owned())),
            (FILE_PATH, Value::Text(text)) => {
                let path = self.context.directory.join(text);
                visitor.visit_byte_buf(path.into_os_string().into_encoded_bytes())
            }
            (TEXT_OR_VARIABLE, Value::Map(_)) => self.variable(visitor),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Stop> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf
        unit unit_struct seq tuple tuple_struct map identifier
    }
}

struct Items<'de, 'c> {
    rest: &'de [Option<Node>],
    number: usize,
    context: &'c Context<'c>,
}

impl<'de> SeqAccess<'de> for Items<'de, '_> {
    type Error = Stop;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Stop> {
        while let Some((item, rest)) = self.rest.split_first() {
            let number = self.number;
            (self.rest, self.number) = (rest, number + 1);
            if let Some(node) = item {
                let value = seed.deserialize(Reader { node, context: self.context });
                return value.map(Some).map_err(|stop| stop.through(Step::Item(number), node.position));
            }
        }
        Ok(None)
    }
}

struct Entries<'de, 'c> {
    rest: std::slice::Iter<'de, (Key, Node)>,
    value: Option<&'de (Key, Node)>,
    /// The fields that are skipped where they have no value.
    known: &'static [&'static str],
    context: &'c Context<'c>,
}

impl<'de> MapAccess<'de> for Entries<'de, '_> {
    type Error = Stop;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Stop> {
        let known = self.known;
        let is_written = |(key, node): &&(Key, Node)| !node.is_null() || !known.contains(&key.text.as_str());
        self.value = self.rest.by_ref().find(is_written);
        let Some((key, _)) = self.value else { return Ok(None) };
        let name = seed.deserialize(key.text.as_str().into_deserializer());
        name.map(Some).map_err(|stop: Stop| stop.through(Step::Key(key.text.clone()), key.position))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Stop> {
        let (key, node) = self.value.take().ok_or_else(|| Stop::says("a value without a key".to_owned()))?;
        let value = seed.deserialize(Reader { node, context: self.context });
        value.map_err(|stop| stop.through(Step::Key(key.text.clone()), node.position))
    }
}
