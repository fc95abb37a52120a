//! Whether a call is what a rule's `when` is about (design section 4): tests of parameters, nested.
//!
//! Each operator is a file here and a line of [`operator`]; its negative is the same operator, denied.

mod equality;
mod host;
mod param;
mod path;
mod pattern;
mod presence;
#[cfg(test)]
mod tests;
mod text;

use std::borrow::Cow;
use std::fmt;

use serde_json::Value;

use crate::call::{Facts, Input};

use super::document::tool::{Comparison, Scalar};
use super::explain::{Tested, shown};
use super::tool::is_place;
use crate::yaml::field;

pub(super) use param::Param;
pub(super) use pattern::Room;

/// A compiled `when`.
#[derive(Debug)]
pub(super) enum Condition {
    Any(Vec<Self>),
    All(Vec<Self>),
    Not(Box<Self>),
    Test(Test),
}

/// One parameter against one operator and its values.
#[derive(Debug)]
pub(super) struct Test {
    /// Parameter, operator and values, for people.
    words: String,
    param: Param,
    operator: Box<dyn Operator>,
    negative: bool,
    /// Says whether the test names a file, rather than a directory with files of any kind in it.
    naming: Option<Box<dyn Operator>>,
}

/// What a condition is asked about.
#[derive(Debug, Clone, Copy)]
pub(super) struct Subject<'a> {
    pub(super) input: Input<'a>,
    /// Those of the rule's own kind alone; with them `command`, `paths` and `url` are the catalogue's.
    pub(super) facts: Option<&'a Facts<'a>>,
}

/// How many values, and elements of an array, are shown.
const MOST_SHOWN: usize = 4;

/// What is wrong with values, each with its number.
pub(super) type Wrong = Vec<(usize, String)>;

/// An operator with its values, in its positive form.
trait Operator: fmt::Debug + Send + Sync {
    fn compare(&self, found: &Found<'_>, reading: Reading) -> Compared;

    /// Whether an array of strings, read loosely, is compared joined by spaces, too.
    fn joins(&self) -> bool {
        true
    }
}

/// What an operator, in its positive form, makes of one element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Compared {
    Is(bool),
    /// Nothing is there, or nothing that could be compared: a negative operator holds on it in Deny and Audit rules.
    Missing,
    /// It is there and has no one reading: operator and negative both hold in Deny and Audit rules, neither in Allow rules.
    Unreadable,
    /// What it means is not known here: neither the operator nor its negative holds, in no rule.
    Neither,
}

/// How a value that can be read in two ways is read, so that a condition errs the right way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reading {
    /// As whatever satisfies the operator: a text for a number, an array for its elements in one line.
    Loose,
    /// As what it is.
    Strict,
}

/// What stands at a parameter: one element where it is an array.
#[derive(Debug)]
enum Found<'a> {
    /// Nothing, null, or an array without elements.
    Missing,
    Json(&'a Value),
    Text(Cow<'a, str>),
}

impl Found<'_> {
    /// The text: a string's own, of anything else its JSON.
    fn text(&self) -> Option<Cow<'_, str>> {
        match self {
            Self::Missing => None,
            Self::Text(text) => Some(Cow::Borrowed(text)),
            Self::Json(Value::String(text)) => Some(Cow::Borrowed(text)),
            Self::Json(value) => Some(Cow::Owned(value.to_string())),
        }
    }
}

/// Which way a condition errs.
#[derive(Debug, Clone, Copy)]
struct Side {
    /// Whether the rule allows, so that it must not hold by what is not known.
    allows: bool,
    /// Whether every element must satisfy an operator, rather than any. Each `not` swaps that.
    every: bool,
}

impl Side {
    /// That of what stands under a `not`.
    fn swapped(self) -> Self {
        Self { every: !self.every, ..self }
    }
}

impl Condition {
    /// A test, where operator and values go together; regular expressions take of the policy's room.
    ///
    /// # Errors
    /// What is wrong, with the number of the value that it is about.
    pub(super) fn test(
        param: Param,
        word: Comparison,
        values: &[Scalar],
        room: &mut Room,
    ) -> Result<Self, Wrong> {
        let (operator, negative) = operator(word, values, room)?;
        let naming = if param.is_paths() { naming(word, values)? } else { None };
        let words = words(&param, word, values);
        Ok(Self::Test(Test { words, param, operator, negative, naming }))
    }

    /// Whether it holds in a rule that denies or records: any element of an array is enough, and a negative
    /// operator holds on a missing parameter.
    pub(super) fn holds_to_deny(&self, call: &Subject<'_>) -> bool {
        self.judge(call, Side { allows: false, every: false })
    }

    /// Whether it holds in a rule that allows: every element of an array must satisfy, and what is missing counts
    /// against the call, under a `not` too.
    pub(super) fn holds_to_allow(&self, call: &Subject<'_>) -> bool {
        self.judge(call, Side { allows: true, every: true })
    }

    /// A parameter that it names and for which the call has two keys; none where each has at most one.
    pub(super) fn ambiguous(&self, call: &Subject<'_>) -> Option<&Param> {
        match self {
            Self::Any(all) | Self::All(all) => all.iter().find_map(|one| one.ambiguous(call)),
            Self::Not(one) => one.ambiguous(call),
            Self::Test(test) => Some(&test.param).filter(|param| param.is_ambiguous(call)),
        }
    }

    /// Whether it holds in a rule that allows, and names this file of the call.
    pub(super) fn names_file(&self, call: &Subject<'_>, path: &str) -> bool {
        match self {
            Self::Any(all) => all.iter().any(|one| one.names_file(call, path)),
            Self::All(all) => self.holds_to_allow(call) && all.iter().any(|one| one.names_file(call, path)),
            Self::Not(_) => false,
            Self::Test(test) => test.names(path) && self.holds_to_allow(call),
        }
    }

    /// Every test of it by itself: its words, what it found, and whether it holds in a rule that `allows` or not.
    pub(super) fn tests(&self, call: &Subject<'_>, allows: bool) -> Vec<Tested> {
        let mut tested = Vec::new();
        self.visit(Side { allows, every: allows }, &mut |test, side| tested.push(test.tested(call, side)));
        tested
    }

    fn visit(&self, side: Side, see: &mut impl FnMut(&Test, Side)) {
        match self {
            Self::Any(all) | Self::All(all) => all.iter().for_each(|one| one.visit(side, see)),
            Self::Not(one) => one.visit(side.swapped(), see),
            Self::Test(test) => see(test, side),
        }
    }

    fn judge(&self, call: &Subject<'_>, side: Side) -> bool {
        match self {
            Self::Any(all) => all.iter().any(|one| one.judge(call, side)),
            Self::All(all) => all.iter().all(|one| one.judge(call, side)),
            Self::Not(one) => !one.judge(call, side.swapped()),
            Self::Test(test) => test.holds(call, side),
        }
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut several = |word: &str, all: &[Self]| match all {
            [one] => one.fmt(f),
            _ => {
                let all: Vec<String> = all.iter().map(ToString::to_string).collect();
                write!(f, "{word} ({})", all.join("; "))
            }
        };
        match self {
            Self::Any(all) => several("any of", all),
            Self::All(all) => several("all of", all),
            Self::Not(one) => write!(f, "not ({one})"),
            Self::Test(test) => f.write_str(&test.words),
        }
    }
}

impl Test {
    fn tested(&self, call: &Subject<'_>, side: Side) -> Tested {
        let found = self.param.find(call, false);
        let shown = found.iter().take(MOST_SHOWN).map(|one| one.text().map(|text| shown(&text)));
        let mut values: Vec<String> =
            shown.map(|text| text.unwrap_or_else(|| "nothing".to_owned())).collect();
        if found.len() > MOST_SHOWN {
            values.push(format!("{} more", found.len() - MOST_SHOWN));
        }
        Tested { test: self.words.clone(), found: values, holds: self.holds(call, side) }
    }

    fn names(&self, path: &str) -> bool {
        let found = Found::Text(Cow::Borrowed(path));
        let naming = self.naming.as_ref().map(|naming| naming.compare(&found, Reading::Strict));
        naming.is_some_and(|compared| matches!(compared, Compared::Is(true)))
    }

    fn holds(&self, call: &Subject<'_>, side: Side) -> bool {
        let reading = if side.every == self.negative { Reading::Loose } else { Reading::Strict };
        let found = self.param.find(call, reading == Reading::Loose && self.operator.joins());
        let satisfied = |one: &Found<'_>| match self.operator.compare(one, reading) {
            Compared::Is(holds) => holds != self.negative,
            Compared::Missing => !side.every && (self.negative || side.allows),
            // Under a `not` what holds keeps the rule from holding, so that both turn with the side.
            Compared::Unreadable => !side.every,
            Compared::Neither => side.every != side.allows,
        };
        if side.every { found.iter().all(satisfied) } else { found.iter().any(satisfied) }
    }
}

/// `command Contains "sudo"`; of many values the first.
fn words(param: &Param, word: Comparison, values: &[Scalar]) -> String {
    let one = |value: &Scalar| match value {
        Scalar::Text(text) => field::plainly(text),
        Scalar::Number(_) | Scalar::Bool(_) => value.text().into_owned(),
    };
    let mut all: Vec<String> = values.iter().take(MOST_SHOWN).map(one).collect();
    if values.len() > MOST_SHOWN {
        all.push(format!("{} more", values.len() - MOST_SHOWN));
    }
    let values = match all.as_slice() {
        [] => String::new(),
        [one] => format!(" {one}"),
        _ => format!(" [{}]", all.join(", ")),
    };
    format!("{param} {word:?}{values}")
}

/// The operator of a word, and whether it is denied.
fn operator(
    word: Comparison,
    values: &[Scalar],
    room: &mut Room,
) -> Result<(Box<dyn Operator>, bool), Wrong> {
    use Comparison as C;
    let operator: Box<dyn Operator> = match word {
        C::Equals | C::NotEquals | C::In | C::NotIn => Box::new(equality::Equality::new(values)?),
        C::Matches | C::NotMatches => Box::new(pattern::Patterns::new(values, room)?),
        C::Contains | C::NotContains => Box::new(text::Contains::new(values)?),
        C::StartsWith | C::NotStartsWith => Box::new(text::StartsWith::new(values)?),
        C::Within | C::NotWithin => Box::new(path::Within::new(values)?),
        C::HostIn | C::NotHostIn => Box::new(host::HostIn::new(values)?),
        C::Exists | C::NotExists => Box::new(presence::Presence),
    };
    Ok((operator, word.is_negative()))
}

/// What names a file: its path, or a directory that has nothing but files that run by themselves.
fn naming(word: Comparison, values: &[Scalar]) -> Result<Option<Box<dyn Operator>>, Wrong> {
    let place = |value: &&Scalar| matches!(value, Scalar::Text(text) if is_place(text));
    Ok(match word {
        Comparison::Equals | Comparison::In => Some(Box::new(equality::Equality::new(values)?)),
        Comparison::Within => {
            let places: Vec<Scalar> = values.iter().filter(place).cloned().collect();
            Some(Box::new(path::Within::new(&places)?))
        }
        Comparison::NotEquals
        | Comparison::Matches
        | Comparison::NotMatches
        | Comparison::Contains
        | Comparison::NotContains
        | Comparison::StartsWith
        | Comparison::NotStartsWith
        | Comparison::NotIn
        | Comparison::NotWithin
        | Comparison::HostIn
        | Comparison::NotHostIn
        | Comparison::Exists
        | Comparison::NotExists => None,
    })
}

/// Reads each value, and tells of each that cannot be read.
fn read<T>(values: &[Scalar], mut read: impl FnMut(&Scalar) -> Result<T, String>) -> Result<Vec<T>, Wrong> {
    let (mut all, mut wrong) = (Vec::with_capacity(values.len()), Vec::new());
    for (number, value) in values.iter().enumerate() {
        match read(value) {
            Ok(value) => all.push(value),
            Err(message) => wrong.push((number, message)),
        }
    }
    if wrong.is_empty() { Ok(all) } else { Err(wrong) }
}
