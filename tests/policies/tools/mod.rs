//! Tool calls against policies: what their start decides, what their input decides, and by which rule.

mod combination;
mod commands;
mod control_files;
mod hosted;
mod names;
mod problems;
mod reference;
mod shell;

use postern::call::{Advice, CallVerdict, Facts, Input, Judge, Kind, Start, Tool, ToolCall};
use postern::decision::Decision;
use postern::policy::{Labels, Policy, document};
use serde_json::Value;

/// An EgressPolicy `agents/NAME` whose spec has these lines.
fn namespaced(name: &str, spec: &str) -> String {
    resource("EgressPolicy", &format!("{{name: {name}, namespace: agents}}"), spec)
}

/// A ClusterEgressPolicy `-/NAME` whose spec has these lines.
fn cluster(name: &str, spec: &str) -> String {
    resource("ClusterEgressPolicy", &format!("{{name: {name}}}"), spec)
}

/// The same policy, which only records.
fn audit(policy: &str) -> String {
    policy.replace("spec:\n", "spec:\n  enforcement: Audit\n")
}

fn resource(kind: &str, metadata: &str, spec: &str) -> String {
    let lines: String = spec.trim().lines().map(|line| format!("  {}\n", line.trim())).collect();
    format!("apiVersion: postern.dev/v1alpha1\nkind: {kind}\nmetadata: {metadata}\nspec:\n{lines}")
}

fn policy(documents: &[String]) -> Policy {
    let documents = document::parse("policy.yaml", &documents.join("---\n")).unwrap();
    Policy::compile(&documents, &Labels::new()).unwrap()
}

/// One policy `agents/p` of these tool rules, in flow style.
fn rules(rules: &[&str]) -> Policy {
    policy(&[namespaced("p", &format!("tools: [{}]", rules.join(", ")))])
}

/// A catalogue as a provider has one, small.
fn kinds(name: &str) -> &'static [Kind] {
    match name {
        "Bash" => &[Kind::Shell],
        "Read" => &[Kind::Read],
        "Write" | "Edit" => &[Kind::Write],
        "editor" => &[Kind::Read, Kind::Write],
        "WebFetch" => &[Kind::Fetch],
        _ => &[],
    }
}

/// What that catalogue finds in an input; nothing where the input is not what the tool takes.
fn facts<'a>(name: &str, input: &'a Value) -> Option<Facts<'a>> {
    let text = |param: &str| input.get(param).and_then(Value::as_str);
    let list = |param: &str| text(param).map(Into::into).into_iter().collect();
    let facts = match name {
        "Bash" => Facts { commands: list("command"), ..Facts::new(Kind::Shell) },
        "Read" => Facts { paths: list("file_path"), ..Facts::new(Kind::Read) },
        "Write" | "Edit" => Facts { paths: list("file_path"), ..Facts::new(Kind::Write) },
        "WebFetch" => Facts { urls: list("url"), ..Facts::new(Kind::Fetch) },
        "editor" => {
            let kind = if text("command")? == "view" { Kind::Read } else { Kind::Write };
            Facts { paths: list("path"), ..Facts::new(kind) }
        }
        _ => return None,
    };
    Some(facts)
}

/// A name with its namespace before a slash.
fn tool(name: &str) -> Tool<'_> {
    let (namespace, name) = match name.split_once('/') {
        Some((namespace, name)) => (Some(namespace), name),
        None => (None, name),
    };
    Tool { namespace, kinds: kinds(name), ..Tool::named(name) }
}

fn complete(policy: &Policy, name: &str, input: &Value) -> CallVerdict {
    let tool = tool(name);
    let facts = facts(tool.name, input);
    let input = match input {
        Value::String(text) => Input::Text(text),
        other @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
            Input::Json(other)
        }
    };
    policy.complete(&ToolCall { tool, input, facts: facts.as_ref(), derived: &[] })
}

/// `Deny agents/p/rule`; without a rule the verdict alone.
fn ruled(decision: &Decision) -> String {
    let rule = decision.rule.as_ref().map(|rule| format!(" {rule}")).unwrap_or_default();
    format!("{}{rule}", decision.verdict.as_str())
}

/// A verdict with what is recorded beside it, and `!` where the tool is not available at all.
fn said(verdict: &CallVerdict) -> String {
    let mut text = ruled(&verdict.decision);
    if text.starts_with("Deny") && verdict.advice == Advice::NotAvailable {
        text += " !";
    }
    verdict.audited.iter().for_each(|audited| text += &format!(" + {}", ruled(audited)));
    text
}

fn started(policy: &Policy, name: &str) -> String {
    match policy.start(&tool(name)) {
        Start::Allow(verdict) => format!("starts {}", said(&verdict)),
        Start::Deny(verdict) => format!("stops {}", said(&verdict)),
        Start::Observe => "observed".to_owned(),
        Start::NeedsInput => "held".to_owned(),
    }
}

/// What becomes of `NAME` or `NAME INPUT`. What the start decides, the whole call must not decide otherwise.
fn decide(policy: &Policy, call: &str) -> String {
    let (name, input) = call.split_once(' ').unwrap_or((call, ""));
    if input.is_empty() {
        return started(policy, name);
    }
    let input = serde_json::from_str(input).unwrap();
    let verdict = complete(policy, name, &input);
    match policy.start(&tool(name)) {
        Start::Deny(early) => assert_eq!(said(&early), said(&verdict), "{call}"),
        Start::Allow(early) => assert_eq!(early.decision.verdict, verdict.decision.verdict, "{call}"),
        Start::Observe => assert_ne!(verdict.decision.verdict.as_str(), "Deny", "{call}"),
        Start::NeedsInput => {}
    }
    said(&verdict)
}

/// Compares decisions with a table of `call = decision` lines.
#[track_caller]
fn expect(policy: &Policy, table: &str) {
    super::compare(table, |call| decide(policy, call));
}
