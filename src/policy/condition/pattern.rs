//! `Matches`: regular expressions that take linear time.

use regex::{Regex, RegexBuilder};

use crate::policy::document::tool::Scalar;

use super::{Found, Operator, Reading, Wrong, read};

/// The longest expression, in bytes.
const MOST_SOURCE: usize = 4 * 1024;
/// How much memory a compiled expression may take.
const MOST_COMPILED: usize = 1024 * 1024;

/// Any of these expressions, anywhere in the text.
#[derive(Debug)]
pub(super) struct Patterns(Vec<Regex>);

impl Patterns {
    pub(super) fn new(values: &[Scalar]) -> Result<Self, Wrong> {
        read(values, |value| compile(&value.text())).map(Self)
    }
}

impl Operator for Patterns {
    fn compare(&self, found: &Found<'_>, _: Reading) -> Option<bool> {
        let text = found.text()?;
        Some(self.0.iter().any(|pattern| pattern.is_match(&text)))
    }
}

fn compile(source: &str) -> Result<Regex, String> {
    if source.is_empty() {
        return Err("is empty, and matches every text".to_owned());
    }
    if source.len() > MOST_SOURCE {
        return Err(format!("is {} bytes long; a regular expression has at most 4 KiB", source.len()));
    }
    let built = RegexBuilder::new(source).size_limit(MOST_COMPILED).dfa_size_limit(MOST_COMPILED).build();
    built.map_err(|error| match &error {
        regex::Error::CompiledTooBig(_) => {
            "needs more than 1 MiB compiled; repeat less, or use (?-u) where bytes will do".to_owned()
        }
        // The last line says what is wrong; those before it draw the place.
        regex::Error::Syntax(_) | _ => {
            let text = error.to_string();
            let last = text.lines().last().unwrap_or_default();
            format!("is no regular expression: {}", last.trim_start_matches("error: "))
        }
    })
}
