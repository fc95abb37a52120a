//! `when` of a tool rule, compiled (design section 4): nested tests of a call's parameters.
//!
//! Each operator is a file here and a line of [`operator`]; its negative is the same operator, negated.

mod equality;
mod host;
mod param;
mod path;
mod pattern;
mod presence;
#[cfg(test)]
mod shell_tests;
#[cfg(test)]
mod tests;
mod text;

use std::borrow::Cow;
use std::fmt;

use serde_json::Value;

use crate::call::{Facts, Input, ShellFacts, SimpleCommand};

use super::explain::TestResult;
use super::section::tool::is_place;
use super::section::tool::written::{Comparison, Scalar};
use super::shown::shown;
use crate::yaml::field;

pub(super) use param::Param;
pub(super) use pattern::{RegexBudget, compile};

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
    /// Matches a path that the test names as a file, rather than by a directory with files of any kind.
    naming: Option<Box<dyn Operator>>,
}

/// The call that a condition is tested on.
#[derive(Debug, Clone, Copy)]
pub(super) struct CallSubject<'a> {
    pub(super) input: Input<'a>,
    /// Only facts of the rule's own kind; with them `command`, `paths` and `url` are the catalogue's.
    pub(super) facts: Option<&'a Facts<'a>>,
    /// Where relative paths begin.
    pub(super) directory: Option<&'a str>,
    /// What `command`, `program` and `options` are about.
    pub(super) bound: Bound<'a>,
}

/// What the parameters of a Shell call are about.
#[derive(Debug, Clone, Copy)]
pub(super) enum Bound<'a> {
    /// The whole of it: `command` is its text, and `program` and `options` are nothing.
    Whole,
    To(&'a SimpleCommand),
    /// The same in a rule that allows: a program that is named by a path is not the one of that name.
    Allowed(&'a SimpleCommand),
}

impl<'a> CallSubject<'a> {
    /// A call as a whole.
    pub(super) fn new(input: Input<'a>, facts: Option<&'a Facts<'a>>, directory: Option<&'a str>) -> Self {
        // The base of what commands name is in the paths already, where it is known.
        let directory = directory.filter(|_| facts.is_none_or(|facts| facts.derived_from.is_none()));
        Self { input, facts, directory, bound: Bound::Whole }
    }

    fn shell(&self) -> Option<&'a ShellFacts> {
        self.facts.and_then(|facts| facts.shell.as_ref())
    }

    fn bound(&self, command: &'a SimpleCommand) -> Self {
        Self { bound: Bound::To(command), ..*self }
    }

    fn allowed(&self, command: &'a SimpleCommand) -> Self {
        Self { bound: Bound::Allowed(command), ..*self }
    }
}

/// What of a call a condition holds for.
#[derive(Debug, Clone, Copy)]
pub(super) enum HoldsFor<'a> {
    Whole,
    Command(&'a SimpleCommand),
}

/// How an element is compared.
#[derive(Debug, Clone, Copy)]
struct Comparing<'a> {
    reading: Reading,
    /// Where relative paths begin.
    directory: Option<&'a str>,
}

/// How many values, and elements of an array, are shown.
const MOST_SHOWN: usize = 4;

/// Mistakes in values, each with the value's number.
pub(super) type Wrong = Vec<(usize, String)>;

/// An operator with its values, in its positive form.
trait Operator: fmt::Debug + Send + Sync {
    fn compare(&self, element: &ParamValue<'_>, compared: Comparing<'_>) -> Compared;

    /// Whether an array of strings, read loosely, is compared joined by spaces, too.
    fn joins(&self) -> bool {
        true
    }
}

/// The result of an operator, in its positive form, on one element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Compared {
    Is(bool),
    /// The element is missing, or cannot be compared: a negative operator holds on it in Deny and Audit rules.
    Missing,
    /// Clients read the element differently: operator and negative both hold in Deny and Audit rules, neither in Allow
    /// rules.
    Unreadable,
    /// The element's meaning is not known here: neither the operator nor its negative holds, in any rule.
    Neither,
}

/// How a value with two readings is read, so that a condition errs on the safe side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reading {
    /// In whatever way satisfies the operator: a text as a number, an array as its elements in one line.
    Loose,
    /// By its own type alone.
    Strict,
}

/// The value at a parameter; one element where that is an array.
#[derive(Debug)]
enum ParamValue<'a> {
    /// Nothing, null, or an array without elements.
    Missing,
    /// For certain nothing: no value is among none.
    Nothing,
    /// The parameter means nothing here: no test of it holds, and no negative one.
    Unbound,
    Json(&'a Value),
    Text(Cow<'a, str>),
}

impl ParamValue<'_> {
    /// The text: a string's own, of anything else its JSON.
    fn text(&self) -> Option<Cow<'_, str>> {
        match self {
            Self::Missing | Self::Nothing | Self::Unbound => None,
            Self::Text(text) => Some(Cow::Borrowed(text)),
            Self::Json(Value::String(text)) => Some(Cow::Borrowed(text)),
            Self::Json(value) => Some(Cow::Owned(value.to_string())),
        }
    }
}

/// The side on which a condition errs.
#[derive(Debug, Clone, Copy)]
struct Side {
    /// Whether the rule allows, so that nothing unknown may make it hold.
    allows: bool,
    /// Whether every element must satisfy an operator, rather than any. Each `not` swaps this.
    every: bool,
}

impl Side {
    /// The side of a condition under a `not`.
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
        room: &mut RegexBudget,
    ) -> Result<Self, Wrong> {
        let (operator, negative) = operator(word, values, room)?;
        let naming = if param.is_paths() { naming(word, values)? } else { None };
        let words = words(&param, word, values);
        Ok(Self::Test(Test { words, param, operator, negative, naming }))
    }

    /// Returns what it holds for in a rule that denies or records; none where it does not hold. Any element of an array
    /// is enough, and a negative operator holds on a missing parameter. Of a Shell call one simple command is enough, or
    /// the whole of its text.
    pub(super) fn holds_to_deny<'a>(&self, call: &CallSubject<'a>) -> Option<HoldsFor<'a>> {
        let holds = |call: &CallSubject<'_>| self.judge(call, Side { allows: false, every: false });
        let shell = call.shell().filter(|_| self.is_bound());
        let mut commands = shell.into_iter().flat_map(|shell| &shell.commands);
        let first = commands.find(|command| holds(&call.bound(command))).map(HoldsFor::Command);
        first.or_else(|| holds(call).then_some(HoldsFor::Whole))
    }

    /// Whether it holds in a rule that allows: every element of an array must satisfy, and what is missing counts
    /// against the call, under a `not` too. It must hold for every simple command of a Shell call.
    pub(super) fn holds_to_allow(&self, call: &CallSubject<'_>) -> bool {
        self.asked_to_allow(call).iter().all(|call| self.judge(call, Side { allows: true, every: true }))
    }

    /// What a rule that allows is asked about.
    fn asked_to_allow<'a>(&self, call: &CallSubject<'a>) -> Vec<CallSubject<'a>> {
        let Some(shell) = call.shell().filter(|shell| self.is_bound() && !shell.commands.is_empty()) else {
            return vec![*call];
        };
        // A change of the directory does nothing by itself, but where there is nothing else.
        let mut asked: Vec<_> = shell.commands.iter().filter(|command| !command.changes_directory).collect();
        if asked.is_empty() {
            asked = shell.commands.iter().collect();
        }
        // What cannot be told, variables that may change what a command runs, and files of redirections stand in the text
        // alone.
        let redirects = shell.commands.iter().any(|command| command.redirects);
        let whole = (shell.is_opaque || shell.has_assignments || redirects).then_some(*call);
        whole.into_iter().chain(asked.into_iter().map(|command| call.allowed(command))).collect()
    }

    /// Adds the names of its parameters, each once.
    pub(super) fn add_params(&self, names: &mut Vec<String>) {
        match self {
            Self::Any(all) | Self::All(all) => all.iter().for_each(|one| one.add_params(names)),
            Self::Not(one) => one.add_params(names),
            Self::Test(test) => {
                let name = test.param.to_string();
                if !names.contains(&name) {
                    names.push(name);
                }
            }
        }
    }

    /// Whether it is about parameters that differ from simple command to simple command.
    fn is_bound(&self) -> bool {
        match self {
            Self::Any(all) | Self::All(all) => all.iter().any(Self::is_bound),
            Self::Not(one) => one.is_bound(),
            Self::Test(test) => test.param.is_bound(),
        }
    }

    /// Returns a parameter of the condition for which the call has two keys; none where each has at most one.
    pub(super) fn ambiguous(&self, call: &CallSubject<'_>) -> Option<&Param> {
        match self {
            Self::Any(all) | Self::All(all) => all.iter().find_map(|one| one.ambiguous(call)),
            Self::Not(one) => one.ambiguous(call),
            Self::Test(test) => Some(&test.param).filter(|param| param.is_ambiguous(call)),
        }
    }

    /// Whether it holds in a rule that allows, and names this file of the call.
    pub(super) fn names_file(&self, call: &CallSubject<'_>, path: &str) -> bool {
        match self {
            Self::Any(all) => all.iter().any(|one| one.names_file(call, path)),
            Self::All(all) => self.holds_to_allow(call) && all.iter().any(|one| one.names_file(call, path)),
            Self::Not(_) => false,
            Self::Test(test) => test.names(path, call.directory) && self.holds_to_allow(call),
        }
    }

    /// Returns each test by itself: its words, its values, and whether it holds in a rule that `allows` or not.
    ///
    /// Of a Shell call that has several simple commands, what decides is shown: the first that a rule denies, or does not
    /// allow.
    pub(super) fn tests(&self, call: &CallSubject<'_>, allows: bool) -> Vec<TestResult> {
        let side = Side { allows, every: allows };
        let deciding = if allows {
            let asked = self.asked_to_allow(call);
            asked.iter().find(|call| !self.judge(call, side)).or(asked.first()).copied()
        } else {
            match self.holds_to_deny(call) {
                Some(HoldsFor::Command(command)) => Some(call.bound(command)),
                Some(HoldsFor::Whole) => None,
                None => {
                    let shell = call.shell().filter(|_| self.is_bound());
                    shell.and_then(|shell| shell.commands.first()).map(|command| call.bound(command))
                }
            }
        };
        let (deciding, mut tested) = (deciding.unwrap_or(*call), Vec::new());
        self.visit(side, &mut |test, side| tested.push(test.tested(&deciding, side)));
        tested
    }

    fn visit(&self, side: Side, see: &mut impl FnMut(&Test, Side)) {
        match self {
            Self::Any(all) | Self::All(all) => all.iter().for_each(|one| one.visit(side, see)),
            Self::Not(one) => one.visit(side.swapped(), see),
            Self::Test(test) => see(test, side),
        }
    }

    // A Deny rule that holds wrongly costs one call; one that fails to hold lets a call through. An Allow rule is the
    // reverse. So Deny asks "does any element match", Allow "do all match", and each `not` swaps the two quantifiers.
    fn judge(&self, call: &CallSubject<'_>, side: Side) -> bool {
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
    fn tested(&self, call: &CallSubject<'_>, side: Side) -> TestResult {
        let elements = self.param.find(call, Reading::Strict, false);
        let shown = elements.iter().take(MOST_SHOWN).map(|one| one.text().map(|text| shown(&text)));
        let mut values: Vec<String> =
            shown.map(|text| text.unwrap_or_else(|| "nothing".to_owned())).collect();
        if elements.len() > MOST_SHOWN {
            values.push(format!("{} more", elements.len() - MOST_SHOWN));
        }
        TestResult { test: self.words.clone(), found: values, holds: self.holds(call, side) }
    }

    fn names(&self, path: &str, directory: Option<&str>) -> bool {
        let element = ParamValue::Text(Cow::Borrowed(path));
        let strictly = Comparing { reading: Reading::Strict, directory };
        let naming = self.naming.as_ref().map(|naming| naming.compare(&element, strictly));
        naming.is_some_and(|compared| matches!(compared, Compared::Is(true)))
    }

    fn holds(&self, call: &CallSubject<'_>, side: Side) -> bool {
        // The loose reading satisfies an operator more often, and its negative less often:
        //   any element, positive: loose     any element, negative: strict    (more holds)
        //   every element, positive: strict  every element, negative: loose   (less holds)
        let reading = if side.every == self.negative { Reading::Loose } else { Reading::Strict };
        let elements = self.param.find(call, reading, self.operator.joins());
        let comparing = Comparing { reading, directory: call.directory };
        let compared = |one: &ParamValue<'_>| match one {
            ParamValue::Nothing => Compared::Is(false),
            ParamValue::Unbound => Compared::Neither,
            ParamValue::Missing | ParamValue::Json(_) | ParamValue::Text(_) => {
                self.operator.compare(one, comparing)
            }
        };
        let satisfied = |one: &ParamValue<'_>| match compared(one) {
            Compared::Is(holds) => holds != self.negative,
            // In a Deny rule `NotEquals` holds on a missing value. In an Allow rule `every` is false under a `not`
            // alone: the test then holds, so that the `not` fails and the rule does not allow.
            Compared::Missing => !side.every && (self.negative || side.allows),
            // Errs with the side: holds for any, fails for every, and so turns with each `not`.
            Compared::Unreadable => !side.every,
            // Keeps the rule from holding at every depth: false in Deny and Allow, true below a `not` of either.
            Compared::Neither => side.every != side.allows,
        };
        if side.every { elements.iter().all(satisfied) } else { elements.iter().any(satisfied) }
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
    room: &mut RegexBudget,
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

/// The operator by which a test names a file: its path, or a directory with nothing but files that run by themselves.
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

/// Reads each value; fails with every value that cannot be read.
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
