//! Compares what became of a case with what its author expects.

use super::document::{Expectation, ExpectedCall, ExpectedVerdict, PolicyTest};
use super::{CallOutcome, Tried};
use crate::policy::document::Document;
use crate::policy::explain::ShownDecision;
use crate::problem::Problem;

const BUILTIN: &str = "postern/builtin/";

/// Says what differs, a sentence each; nothing where the expectation holds.
pub fn differences(expected: &Expectation, tried: &Tried) -> Vec<String> {
    let outcome = match tried {
        Ok(outcome) => outcome,
        Err(why) => return vec![format!("cannot be said: {why}")],
    };
    let mut differences = decision(expected, &outcome.decision);
    differences.extend(other_list("removed", expected.removed.as_ref(), &outcome.removed));
    differences.extend(other_list("redacted", expected.redacted.as_ref(), &outcome.redacted));
    if let Some(models) = expected.models.as_ref().filter(|models| **models != outcome.models) {
        let differs = format!("models: expected {}, it is {}", listed(models), listed(&outcome.models));
        differences.push(differs);
    }
    if let Some(calls) = &expected.calls {
        differences.extend(compare_calls(calls, &outcome.calls));
    }
    differences
}

/// Says how two lists differ, whatever their order.
fn other_list(what: &str, expected: Option<&Vec<String>>, found: &[String]) -> Option<String> {
    let sorted = |words: &[String]| {
        let mut words = words.to_vec();
        words.sort();
        words
    };
    let expected = expected.filter(|expected| sorted(expected) != sorted(found))?;
    Some(format!("{what}: expected {}, it is {}", listed(expected), listed(found)))
}

fn listed(words: &[String]) -> String {
    if words.is_empty() { "none".to_owned() } else { words.join(", ") }
}

fn decision(expected: &Expectation, decided: &ShownDecision) -> Vec<String> {
    let mut differences = Vec::new();
    if is_other_verdict(expected.verdict, decided) || is_other_rule(expected.rule.as_ref(), decided) {
        let rule = expected.rule.as_ref().map(|rule| format!(" by {rule}")).unwrap_or_default();
        let verdict = expected.verdict.map(ExpectedVerdict::as_str).unwrap_or_default();
        differences.push(format!("expected {verdict}{rule}, it is {decided}"));
    }
    if let Some(part) = &expected.reason
        && !decided.reason.as_ref().is_some_and(|reason| reason.contains(part))
    {
        differences.push(format!("reason: expected one with {part:?}, it is {decided}"));
    }
    differences
}

fn is_other_verdict(expected: Option<ExpectedVerdict>, decided: &ShownDecision) -> bool {
    expected.is_some_and(|verdict| verdict.as_str() != decided.verdict)
}

fn is_other_rule(expected: Option<&String>, decided: &ShownDecision) -> bool {
    expected.is_some() && expected != decided.rule.as_ref()
}

fn compare_calls(expected: &[ExpectedCall], calls: &[CallOutcome]) -> Vec<String> {
    if expected.len() != calls.len() {
        let names: Vec<&str> = calls.iter().map(|call| call.name.as_str()).collect();
        let listed = if names.is_empty() { String::new() } else { format!(": {}", names.join(", ")) };
        return vec![format!("calls: expected {}, the answer has {}{listed}", expected.len(), calls.len())];
    }
    let pairs = expected.iter().zip(calls).enumerate();
    pairs
        .filter(|(_, (expected, call))| {
            expected.name != call.name
                || is_other_verdict(expected.verdict, &call.decision)
                || is_other_rule(expected.rule.as_ref(), &call.decision)
        })
        .map(|(number, (expected, call))| {
            let verdict =
                expected.verdict.map(|verdict| format!(" {}", verdict.as_str())).unwrap_or_default();
            let rule = expected.rule.as_ref().map(|rule| format!(" by {rule}")).unwrap_or_default();
            format!(
                "calls[{number}]: expected {}{verdict}{rule}, it is {} {}",
                expected.name, call.name, call.decision
            )
        })
        .collect()
}

/// Finds expectations that no case can meet: they name a rule that none of the policies has.
pub fn unknown_rules(test: &PolicyTest, documents: &[Document]) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut check = |path: String, rule: Option<&String>| {
        let Some(rule) = rule.filter(|rule| !is_known(rule, documents)) else { return };
        let message = format!(
            "cannot be met: none of the policies has the rule {rule:?}; a rule's id is NAMESPACE/POLICY/RULE, or {BUILTIN}NAME"
        );
        problems.push(test.origin.locate(Problem::at(path, message)));
    };
    for (number, case) in test.cases.iter().enumerate() {
        let place = format!("cases[{number}].expect");
        check(format!("{place}.rule"), case.expect.rule.as_ref());
        for (item, call) in case.expect.calls.iter().flatten().enumerate() {
            check(format!("{place}.calls[{item}].rule"), call.rule.as_ref());
        }
    }
    problems
}

/// Sections that are rules themselves.
const SECTIONS: &[&str] =
    &["hostedTools", "providerState", "toolDefault", "limits", "shell", "edits", "failurePolicy"];

fn is_known(rule: &str, documents: &[Document]) -> bool {
    if rule.starts_with(BUILTIN) {
        return true;
    }
    documents.iter().any(|document| {
        let Some(name) = rule.strip_prefix(&document.id()).and_then(|rest| rest.strip_prefix('/')) else {
            return false;
        };
        let spec = &document.spec;
        let credential = name.strip_prefix("credentials/");
        spec.destinations.iter().any(|rule| rule.name == name)
            || spec.tools.iter().any(|rule| rule.name == name)
            || spec.rules.iter().any(|rule| rule.name == name)
            || spec.routes.iter().any(|route| route.name == name)
            || spec.credentials.iter().any(|rule| credential == Some(rule.name.as_str()))
            || SECTIONS.iter().any(|section| name.split('.').next() == Some(section))
    })
}
