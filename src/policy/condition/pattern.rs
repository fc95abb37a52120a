//! `Matches`: regular expressions that take linear time.

use regex::{Regex, RegexBuilder};

use crate::policy::section::tool::written::Scalar;

use super::{Compared, Comparing, Operator, ParamValue, Wrong, read};

/// The longest expression, in bytes.
const MOST_SOURCE: usize = 4 * 1024;
/// How much memory a compiled expression may take.
const MOST_COMPILED: usize = 1024 * 1024;
/// How much memory all expressions of a policy may take: an author of policies must not exhaust the operator.
const MOST_TOGETHER: usize = 4 * MOST_COMPILED;
/// The least that an expression is counted as.
const LEAST_COMPILED: usize = 8 * 1024;

/// The compiled bytes that are left for further expressions of one policy.
#[derive(Debug)]
pub(in crate::policy) struct RegexBudget(usize);

impl Default for RegexBudget {
    fn default() -> Self {
        Self(MOST_TOGETHER)
    }
}

/// Any of these expressions, anywhere in the text.
#[derive(Debug)]
pub(super) struct Patterns(Vec<Regex>);

impl Patterns {
    pub(super) fn new(values: &[Scalar], room: &mut RegexBudget) -> Result<Self, Wrong> {
        read(values, |value| compile(&value.text(), room)).map(Self)
    }
}

impl Operator for Patterns {
    fn compare(&self, element: &ParamValue<'_>, _: Comparing<'_>) -> Compared {
        let Some(text) = element.text() else { return Compared::Missing };
        Compared::Is(self.0.iter().any(|pattern| pattern.is_match(&text)))
    }
}

/// Compiles an expression within the room of its policy.
pub(in crate::policy) fn compile(source: &str, room: &mut RegexBudget) -> Result<Regex, String> {
    if source.is_empty() {
        return Err("is empty, and matches every text".to_owned());
    }
    if source.len() > MOST_SOURCE {
        return Err(format!("is {} bytes long; a regular expression has at most 4 KiB", source.len()));
    }
    // The library does not tell an expression's size: a build fails while the limit is too small.
    let mut size = LEAST_COMPILED;
    loop {
        if size > room.0 {
            return Err("is one too many: the regular expressions of a policy take at most 4 MiB together, compiled; \
                        repeat less, use (?-u) where bytes will do, or write another policy"
                .to_owned());
        }
        match RegexBuilder::new(source).size_limit(size).dfa_size_limit(size).build() {
            Ok(compiled) => {
                room.0 -= size;
                return Ok(compiled);
            }
            Err(regex::Error::CompiledTooBig(_)) if size < MOST_COMPILED => size *= 2,
            Err(error) => return Err(explain(&error)),
        }
    }
}

fn explain(error: &regex::Error) -> String {
    match error {
        regex::Error::CompiledTooBig(_) => {
            "needs more than 1 MiB compiled; repeat less, or use (?-u) where bytes will do".to_owned()
        }
        // The last line says what is wrong; those before it draw the place.
        regex::Error::Syntax(_) | _ => {
            let text = error.to_string();
            let last = text.lines().last().unwrap_or_default();
            format!("is no regular expression: {}", last.trim_start_matches("error: "))
        }
    }
}
