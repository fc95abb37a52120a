//! Where a parameter stands: at a dotted path in the input, in the whole input, or under a name of the catalogue.

use std::borrow::Cow;
use std::fmt;

use serde_json::Value;

use crate::call::{Facts, Input, Kind, ShellFacts, SimpleCommand, Spelling};
use crate::fold::{self, Member};

use super::{Bound, CallSubject, ParamValue, Reading};

/// The longest `param`, in bytes.
const MOST_BYTES: usize = 256;

/// A compiled `param`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::policy) enum Param {
    /// `$`
    Whole,
    /// `options.recursive`, `files.0.path`
    Path(Vec<String>),
    /// The catalogue's, in rules with a kind; the path is for calls that such a rule meets by name.
    Known(CatalogueParam, Vec<String>),
}

/// The catalogue's parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::policy) enum CatalogueParam {
    Command,
    Paths,
    Url,
    /// Of a simple command, like the two below.
    Program,
    Options,
    Opaque,
}

impl CatalogueParam {
    fn of(text: &str, kind: Kind) -> Option<Self> {
        match (text, kind) {
            ("command", _) => Some(Self::Command),
            ("paths", _) => Some(Self::Paths),
            ("url", _) => Some(Self::Url),
            ("program", Kind::Shell) => Some(Self::Program),
            ("options", Kind::Shell) => Some(Self::Options),
            ("opaque", Kind::Shell) => Some(Self::Opaque),
            (_, Kind::Shell | Kind::Read | Kind::Write | Kind::Fetch) => None,
        }
    }

    /// Whether its value differs from simple command to simple command.
    fn is_bound(self) -> bool {
        matches!(self, Self::Command | Self::Program | Self::Options)
    }

    fn find<'a>(
        self,
        facts: &'a Facts<'a>,
        bound: Bound<'a>,
        (reading, join): (Reading, bool),
        found: &mut Vec<ParamValue<'a>>,
    ) {
        let texts = match (self, bound) {
            (Self::Paths, _) => &facts.paths,
            (Self::Url, _) => &facts.urls,
            (Self::Command, Bound::Whole) => &facts.commands,
            (Self::Command, Bound::To(command) | Bound::Allowed(command)) => {
                return found.push(text(&command.text));
            }
            (Self::Program, Bound::To(command)) => return found.push(program(command)),
            (Self::Program, Bound::Allowed(command)) => {
                // Neither by its path nor by its name may it be what a rule leaves out.
                let is_named = command.path.is_none() || reading == Reading::Loose;
                found.extend(command.path.as_deref().map(text));
                return found.extend(is_named.then(|| program(command)));
            }
            (Self::Options, Bound::To(command) | Bound::Allowed(command)) => return options(command, found),
            // A whole text has no program, and no options: a test of them holds neither way.
            (Self::Program | Self::Options, Bound::Whole) => return found.push(ParamValue::Unbound),
            (Self::Opaque, _) => return found.push(opaque(facts.shell.as_ref())),
        };
        found.extend(texts.iter().map(|text| ParamValue::Text(Cow::Borrowed(text))));
        if join && self == Self::Command && texts.len() > 1 {
            found.push(ParamValue::Text(Cow::Owned(texts.join(" "))));
        }
    }
}

impl Param {
    /// Reads a `param` of a rule, with the rule's kind.
    pub(in crate::policy) fn parse(text: &str, kind: Option<Kind>) -> Result<Self, String> {
        if text == "$" {
            return Ok(Self::Whole);
        }
        if text.is_empty() {
            return Err("is required: a parameter of the tool, as in options.path, or $ for the whole input"
                .to_owned());
        }
        if text.len() > MOST_BYTES {
            return Err(format!("is {} bytes long; at most {MOST_BYTES} are read", text.len()));
        }
        if text.starts_with("$.") || text.starts_with("$[") || text.contains(['[', ']']) {
            return Err("is no dotted path; write files.0.path for the path of the first of files".to_owned());
        }
        let path: Vec<String> = text.split('.').map(str::to_owned).collect();
        if path.iter().any(String::is_empty) {
            return Err("has a dot without a name beside it".to_owned());
        }
        let known = kind.zip(path.first()).and_then(|(kind, first)| CatalogueParam::of(first, kind));
        match known {
            Some(known) if path.len() == 1 => Ok(Self::Known(known, path)),
            Some(_) => {
                Err("has no parts: with a kind, command, paths and url are the catalogue's, and so are \
                            program, options and opaque with the kind Shell"
                    .to_owned())
            }
            None => Ok(Self::Path(path)),
        }
    }

    /// Whether its value differs from simple command to simple command of a Shell call.
    pub(super) fn is_bound(&self) -> bool {
        matches!(self, Self::Known(known, _) if known.is_bound())
    }

    pub(super) fn is_paths(&self) -> bool {
        matches!(self, Self::Known(CatalogueParam::Paths, _))
    }

    /// Whether two keys of the input fold to the parameter, or to one on the way to it: clients differ in which of
    /// them they read.
    pub(super) fn is_ambiguous(&self, call: &CallSubject<'_>) -> bool {
        match (self, call.facts, call.input) {
            (Self::Known(_, _), Some(facts), _) => facts.spelling == Spelling::Ambiguous,
            (Self::Path(path) | Self::Known(_, path), _, Input::Json(value)) => is_ambiguous(value, path),
            (Self::Whole, _, _) | (Self::Path(_) | Self::Known(_, _), _, Input::Text(_)) => false,
        }
    }

    /// Returns the parameter's values, one for each element of an array; at least one. A key in another case yields its
    /// value and `Missing`, since a client may ignore that key: a condition errs over both, as over elements of an array.
    /// `joins`: an array of strings, read loosely, is also compared in one line.
    pub(super) fn find<'a>(
        &'a self,
        call: &CallSubject<'a>,
        reading: Reading,
        joins: bool,
    ) -> Vec<ParamValue<'a>> {
        let (mut gathered, join) = (Vec::new(), joins && reading == Reading::Loose);
        match (self, call.facts, call.input) {
            (Self::Whole, _, Input::Text(text)) => gathered.push(ParamValue::Text(Cow::Borrowed(text))),
            (Self::Whole, _, Input::Json(value)) => {
                gathered.push(ParamValue::Text(Cow::Owned(value.to_string())))
            }
            (Self::Known(known, _), Some(facts), _) => {
                known.find(facts, call.bound, (reading, join), &mut gathered);
                if facts.spelling != Spelling::Exact {
                    gathered.push(ParamValue::Missing);
                }
            }
            // What a command does is written in no parameter of its own.
            (Self::Path(_), Some(Facts { derived_from: Some(_), .. }), _) => {
                gathered.push(ParamValue::Unbound)
            }
            (Self::Path(path) | Self::Known(_, path), _, Input::Json(value)) => {
                gather(value, path, join, &mut gathered)
            }
            (Self::Path(_) | Self::Known(_, _), _, Input::Text(_)) => {}
        }
        if gathered.is_empty() {
            gathered.push(ParamValue::Missing);
        }
        gathered
    }
}

fn text(text: &str) -> ParamValue<'_> {
    ParamValue::Text(Cow::Borrowed(text))
}

fn program(command: &SimpleCommand) -> ParamValue<'_> {
    command.program.as_deref().map_or(ParamValue::Missing, text)
}

/// The options of a command. One without any has none for certain, unless a word of it is computed.
fn options<'a>(command: &'a SimpleCommand, found: &mut Vec<ParamValue<'a>>) {
    found.extend(command.options.iter().map(|option| text(option)));
    match (command.has_computed_words, command.options.is_empty()) {
        (true, _) => found.push(ParamValue::Missing),
        (false, true) => found.push(ParamValue::Nothing),
        (false, false) => {}
    }
}

fn opaque(shell: Option<&ShellFacts>) -> ParamValue<'static> {
    static YES: Value = Value::Bool(true);
    static NO: Value = Value::Bool(false);
    match shell {
        None => ParamValue::Unbound,
        Some(shell) => ParamValue::Json(if shell.is_opaque { &YES } else { &NO }),
    }
}

impl fmt::Display for Param {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole => f.write_str("$"),
            Self::Path(path) | Self::Known(_, path) => f.write_str(&path.join(".")),
        }
    }
}

/// Walks down a path. A name that meets an array means that name in each of its elements.
fn gather<'a>(value: &'a Value, path: &[String], join: bool, gathered: &mut Vec<ParamValue<'a>>) {
    let Some((name, rest)) = path.split_first() else { return elements(value, join, gathered) };
    let next = match value {
        Value::Object(fields) => match fold::member(fields, name) {
            Member::Missing => None,
            Member::Exact(value) => Some(value),
            Member::Respelled(_, value) => {
                gather(value, rest, join, gathered);
                None
            }
            Member::Several(values) => {
                values.into_iter().for_each(|value| gather(value, rest, join, gathered));
                None
            }
        },
        Value::Array(all) => match name.parse::<usize>() {
            Ok(number) => all.get(number),
            Err(_) if !all.is_empty() => return all.iter().for_each(|one| gather(one, path, join, gathered)),
            Err(_) => None,
        },
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    };
    match next {
        Some(value) => gather(value, rest, join, gathered),
        None => gathered.push(ParamValue::Missing),
    }
}

/// Whether several keys of one object match one step of the path.
fn is_ambiguous(value: &Value, path: &[String]) -> bool {
    let Some((name, rest)) = path.split_first() else { return false };
    match value {
        Value::Object(fields) => match fold::member(fields, name) {
            Member::Missing => false,
            Member::Exact(value) | Member::Respelled(_, value) => is_ambiguous(value, rest),
            Member::Several(_) => true,
        },
        Value::Array(all) => match name.parse::<usize>() {
            Ok(number) => all.get(number).is_some_and(|one| is_ambiguous(one, rest)),
            Err(_) => all.iter().any(|one| is_ambiguous(one, path)),
        },
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// The value itself, or an array's elements, and all of them joined where they are strings.
fn elements<'a>(value: &'a Value, join: bool, gathered: &mut Vec<ParamValue<'a>>) {
    let Value::Array(all) = value else {
        gathered.push(element(value));
        return;
    };
    if all.is_empty() {
        gathered.push(ParamValue::Missing);
    }
    gathered.extend(all.iter().map(element));
    let texts: Option<Vec<&str>> = all.iter().map(Value::as_str).collect();
    if let Some(texts) = texts.filter(|texts| join && texts.len() > 1) {
        gathered.push(ParamValue::Text(Cow::Owned(texts.join(" "))));
    }
}

fn element(value: &Value) -> ParamValue<'_> {
    if value.is_null() { ParamValue::Missing } else { ParamValue::Json(value) }
}
