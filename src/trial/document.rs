//! What users write: documents of kind `PolicyTest`, read with the place of every mistake.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde::Deserialize;
use serde_json::Value;

use super::files::Files;
use crate::call::Kind;
use crate::id::Timestamp;
use crate::policy::document::API_VERSION;
use crate::problem::Problem;
use crate::yaml;
use crate::yaml::origin::Origin;
use crate::yaml::read::{self, Context};

const KIND: &str = "PolicyTest";

/// Cases, and the policies that they are given to.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default, expecting = "a PolicyTest, a mapping")]
pub struct PolicyTest {
    api_version: String,
    kind: String,
    /// Files or directories, relative to the test's own file; all are one policy.
    pub policy: Vec<PathBuf>,
    /// The labels of the pod.
    pub labels: BTreeMap<String, String>,
    /// The time at which the cases are decided, for rules that ask for it.
    pub now: Option<Timestamp>,
    pub cases: Vec<TestCase>,
    /// Where it was read.
    #[serde(skip)]
    pub origin: Origin,
}

/// One case: a call, a request, or an event, and what is to become of it.
#[derive(Debug, Default, Deserialize)]
#[serde(
    rename_all = "camelCase",
    deny_unknown_fields,
    default,
    expecting = "a case: {name, toolCall|request|event, expect}"
)]
pub struct TestCase {
    pub name: String,
    pub tool_call: Option<TestCall>,
    pub request: Option<TestRequest>,
    /// The answer of a model to the request.
    pub answer: Option<TestAnswer>,
    /// The texts of the workspace, by their paths. Without it edits are not judged, as by a gateway without a workspace.
    pub files: Option<Files>,
    /// The id of an event.
    pub event: Option<String>,
    /// The file or directory of the event.
    pub from: Option<PathBuf>,
    pub expect: Expectation,
}

/// A tool call of a model.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default, expecting = "a call: {name, input}")]
pub struct TestCall {
    pub name: String,
    pub namespace: Option<String>,
    /// A mapping of parameters, or the text of a custom tool.
    pub input: Option<Value>,
    /// The tool's definition as a request has it.
    pub definition: Option<Value>,
    /// The names of the tools that the request offers.
    pub offers: Vec<String>,
    /// What kind of tool it is, in place of what the catalogue says.
    pub kind: Option<Kind>,
    pub commands: Vec<String>,
    pub paths: Vec<String>,
    pub urls: Vec<String>,
}

/// A request of an agent.
#[derive(Debug, Default, Deserialize)]
#[serde(
    rename_all = "camelCase",
    deny_unknown_fields,
    default,
    expecting = "a request: {url, method, headers, body|bodyFile}"
)]
pub struct TestRequest {
    /// `https://` or `http://`, with path and query.
    pub url: String,
    /// POST with a body, else GET.
    pub method: Option<String>,
    pub headers: BTreeMap<String, String>,
    /// A text, or anything else to be sent as JSON.
    pub body: Option<Value>,
    /// The file with the body, relative to the test's.
    pub body_file: Option<PathBuf>,
}

/// The answer of a model.
#[derive(Debug, Default, Deserialize)]
#[serde(
    rename_all = "camelCase",
    deny_unknown_fields,
    default,
    expecting = "an answer: {contentType, status, organization, body|bodyFile}"
)]
pub struct TestAnswer {
    /// 200 where it is not written.
    pub status: Option<u16>,
    pub content_type: Option<String>,
    /// The organization that the answer names.
    pub organization: Option<String>,
    pub body: Option<Value>,
    pub body_file: Option<PathBuf>,
}

/// What is to become of a case.
#[derive(Debug, Default, Deserialize)]
#[serde(
    rename_all = "camelCase",
    deny_unknown_fields,
    default,
    expecting = "an expectation: {verdict, rule}"
)]
pub struct Expectation {
    pub verdict: Option<ExpectedVerdict>,
    /// The rule's whole id.
    pub rule: Option<String>,
    /// A part of the reason.
    pub reason: Option<String>,
    /// Of a request: the types of all hosted tools that are taken out, in any order.
    pub removed: Option<Vec<String>>,
    /// Of a request: the detectors of all secrets that are replaced in it, in any order.
    pub redacted: Option<Vec<String>>,
    /// Of a request: the labels of all models that routes ask, one after the other.
    pub models: Option<Vec<String>>,
    /// Of an answer: all of its calls, in their order.
    pub calls: Option<Vec<ExpectedCall>>,
}

/// What is to become of one call of an answer.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default, expecting = "a call: {name, verdict, rule}")]
pub struct ExpectedCall {
    pub name: String,
    pub verdict: Option<ExpectedVerdict>,
    pub rule: Option<String>,
}

/// The verdicts of decisions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub enum ExpectedVerdict {
    Allow,
    Deny,
    Audit,
    WouldDeny,
}

impl ExpectedVerdict {
    /// The word in events.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "Allow",
            Self::Deny => "Deny",
            Self::Audit => "Audit",
            Self::WouldDeny => "WouldDeny",
        }
    }
}

impl PolicyTest {
    /// A path that the test names, relative to its own file.
    pub fn resolve(&self, path: &std::path::Path) -> PathBuf {
        self.origin.resolve(&path.to_string_lossy())
    }
}

/// Reads the tests of one file, several of them with `---` between. Tells every mistake that can be found in the file
/// alone; a file without any test is one.
///
/// # Errors
/// The mistakes, each with its place.
pub fn parse(file: &str, text: &str) -> Result<Vec<PolicyTest>, Vec<Problem>> {
    let nodes = yaml::documents(text).map_err(|problem| vec![problem.in_file(file)])?;
    if nodes.is_empty() {
        let message = "there is no document in it; a test begins with `kind: PolicyTest`";
        return Err(vec![Problem::at("", message).in_file(file)]);
    }
    let (mut tests, mut problems) = (Vec::new(), Vec::new());
    for mut node in nodes {
        let (test, faults) = read::read::<PolicyTest>(&mut node, &Context::default());
        let mut found: Vec<Problem> =
            faults.into_iter().map(|fault| Problem::from(fault).in_file(file)).collect();
        if let Some(mut test) = test {
            test.origin = Origin::of(file, &node);
            test.origin.add(&mut found, mistakes(&test));
            tests.push(test);
        }
        problems.extend(found);
    }
    if problems.is_empty() { Ok(tests) } else { Err(problems) }
}

/// Finds what a type cannot say.
fn mistakes(test: &PolicyTest) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut say = |path: &str, message: String| problems.push(Problem::at(path, message));
    if test.api_version != API_VERSION {
        say("apiVersion", format!("expected {API_VERSION}"));
    }
    if test.kind != KIND {
        say("kind", format!("expected {KIND}"));
    }
    if test.policy.is_empty() {
        say("policy", "is required: the files or directories of the policy that is tested".to_owned());
    }
    if test.cases.is_empty() {
        say("cases", "is required: a test without a case tests nothing".to_owned());
    }
    let mut names = BTreeSet::new();
    for (number, case) in test.cases.iter().enumerate() {
        let place = format!("cases[{number}]");
        if case.name.is_empty() {
            say(&place, "name: is required".to_owned());
        } else if !names.insert(&case.name) {
            say(&format!("{place}.name"), format!("another case is called {:?}, too", case.name));
        }
        for problem in case_mistakes(case) {
            say(&within(&place, &problem.path), problem.message);
        }
    }
    problems
}

/// The path of a field of a case.
pub fn within(case: &str, field: &str) -> String {
    if field.is_empty() { case.to_owned() } else { format!("{case}.{field}") }
}

fn case_mistakes(case: &TestCase) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut say = |path: &str, message: &str| problems.push(Problem::at(path, message));
    let subjects = [case.tool_call.is_some(), case.request.is_some(), case.event.is_some()];
    match subjects.iter().filter(|subject| **subject).count() {
        1 => {}
        0 => say("", "is about nothing: write one of toolCall, request and event"),
        _ => say("", "is about several things: write one of toolCall, request and event"),
    }
    if case.event.is_some() != case.from.is_some() {
        say("from", "event and from belong together: the id, and the file or directory it is read from");
    }
    if case.answer.is_some() && case.request.is_none() {
        say("answer", "an answer belongs to a request");
    }
    if case.files.is_some() && case.tool_call.is_none() && case.answer.is_none() {
        say("files", "files belong to a toolCall, or to an answer with calls in it");
    }
    if case.files.is_some() && case.tool_call.as_ref().is_some_and(|call| call.kind.is_some()) {
        say("files", "edits are read from the inputs of known tools: leave out toolCall.kind");
    }
    if case.tool_call.as_ref().is_some_and(|call| call.name.is_empty()) {
        say("toolCall.name", "is required");
    }
    let has_facts =
        |call: &TestCall| !call.commands.is_empty() || !call.paths.is_empty() || !call.urls.is_empty();
    if case.tool_call.as_ref().is_some_and(|call| call.kind.is_none() && has_facts(call)) {
        say("toolCall.kind", "is required: commands, paths and urls say what a call of a kind is about");
    }
    if case.request.as_ref().is_some_and(|request| request.url.is_empty()) {
        say("request.url", "is required");
    }
    let twice = "body and bodyFile are two ways to write one thing: keep one of them";
    if case.request.as_ref().is_some_and(|request| request.body.is_some() && request.body_file.is_some()) {
        say("request.bodyFile", twice);
    }
    if let Some(answer) = &case.answer {
        match (&answer.body, &answer.body_file) {
            (Some(_), Some(_)) => say("answer.bodyFile", twice),
            (None, None) => say("answer", "body or bodyFile is required"),
            (Some(_), None) | (None, Some(_)) => {}
        }
    }
    let expect = &case.expect;
    if expect.verdict.is_none() {
        say("expect.verdict", "is required: Allow, Deny, Audit or WouldDeny");
    }
    if expect.removed.is_some() && case.request.is_none() {
        say("expect.removed", "cannot be met: hosted tools are taken out of requests alone");
    }
    if expect.models.is_some() && case.request.is_none() {
        say("expect.models", "cannot be met: routes are about requests alone");
    }
    if expect.redacted.is_some() && case.request.is_none() {
        say("expect.redacted", "cannot be met: secrets are replaced in requests alone");
    }
    if expect.calls.is_some() && case.answer.is_none() {
        say("expect.calls", "cannot be met: the case has no answer with calls in it");
    }
    problems
}

#[cfg(test)]
#[path = "document_tests.rs"]
mod tests;
