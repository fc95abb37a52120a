//! Rules over facts, judged and compiled.

use regex::Regex;

use super::super::{Lowering, Problems, text};
use super::place::Places;
use super::written::Rule;
use super::{CallReads, FactRule};
use crate::policy::cel::{Expression, Mistake, Regexes};
use crate::policy::condition::{RegexBudget, compile};
use crate::problem::Problem;
use crate::yaml::field;

/// The most rules of a policy.
const MOST_RULES: usize = 64;

/// Compiles the rules of a policy; those with mistakes are left out.
pub(super) fn lower<'a>(written: &'a [Rule], lowering: &mut Lowering<'a>) -> Vec<FactRule> {
    if written.len() > MOST_RULES {
        let message = format!("has {} rules; a policy has at most {MOST_RULES}", written.len());
        lowering.problems.add("spec.rules", message);
        return Vec::new();
    }
    let mut budget = RegexBudget::default();
    let rules = written.iter().enumerate().map(|(number, written)| {
        let path = field::item("spec.rules", number);
        lowering.rule_name(&path, &written.name);
        rule(&path, written, &mut budget, lowering)
    });
    rules.flatten().collect()
}

fn rule(
    path: &str,
    written: &Rule,
    budget: &mut RegexBudget,
    lowering: &mut Lowering<'_>,
) -> Option<FactRule> {
    let (owner, problems) = (lowering.owner, &mut lowering.problems);
    if written.action.is_none() {
        problems.add(field::key(path, "action"), "is required: Deny or Audit");
    }
    let reason = written.reason.clone().unwrap_or_default();
    problems.keep(&field::key(path, "reason"), text::reason(&reason));
    let when = field::key(path, "when");
    let Some(source) = &written.when else {
        problems.add(when, "is required: an expression, as in event.http.method == \"POST\"");
        return None;
    };
    let (expression, places) =
        match Expression::compile(source, &mut Budgeted(budget)).and_then(|expression| {
            let places = Places::of(&expression, written.action)?;
            Ok((expression, places))
        }) {
            Ok(compiled) => compiled,
            Err(mistakes) => {
                mistakes.iter().for_each(|mistake| say(&when, source, mistake, problems));
                return None;
            }
        };
    Some(FactRule {
        id: owner.rule(&written.name),
        audit: owner.audit,
        action: written.action?,
        source: source.clone(),
        places,
        reads: CallReads::of(&expression),
        expression,
        reason,
    })
}

fn say(path: &str, source: &str, mistake: &Mistake, problems: &mut Problems) {
    let problem = Problem::at(path, mistake.describe(source));
    problems.push(Problem { part: Some(Box::new((source.to_owned(), mistake.offset))), ..problem });
}

/// Regular expressions within the room of a policy.
struct Budgeted<'b>(&'b mut RegexBudget);

impl Regexes for Budgeted<'_> {
    fn compile(&mut self, source: &str) -> Result<Regex, String> {
        compile(source, self.0)
    }
}
