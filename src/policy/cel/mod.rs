//! Rules over facts in CEL, the Common Expression Language: a typed and bounded subset, read, checked and evaluated.
//!
//! An expression is divided (`lex`), parsed (`parse`), checked (`check`, `functions`) and measured (`cost`) when a policy is
//! loaded. Whatever passes is evaluated (`eval`) over the facts of an event (`fields`) without a further bound. ADR 0023
//! says why this is our own code.

mod check;
mod cost;
mod eval;
mod fields;
mod fold;
mod functions;
mod kind;
mod lex;
mod moment;
mod near;
mod parse;
mod syntax;
mod tree;
mod value;

#[cfg(test)]
mod conformance_tests;
#[cfg(test)]
mod documentation;
#[cfg(test)]
mod tests;

use regex::Regex;

pub use eval::Failure;
pub use fields::{Facts, Field, Finding, Tool, event_fields};
pub use kind::Record;

use eval::Evaluation;
use tree::Node;

/// The longest expression, in bytes.
pub const MOST_SOURCE: usize = 1024;
/// How many brackets and choices stand in each other at most.
const MOST_NESTED: usize = 32;
/// How deep the tree of an expression is at most.
const MOST_DEPTH: usize = 64;
/// How many nodes it has at most.
const MOST_NODES: usize = 512;
/// How many comprehensions stand in each other at most.
const MOST_COMPREHENSIONS: usize = 2;
/// The fields that are known of an event before it happens.
const STAGE: [&str; 2] = ["kind", "direction"];
/// What one evaluation costs at most: the default of `limits.celCost`.
pub const MOST_COST: u64 = 10_000;

/// A mistake in an expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// The byte of the expression where it is, from 0.
    pub offset: usize,
    /// What is wrong, and what was expected.
    pub message: String,
}

impl Mistake {
    fn new(offset: usize, message: impl Into<String>) -> Self {
        Self { offset, message: message.into() }
    }

    /// The mistake with its line and column in the expression, from 1.
    pub fn describe(&self, source: &str) -> String {
        let before = source.get(..self.offset).unwrap_or(source);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        format!("line {line}, column {column} (offset {}): {}", self.offset, self.message)
    }
}

/// Compiles the regular expressions of `matches`, within the room that they may take.
pub trait Regexes {
    /// # Errors
    /// What is wrong with the pattern, for its author.
    fn compile(&mut self, source: &str) -> Result<Regex, String>;
}

/// An expression that can be evaluated.
#[derive(Debug)]
pub struct Expression {
    root: Node,
    cost: u64,
}

impl Expression {
    /// Reads, checks and measures an expression.
    ///
    /// # Errors
    /// All mistakes of the first of these steps that finds any.
    pub fn compile(source: &str, regexes: &mut dyn Regexes) -> Result<Self, Vec<Mistake>> {
        if source.len() > MOST_SOURCE {
            let message =
                format!("the expression is {} bytes long; at most {MOST_SOURCE} are read", source.len());
            return Err(vec![Mistake::new(MOST_SOURCE, message)]);
        }
        let syntax = parse::parse(source)?;
        let root = check::check(&syntax, regexes)?;
        let measured = cost::cost(&root);
        if measured.cost > MOST_COST {
            let (offset, part) = measured.worst;
            let message = format!(
                "the expression may cost {}, and at most {MOST_COST} is allowed; this part costs {part}: ask a shorter \
                 list or text, or write several rules",
                measured.cost
            );
            return Err(vec![Mistake::new(offset, message)]);
        }
        Ok(Self { root, cost: measured.cost })
    }

    /// What an evaluation costs at most.
    pub fn cost(&self) -> u64 {
        self.cost
    }

    /// Whether it holds for an event; the evaluation may cost so much.
    ///
    /// # Errors
    /// What keeps it from having a value.
    pub fn holds(&self, facts: &Facts<'_>, most_cost: u64) -> Result<bool, Failure> {
        Evaluation::new(facts, self.cost.min(most_cost)).bool(&self.root)
    }

    /// The first field that it reads of those whose paths begin so, and where.
    pub fn reads(&self, prefixes: &[&str]) -> Option<(&'static Field, usize)> {
        let mut fields = Vec::new();
        self.root.fields(&mut fields);
        let mut read = fields.into_iter();
        read.find(|(field, _)| prefixes.iter().any(|prefix| field.path.starts_with(prefix)))
    }

    /// The value that it has for every event of this kind and direction; none where other facts decide.
    pub fn settled(&self, stage: &Facts<'_>) -> Option<bool> {
        self.settled_by(stage, |field| STAGE.contains(&field.path))
    }

    /// The value that it has whatever the facts are that are not known; none where one of them decides, or where it has none.
    pub fn settled_by(&self, facts: &Facts<'_>, is_known: impl Fn(&Field) -> bool) -> Option<bool> {
        fold::settled(&self.root, facts, &is_known, self.cost)
    }
}
