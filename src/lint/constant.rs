//! Tests of conditions that hold for every call, or for none.

use regex::Regex;

use super::quoted;
use crate::call::Kind;
use crate::policy::document::{Comparison, Document, Scalar, ToolRule, When};
use crate::problem::Problem;

/// A text that hardly any expression is about.
const UNLIKELY: &str = "\u{1}postern\u{10_fffd}";

pub(super) fn warnings(document: &Document) -> Vec<Problem> {
    let mut warnings = Vec::new();
    for (number, rule) in document.spec.tools.iter().enumerate() {
        if let Some(when) = &rule.when {
            tests(&format!("spec.tools[{number}].when"), when, rule, &mut warnings);
        }
    }
    warnings
}

fn tests(place: &str, when: &When, rule: &ToolRule, warnings: &mut Vec<Problem>) {
    for (key, list) in [("any", &when.any), ("all", &when.all)] {
        for (item, inner) in list.iter().flatten().enumerate() {
            tests(&format!("{place}.{key}[{item}]"), inner, rule, warnings);
        }
    }
    if let Some(inner) = &when.not {
        tests(&format!("{place}.not"), inner, rule, warnings);
    }
    let (Some(param), Some(operator)) = (&when.param, when.operator) else { return };
    let Some(why) = everywhere(param, operator, when.values.as_deref().unwrap_or_default(), rule) else {
        return;
    };
    let holds = if operator.is_negative() { "never holds" } else { "always holds" };
    warnings.push(Problem::at(place, format!("the test {holds}: {why}; say what is meant, or take it away")));
}

/// Why a test says the same of every call.
fn everywhere(param: &str, operator: Comparison, values: &[Scalar], rule: &ToolRule) -> Option<String> {
    let mut texts = values.iter().map(Scalar::text);
    match operator {
        Comparison::Matches | Comparison::NotMatches => {
            let written = texts.find(|text| matches_everything(text))?;
            Some(format!("{} is found in every text", quoted(&written)))
        }
        Comparison::HostIn | Comparison::NotHostIn => {
            texts.any(|text| text == "**").then(|| "\"**\" is every host".to_owned())
        }
        Comparison::Exists | Comparison::NotExists => {
            let has = match rule.kind.filter(|_| rule.tools.is_none()) {
                Some(Kind::Shell) => param == "command",
                Some(Kind::Fetch) => param == "url",
                Some(Kind::Read | Kind::Write) => param == "paths",
                None => false,
            };
            (has || param == "$").then(|| format!("every such call has {}", quoted(param)))
        }
        Comparison::Equals
        | Comparison::NotEquals
        | Comparison::Contains
        | Comparison::NotContains
        | Comparison::StartsWith
        | Comparison::NotStartsWith
        | Comparison::In
        | Comparison::NotIn
        | Comparison::Within
        | Comparison::NotWithin => None,
    }
}

fn matches_everything(written: &str) -> bool {
    Regex::new(written).is_ok_and(|regex| regex.is_match("") && regex.is_match(UNLIKELY))
}
