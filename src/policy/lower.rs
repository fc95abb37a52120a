//! One document judged and compiled: every mistake that it holds by itself, with its field.

use crate::decision::Enforcement;
use crate::problem::Problem;

use super::document::{API_VERSION, Document, Kind, Operator, Selector};
use super::scope::{Owner, Tier};
use super::section::{LoweredSections, Lowering, Problems, namespace as namespace_name, policy_name};
use crate::yaml::field;

/// A document, compiled.
pub(super) struct LoweredPolicy {
    pub(super) owner: Owner,
    pub(super) sections: LoweredSections,
}

/// Judges one document and compiles its rules.
pub(super) fn lower(document: &Document) -> Result<LoweredPolicy, Vec<Problem>> {
    let mut problems = Problems::default();
    let owner = owner(document, &mut problems);
    selectors(document, &mut problems);
    let mut lowering = Lowering::new(&owner, document.kind, &document.origin, problems);
    let sections = LoweredSections::new(&document.spec, &mut lowering);
    lowering.problems.into_result(())?;
    Ok(LoweredPolicy { owner, sections })
}

/// Judges what says which policy this is.
fn owner(document: &Document, problems: &mut Problems) -> Owner {
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
    problems.keep("metadata.name", policy_name(&metadata.name));
    let tier = match (document.kind, &metadata.namespace) {
        (Some(Kind::ClusterEgressPolicy), written) => {
            if written.is_some() {
                problems.add("metadata.namespace", "a ClusterEgressPolicy has no namespace");
            }
            Tier::Cluster
        }
        (Some(Kind::EgressPolicy) | None, written) => {
            if let Some(namespace) = written {
                problems.keep("metadata.namespace", namespace_name(namespace));
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
    Owner { tier, policy, namespace, audit }
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
