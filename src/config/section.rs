//! Reads a tree of settings key by key and gathers everything that is wrong with it.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::quantity;
use crate::problem::Problem;
use crate::yaml::{Key, Node, Position, Value};

/// What `fromEnv` looks a variable up in: whoever reads settings brings it along.
pub type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Where problems are gathered while a file is read.
pub(super) struct Findings<'e> {
    /// The directory that relative paths are relative to.
    base: PathBuf,
    environment: Environment<'e>,
    problems: RefCell<Vec<Problem>>,
    /// Variables that the settings want and the environment does not have.
    unset: RefCell<Vec<Problem>>,
}

/// A map whose keys are known: each is asked for by name, and what nobody asked for is a problem.
pub(super) struct Section<'n> {
    findings: &'n Findings<'n>,
    path: String,
    /// Where it begins, said of a key that is missing from it.
    position: Option<Position>,
    entries: &'n [(Key, Node)],
    known: Vec<&'static str>,
}

/// The value of a key, or of an element of a list, whether it is written or not.
pub(super) struct Field<'n> {
    findings: &'n Findings<'n>,
    path: String,
    /// Where the value stands, or where it is missing.
    position: Option<Position>,
    node: Option<&'n Node>,
}

impl<'e> Findings<'e> {
    pub(super) fn new(base: &Path, environment: Environment<'e>) -> Self {
        Self { base: base.to_owned(), environment, problems: RefCell::default(), unset: RefCell::default() }
    }

    /// The whole document as a field.
    pub(super) fn document<'n>(&'n self, node: &'n Node) -> Field<'n> {
        Field::of(self, String::new(), node)
    }

    /// What was found, and the variables that are not set, each in the order of the file.
    pub(super) fn into_problems(self) -> (Vec<Problem>, Vec<Problem>) {
        let [problems, unset] = [self.problems, self.unset].map(|found| {
            let mut found = found.into_inner();
            found.sort_by_key(|problem| problem.position);
            found
        });
        (problems, unset)
    }

    fn add(&self, path: &str, position: Option<Position>, message: String) {
        let problem = Problem { position, ..Problem::at(path, message) };
        self.problems.borrow_mut().push(problem);
    }
}

impl<'n> Section<'n> {
    /// The value of a key of this section.
    pub(super) fn field(&mut self, name: &'static str) -> Field<'n> {
        self.known.push(name);
        let path = joined(&self.path, name);
        match self.entries.iter().find(|(key, _)| key.text == name) {
            Some((_, node)) => Field::of(self.findings, path, node),
            None => Field { findings: self.findings, path, position: self.position, node: None },
        }
    }

    /// Refuses a key that the design has and this build does not.
    pub(super) fn refuse_unsupported(&mut self, name: &'static str) {
        self.known.push(name);
        if let Some((key, _)) = self.entries.iter().find(|(key, _)| key.text == name) {
            let message = "not supported yet by this build; remove it".to_owned();
            self.findings.add(&joined(&self.path, name), Some(key.position), message);
        }
    }

    /// Says which keys nobody asked for, and which stand here twice.
    fn close(self) {
        let mut seen = BTreeSet::new();
        for (key, _) in self.entries {
            let known = self.known.contains(&key.text.as_str());
            let path = joined(&self.path, &key.text);
            match (known, seen.insert(&key.text)) {
                (true, true) => {}
                (true, false) => self.findings.add(&path, Some(key.position), "is written twice".to_owned()),
                (false, _) => {
                    let message = format!("unknown key; expected one of: {}", self.known.join(", "));
                    let problem = Problem::at(path, message);
                    let position = Some(key.position);
                    self.findings.problems.borrow_mut().push(Problem {
                        position,
                        is_unknown: true,
                        ..problem
                    });
                }
            }
        }
    }
}

impl<'n> Field<'n> {
    /// A value that stands in the file; nothing after a colon is as if not written.
    fn of(findings: &'n Findings<'n>, path: String, node: &'n Node) -> Self {
        Self { findings, path, position: Some(node.position), node: Some(node).filter(|n| !n.is_null()) }
    }

    pub(super) fn is_written(&self) -> bool {
        self.node.is_some()
    }

    /// Says that what stands here is wrong.
    pub(super) fn reject(&self, message: impl Into<String>) {
        self.findings.add(&self.path, self.position, message.into());
    }

    /// Reads a map with known keys. Without a value, and with one that is no map, every key is as if not written.
    pub(super) fn section<T>(&self, read: impl FnOnce(&mut Section<'n>) -> T) -> T {
        let entries: &[(Key, Node)] = match self.node.map(|node| &node.value) {
            Some(Value::Map(entries)) => entries,
            None => &[],
            Some(other) => {
                self.expected("a map", other);
                &[]
            }
        };
        let mut section = Section {
            findings: self.findings,
            path: self.path.clone(),
            position: self.position,
            entries,
            known: Vec::new(),
        };
        let read = read(&mut section);
        section.close();
        read
    }

    /// Reads a list, each element by `read`, which answers `None` where it has rejected it.
    pub(super) fn list<T>(&self, read: impl Fn(&Self) -> Option<T>) -> Vec<T> {
        let Some(value) = self.node.map(|node| &node.value) else { return Vec::new() };
        let Value::List(items) = value else {
            self.expected("a list", value);
            return Vec::new();
        };
        let elements = items.iter().enumerate().filter_map(|(i, item)| {
            let element = Self::of(self.findings, format!("{}[{i}]", self.path), item.as_ref()?);
            read(element.required()?)
        });
        elements.collect()
    }

    /// Reads a map whose keys are the user's, each by `read`; two keys that mean the same are a problem.
    pub(super) fn map<K: Ord, T>(&self, read: impl Fn(&str, &Self) -> Option<(K, T)>) -> BTreeMap<K, T> {
        let Some(value) = self.node.map(|node| &node.value) else { return BTreeMap::new() };
        let Value::Map(entries) = value else {
            self.expected("a map", value);
            return BTreeMap::new();
        };
        let mut map = BTreeMap::new();
        for (key, node) in entries {
            let element = Self::of(self.findings, format!("{}[{:?}]", self.path, key.text), node);
            let entry = element.required().and_then(|element| read(&key.text, element));
            if entry.is_some_and(|(name, value)| map.insert(name, value).is_some()) {
                element.reject("another key names the same");
            }
        }
        map
    }

    /// The field itself; a problem where nothing stands.
    fn required(&self) -> Option<&Self> {
        if self.node.is_none() {
            self.reject("has no value");
        }
        self.node.map(|_| self)
    }

    /// Reads text by `parse`, whose error says what is wrong with it.
    pub(super) fn parsed<T>(&self, parse: impl FnOnce(&str) -> Result<T, String>) -> Option<T> {
        match parse(self.text()?) {
            Ok(value) => Some(value),
            Err(message) => {
                self.reject(message);
                None
            }
        }
    }

    /// Says that a value is missing here.
    pub(super) fn require(&self, what: &str) {
        if !self.is_written() {
            self.reject(format!("is required{what}"));
        }
    }

    /// Reads text that is not empty.
    pub(super) fn text(&self) -> Option<&'n str> {
        let text = self.text_or_empty()?;
        if text.is_empty() {
            self.reject("is empty");
            return None;
        }
        Some(text)
    }

    /// Reads text, or `{fromEnv: VARIABLE}`, which stands for what the variable holds. Nothing where it is not set,
    /// which is noted and no problem by itself: the file may be looked at elsewhere than where it is used.
    pub(super) fn text_or_variable(&self) -> Option<Cow<'n, str>> {
        if !self.is_map() {
            return self.text().map(Cow::Borrowed);
        }
        let name = self.section(|s| {
            let name = s.field("fromEnv");
            name.require(": the name of an environment variable");
            name.text()
        })?;
        let value = (self.findings.environment)(name).filter(|value| !value.is_empty());
        if value.is_none() {
            let message = format!("takes its value from the environment variable {name}, which is not set");
            let unset = Problem { position: self.position, ..Problem::at(&self.path, message) };
            self.findings.unset.borrow_mut().push(unset);
        }
        value.map(Cow::Owned)
    }

    pub(super) fn text_or_empty(&self) -> Option<&'n str> {
        let value = &self.node?.value;
        if let Value::Text(text) = value {
            return Some(text);
        }
        self.expected("text", value);
        None
    }

    /// Whether a list without elements stands here.
    pub(super) fn is_empty_list(&self) -> bool {
        self.node.is_some_and(|node| matches!(&node.value, Value::List(items) if items.is_empty()))
    }

    /// Whether a map stands here, for keys that take either a text or a map.
    pub(super) fn is_map(&self) -> bool {
        self.node.is_some_and(|node| matches!(node.value, Value::Map(_)))
    }

    /// Reads a path; a relative one is relative to the settings file.
    pub(super) fn path(&self) -> Option<PathBuf> {
        Some(self.findings.base.join(self.text()?))
    }

    pub(super) fn path_or(&self, name: &str) -> PathBuf {
        self.path().unwrap_or_else(|| self.findings.base.join(name))
    }

    /// Reads an IP address with a port; no name, so that what is listened on cannot depend on a resolver.
    pub(super) fn socket_address(&self) -> Option<SocketAddr> {
        self.parsed(|text| {
            text.parse().map_err(|_| {
                format!("expected an IP address with a port, like \"127.0.0.1:15002\" or \"[::1]:15002\", found {text:?}")
            })
        })
    }

    pub(super) fn flag_or(&self, default: bool) -> bool {
        match self.node.map(|node| &node.value) {
            None => default,
            Some(Value::Bool(flag)) => *flag,
            Some(other) => {
                self.expected("true or false", other);
                default
            }
        }
    }

    /// Reads one of a closed set of words.
    pub(super) fn choice_or<T: Copy>(&self, choices: &[(&str, T)], default: T) -> T {
        let chosen = self.parsed(|text| {
            choices.iter().find(|(word, _)| *word == text).map(|(_, choice)| *choice).ok_or_else(|| {
                let words: Vec<_> = choices.iter().map(|(word, _)| *word).collect();
                format!("expected {}, found {text:?}", words.join(" or "))
            })
        });
        chosen.unwrap_or(default)
    }

    /// Reads a duration above zero.
    pub(super) fn duration_or(&self, default: Duration) -> Duration {
        let positive = |text: &str| match quantity::duration(text)? {
            Duration::ZERO => Err("must be more than zero".to_owned()),
            duration => Ok(duration),
        };
        match self.node.map(|node| &node.value) {
            Some(Value::Unsigned(number)) => {
                self.reject(format!("expected a duration with its unit, like {number}s"));
                default
            }
            _ => self.parsed(positive).unwrap_or(default),
        }
    }

    /// Reads a port; 0 lets the system choose one.
    pub(super) fn port_or(&self, default: u16) -> u16 {
        match self.node.map(|node| &node.value) {
            None => return default,
            Some(Value::Unsigned(number)) => match u16::try_from(*number) {
                Ok(port) => return port,
                Err(_) => self.reject(format!("{number} is no port; expected a number from 0 to 65535")),
            },
            Some(other) => self.expected("a port", other),
        }
        default
    }

    /// Reads a count or, where `unit` is true, a size that may carry a unit; above zero and within `T`.
    pub(super) fn number_or<T: TryFrom<u64>>(&self, default: T, unit: bool) -> T {
        let number = match self.node.map(|node| &node.value) {
            None => return default,
            Some(Value::Unsigned(number)) => Some(*number),
            Some(Value::Text(_)) if unit => self.parsed(quantity::size),
            Some(other) => {
                self.expected(if unit { "a size" } else { "a whole number" }, other);
                None
            }
        };
        let Some(number) = number else { return default };
        match T::try_from(number) {
            Ok(_) if number == 0 => self.reject("must be more than zero"),
            Ok(number) => return number,
            Err(_) => self.reject(format!("{number} is too large")),
        }
        default
    }

    fn expected(&self, what: &str, found: &Value) {
        let scalar = !matches!(found, Value::List(_) | Value::Map(_));
        let hint = if scalar && what == "text" { "; put it in quotes" } else { "" };
        self.reject(format!("expected {what}, found {}{hint}", kind(found)));
    }
}

impl Node {
    fn is_null(&self) -> bool {
        matches!(self.value, Value::Null)
    }
}

/// What a value is, for a sentence that says what was found instead of what was expected.
fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "true or false",
        Value::Unsigned(_) | Value::Signed(_) | Value::Float(_) => "a number",
        Value::Text(_) => "text",
        Value::List(_) => "a list",
        Value::Map(_) => "a map",
    }
}

fn joined(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}
