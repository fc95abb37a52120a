//! One document judged and compiled: every mistake that it holds by itself, with its field.

mod credential;
mod destination;
mod hosted;
mod limits;
mod text;
mod tool;
mod when;

use std::collections::HashMap;

use crate::call::Inputs;
use crate::problem::Problem;

use super::conflict::{Claims, Spoken};
use super::credential::Credential;

use super::document::tool::Permission;
use super::document::{API_VERSION, Document, FailurePolicy, Kind, Operator, Selector};
use super::field;
use super::hosted::Section;
use super::limits::Written as Limits;
use super::rule::{Rule, Tier};
use super::tool::Rule as ToolRule;
use crate::decision::Enforcement;

/// A document, compiled.
pub(super) struct Lowered {
    pub(super) scope: Scope,
    /// With the field each stands in.
    pub(super) rules: Vec<(String, Rule)>,
    pub(super) tools: Vec<ToolRule>,
    pub(super) written: Written,
    /// With the field each stands in.
    pub(super) credentials: Vec<(String, Credential)>,
}

/// What a policy writes once, and several policies together decide by the strictest; none where it is not written.
#[derive(Debug)]
pub(super) struct Written {
    pub(super) hosted_tools: Option<Section>,
    pub(super) url_sources: Option<Permission>,
    pub(super) provider_state: Option<Permission>,
    pub(super) tool_default: Option<Permission>,
    pub(super) tool_inputs: Option<Inputs>,
    pub(super) failure: Option<FailurePolicy>,
    pub(super) limits: Limits,
}

/// What every rule of a policy shares.
pub(super) struct Scope {
    pub(super) tier: Tier,
    /// `namespace/policy` or `-/policy`.
    pub(super) policy: String,
    /// `-` for the cluster's.
    pub(super) namespace: String,
    pub(super) audit: bool,
}

impl Scope {
    pub(super) fn enforcement(&self) -> Enforcement {
        Enforcement::of(self.audit)
    }
}

/// Mistakes, gathered.
#[derive(Default)]
pub(super) struct Problems(Vec<Problem>);

impl Problems {
    pub(super) fn add(&mut self, path: impl Into<String>, message: impl Into<String>) {
        self.0.push(Problem::at(path, message));
    }

    /// The value, or its mistake at a field.
    pub(super) fn keep<T, E: ToString>(&mut self, path: &str, result: Result<T, E>) -> Option<T> {
        result.map_err(|error| self.add(path, error.to_string())).ok()
    }
}

/// Judges one document and compiles its rules.
pub(super) fn lower(document: &Document) -> Result<Lowered, Vec<Problem>> {
    let mut problems = Problems::default();
    let scope = scope(document, &mut problems);
    selectors(document, &mut problems);
    let spec = &document.spec;
    let mut names = Names::default();
    let rules = destination::lower(&spec.destinations, &scope, &mut names, &mut problems);
    let tools = tool::lower(&spec.tools, &scope, &mut names, &mut problems);
    let written = Written {
        hosted_tools: spec.hosted_tools.as_ref().and_then(|written| hosted::lower(written, &mut problems)),
        url_sources: spec.hosted_tools.as_ref().and_then(|written| written.url_sources),
        provider_state: spec.provider_state,
        tool_default: spec.tool_default,
        tool_inputs: spec.audit.as_ref().and_then(|written| written.tool_inputs),
        failure: spec.failure_policy,
        limits: spec.limits.as_ref().map(|written| limits::lower(written, &mut problems)).unwrap_or_default(),
    };
    let credentials = credential::lower(document, &scope, &mut problems);
    let mut claims = Claims::default();
    for (path, credential) in &credentials {
        for message in claims.within_policy(credential) {
            problems.add(path.as_str(), message);
        }
    }
    let mut spoken = Spoken::default();
    for (path, rule) in &rules {
        if let Some(message) = spoken.clash(rule) {
            problems.add(field::key(path, "provider"), message);
        }
    }
    if problems.0.is_empty() {
        Ok(Lowered { scope, rules, tools, written, credentials })
    } else {
        Err(problems.0)
    }
}

/// Judges what says which policy this is.
fn scope(document: &Document, problems: &mut Problems) -> Scope {
    if document.api_version != API_VERSION {
        let message = if document.api_version.is_empty() {
            format!("is required: {API_VERSION}")
        } else {
            format!("expected {API_VERSION}")
        };
        problems.add("apiVersion", message);
    }
    if document.kind.is_none() {
        problems.add("kind", "is required: EgressPolicy or ClusterEgressPolicy");
    }
    let metadata = &document.metadata;
    problems.keep("metadata.name", text::policy_name(&metadata.name));
    let tier = match (document.kind, &metadata.namespace) {
        (Some(Kind::ClusterEgressPolicy), written) => {
            if written.is_some() {
                problems.add("metadata.namespace", "a ClusterEgressPolicy has no namespace");
            }
            Tier::Cluster
        }
        (Some(Kind::EgressPolicy) | None, written) => {
            if let Some(namespace) = written {
                problems.keep("metadata.namespace", text::namespace(namespace));
            }
            Tier::Namespace
        }
    };
    let namespace = document.namespace().to_owned();
    if namespace == "postern" && metadata.name == "builtin" {
        problems.add("metadata.name", "postern/builtin is the name of what is built in; choose another");
    }
    let policy = document.id();
    let audit = document.spec.enforcement == Some(Enforcement::Audit);
    Scope { tier, policy, namespace, audit }
}

fn selectors(document: &Document, problems: &mut Problems) {
    let spec = &document.spec;
    if spec.namespace_selector.is_some() && document.kind == Some(Kind::EgressPolicy) {
        problems.add(
            "spec.namespaceSelector",
            "belongs to a ClusterEgressPolicy: an EgressPolicy has its own namespace",
        );
    }
    for (path, selector) in
        [("spec.namespaceSelector", &spec.namespace_selector), ("spec.podSelector", &spec.pod_selector)]
    {
        if let Some(selector) = selector {
            expressions(path, selector, problems);
        }
    }
}

fn expressions(path: &str, selector: &Selector, problems: &mut Problems) {
    let all = field::key(path, "matchExpressions");
    for (number, expression) in selector.match_expressions.iter().enumerate() {
        let path = field::item(&all, number);
        if expression.key.is_empty() {
            problems.add(field::key(&path, "key"), "is required");
        }
        let values = field::key(&path, "values");
        match expression.operator {
            None => {
                problems.add(field::key(&path, "operator"), "is required: In, NotIn, Exists or DoesNotExist")
            }
            Some(Operator::In | Operator::NotIn) if expression.values.is_empty() => {
                problems.add(values, "In and NotIn need at least one value");
            }
            Some(Operator::Exists | Operator::DoesNotExist) if !expression.values.is_empty() => {
                problems.add(values, "Exists and DoesNotExist take no values");
            }
            Some(Operator::In | Operator::NotIn | Operator::Exists | Operator::DoesNotExist) => {}
        }
    }
}

/// Judges the names of rules, which are unique in their policy.
#[derive(Default)]
struct Names<'a>(HashMap<&'a str, String>);

impl<'a> Names<'a> {
    fn add(&mut self, path: &str, name: &'a str, problems: &mut Problems) {
        let path = field::key(path, "name");
        if problems.keep(&path, text::rule_name(name)).is_none() {
            return;
        }
        if let Some(first) = self.0.get(name) {
            problems.add(path, format!("the name `{name}` is taken by {first}"));
        } else {
            self.0.insert(name, field::parent(&path).to_owned());
        }
    }
}

/// Reads each item of a list, and tells of each that cannot be read; none where one could not.
fn each<T>(
    list: &str,
    written: &[String],
    problems: &mut Problems,
    read: impl Fn(&str) -> Result<T, String>,
) -> Option<Vec<T>> {
    let mut all = Vec::with_capacity(written.len());
    for (number, text) in written.iter().enumerate() {
        let result = read(text).map_err(|error| format!("{}: {error}", field::quoted(text)));
        all.extend(problems.keep(&field::item(list, number), result));
    }
    (all.len() == written.len()).then_some(all)
}

/// Judges ports: sorted, without repetition; none where there are none to judge.
fn ports(path: &str, written: Option<&Vec<i64>>, problems: &mut Problems) -> Option<Vec<u16>> {
    let path = field::key(path, "ports");
    let written = written?;
    if written.is_empty() {
        problems.add(path.as_str(), "name at least one port, or leave the field out");
    }
    let mut ports = Vec::with_capacity(written.len());
    for (number, port) in written.iter().enumerate() {
        match u16::try_from(*port) {
            Ok(port) if port > 0 => ports.push(port),
            Ok(_) | Err(_) => {
                problems.add(field::item(&path, number), format!("{port} is no port; expected 1 to 65535"));
            }
        }
    }
    ports.sort_unstable();
    ports.dedup();
    Some(ports)
}
