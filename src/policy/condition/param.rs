//! Where a parameter stands: a dotted path into the input, the whole input, or what the catalogue knows by a name.

use std::borrow::Cow;
use std::fmt;

use serde_json::Value;

use crate::call::{Facts, Input, Spelling};
use crate::fold::{self, Member};

use super::{Found, Subject};

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
    Known(Known, Vec<String>),
}

/// The catalogue's parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::policy) enum Known {
    Command,
    Paths,
    Url,
}

impl Known {
    fn of(text: &str) -> Option<Self> {
        match text {
            "command" => Some(Self::Command),
            "paths" => Some(Self::Paths),
            "url" => Some(Self::Url),
            _ => None,
        }
    }

    fn within<'a>(self, facts: &'a Facts<'a>) -> &'a [Cow<'a, str>] {
        match self {
            Self::Command => &facts.commands,
            Self::Paths => &facts.paths,
            Self::Url => &facts.urls,
        }
    }
}

impl Param {
    /// Reads a `param`; `kind` says whether the rule has a kind.
    pub(in crate::policy) fn parse(text: &str, kind: bool) -> Result<Self, String> {
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
        let known = if kind { path.first().and_then(|first| Known::of(first)) } else { None };
        match known {
            Some(known) if path.len() == 1 => Ok(Self::Known(known, path)),
            Some(_) => {
                Err("has no parts: with a kind, command, paths and url are the catalogue's".to_owned())
            }
            None => Ok(Self::Path(path)),
        }
    }

    pub(super) fn is_paths(&self) -> bool {
        matches!(self, Self::Known(Known::Paths, _))
    }

    /// Whether two keys of the input fold to the parameter, or to one on the way to it: clients differ in which of
    /// them they read.
    pub(super) fn is_ambiguous(&self, call: &Subject<'_>) -> bool {
        match (self, call.facts, call.input) {
            (Self::Known(_, _), Some(facts), _) => facts.spelling == Spelling::Ambiguous,
            (Self::Path(path) | Self::Known(_, path), _, Input::Json(value)) => is_ambiguous(value, path),
            (Self::Whole, _, _) | (Self::Path(_) | Self::Known(_, _), _, Input::Text(_)) => false,
        }
    }

    /// What stands there, one entry for each element of an array; at least one entry. Under a key in another case
    /// stands its value, and nothing: a condition errs over both, as over the elements of an array.
    pub(super) fn find<'a>(&'a self, call: &Subject<'a>, join: bool) -> Vec<Found<'a>> {
        let mut found = Vec::new();
        match (self, call.facts, call.input) {
            (Self::Whole, _, Input::Text(text)) => found.push(Found::Text(Cow::Borrowed(text))),
            (Self::Whole, _, Input::Json(value)) => found.push(Found::Text(Cow::Owned(value.to_string()))),
            (Self::Known(known, _), Some(facts), _) => {
                let all = known.within(facts);
                found.extend(all.iter().map(|text| Found::Text(Cow::Borrowed(text))));
                if join && *known == Known::Command && all.len() > 1 {
                    found.push(Found::Text(Cow::Owned(all.join(" "))));
                }
                if facts.spelling != Spelling::Exact {
                    found.push(Found::Missing);
                }
            }
            (Self::Path(path) | Self::Known(_, path), _, Input::Json(value)) => {
                gather(value, path, join, &mut found)
            }
            (Self::Path(_) | Self::Known(_, _), _, Input::Text(_)) => {}
        }
        if found.is_empty() {
            found.push(Found::Missing);
        }
        found
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
fn gather<'a>(value: &'a Value, path: &[String], join: bool, found: &mut Vec<Found<'a>>) {
    let Some((name, rest)) = path.split_first() else { return elements(value, join, found) };
    let next = match value {
        Value::Object(fields) => match fold::member(fields, name) {
            Member::Missing => None,
            Member::Exact(value) => Some(value),
            Member::Respelled(_, value) => {
                gather(value, rest, join, found);
                None
            }
            Member::Several(values) => {
                values.into_iter().for_each(|value| gather(value, rest, join, found));
                None
            }
        },
        Value::Array(all) => match name.parse::<usize>() {
            Ok(number) => all.get(number),
            Err(_) if !all.is_empty() => return all.iter().for_each(|one| gather(one, path, join, found)),
            Err(_) => None,
        },
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    };
    match next {
        Some(value) => gather(value, rest, join, found),
        None => found.push(Found::Missing),
    }
}

/// Whether several keys of one object stand for one step of the path.
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
fn elements<'a>(value: &'a Value, join: bool, found: &mut Vec<Found<'a>>) {
    let Value::Array(all) = value else {
        found.push(element(value));
        return;
    };
    if all.is_empty() {
        found.push(Found::Missing);
    }
    found.extend(all.iter().map(element));
    let texts: Option<Vec<&str>> = all.iter().map(Value::as_str).collect();
    if let Some(texts) = texts.filter(|texts| join && texts.len() > 1) {
        found.push(Found::Text(Cow::Owned(texts.join(" "))));
    }
}

fn element(value: &Value) -> Found<'_> {
    if value.is_null() { Found::Missing } else { Found::Json(value) }
}
