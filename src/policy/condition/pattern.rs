//! `Matches`: regular expressions that take linear time.

use regex::{Regex, RegexBuilder};

use crate::policy::section::tool::written::Scalar;

use super::{Compared, Found, Operator, Reading, Wrong, read};

/// The longest expression, in bytes.
const MOST_SOURCE: usize = 4 * 1024;
/// How much memory a compiled expression may take.
const MOST_COMPILED: usize = 1024 * 1024;
/// How much all of a policy may take together: whoever writes policies must not exhaust whoever judges them.
const MOST_TOGETHER: usize = 4 * MOST_COMPILED;
/// The least that an expression is counted as.
const LEAST_COMPILED: usize = 8 * 1024;

/// What is left for the expressions of one policy, in bytes that they take compiled.
#[derive(Debug)]
pub(in crate::policy) struct Room(usize);

impl Default for Room {
    fn default() -> Self {
        Self(MOST_TOGETHER)
    }
}

/// Any of these expressions, anywhere in the text.
#[derive(Debug)]
pub(super) struct Patterns(Vec<Regex>);

impl Patterns {
    pub(super) fn new(values: &[Scalar], room: &mut Room) -> Result<Self, Wrong> {
        read(values, |value| compile(&value.text(), room)).map(Self)
    }
}

impl Operator for Patterns {
    fn compare(&self, found: &Found<'_>, _: Reading) -> Compared {
        let Some(text) = found.text() else { return Compared::Missing };
        Compared::Is(self.0.iter().any(|pattern| pattern.is_match(&text)))
    }
}

fn compile(source: &str, room: &mut Room) -> Result<Regex, String> {
    if source.is_empty() {
        return Err("is empty, and matches every text".to_owned());
    }
    if source.len() > MOST_SOURCE {
        return Err(format!("is {} bytes long; a regular expression has at most 4 KiB", source.len()));
    }
    // What an expression takes is known only by what is not enough for it.
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
            Err(error) => return Err(told(&error)),
        }
    }
}

fn told(error: &regex::Error) -> String {
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
