//! A policy as the cluster holds it: its key in the ConfigMap, its document or its problems, and its gist. Pure.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use crate::policy::document::{Action, Destination, Document, Kind};
use crate::problem::Problem;

/// The longest name of a key of a ConfigMap.
const LONGEST_KEY: usize = 253;

/// A policy that could select pods of a namespace, as the cluster holds it now.
#[derive(Debug, Clone)]
pub(super) struct PolicyCandidate {
    /// Its key in the ConfigMap, and the file of its problems.
    pub(super) key: String,
    pub(super) read: Result<Document, Vec<Problem>>,
    /// What the next version is compared with.
    pub(super) gist: Arc<Gist>,
}

/// Digests of a policy, to compare it with its next version; empty if the policy cannot be read.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Gist {
    /// The digest of everything but its destinations.
    pub(super) rest: u64,
    /// The digest of each destination, and whether it is a Deny.
    pub(super) rules: BTreeSet<(u64, bool)>,
}

/// The key of a policy in the ConfigMap. A name too long for one is cut, and told apart by its digest.
pub(super) fn key(kind: Kind, name: &str) -> String {
    let tier = match kind {
        Kind::EgressPolicy => "namespace",
        Kind::ClusterEgressPolicy => "cluster",
    };
    let key = format!("{tier}-{name}.json");
    if key.len() <= LONGEST_KEY {
        return key;
    }
    let digest = crate::digest::sha256_hex(name.as_bytes());
    let start: String = name.chars().take(150).collect();
    format!("{tier}-{start}.{digest}.json")
}

/// Whether a key of the ConfigMap is a ClusterEgressPolicy's.
pub(super) fn is_cluster(key: &str) -> bool {
    key.starts_with("cluster-")
}

impl Gist {
    /// The gist of a document.
    pub(super) fn of(document: &Document) -> Self {
        let mut rest = document.clone();
        rest.spec.destinations = Vec::new();
        let rule = |rule: &Destination| (digest(rule), rule.action == Some(Action::Deny));
        Self { rest: digest(&rest), rules: document.spec.destinations.iter().map(rule).collect() }
    }
}

/// The digest of a part of a policy.
pub(super) fn digest(part: &impl serde::Serialize) -> u64 {
    let mut hasher = DefaultHasher::new();
    serde_json::to_string(part).unwrap_or_default().hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_too_long_for_a_key_is_cut_and_stays_its_own() {
        let (a, b) = ("a".repeat(250), format!("{}b", "a".repeat(249)));
        let (a, b) = (key(Kind::EgressPolicy, &a), key(Kind::EgressPolicy, &b));
        assert!(a.len() <= LONGEST_KEY && a != b);
    }
}
