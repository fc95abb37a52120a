//! A scripted API server for tests, and short ways to say what is in it.

use crate::policy::compile::Labels;
use crate::policy::document::Kind;
use kube::api::DynamicObject;

use super::policies::Readings;
use super::publish::Candidate;

/// A policy of the namespace `agents` with this spec (YAML at two spaces).
pub(super) fn policy(name: &str, spec: &str) -> String {
    format!(
        "apiVersion: postern.dev/v1alpha1\nkind: EgressPolicy\nmetadata: {{name: {name}, namespace: agents}}\nspec:\n  {spec}\n"
    )
}

/// The object of a policy, as the API server has it.
pub(super) fn object(text: &str) -> DynamicObject {
    let mut object: DynamicObject = serde_yaml::from_str(text).unwrap();
    object.metadata.uid = object.metadata.name.clone().map(|name| format!("uid-{name}"));
    object.metadata.generation = Some(1);
    object
}

/// A policy as the controller has read it.
pub(super) fn candidate(text: &str) -> Candidate {
    let cluster = text.contains("kind: ClusterEgressPolicy");
    let kind = if cluster { Kind::ClusterEgressPolicy } else { Kind::EgressPolicy };
    Readings::default().read(kind, &object(text)).candidate.clone()
}

pub(super) fn labels(pairs: &[(&str, &str)]) -> Labels {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}
