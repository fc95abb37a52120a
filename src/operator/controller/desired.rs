//! Computes what a namespace shall have, from its policies and its present ConfigMap. Pure, and slow where there are many.

use std::cell::LazyCell;
use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;

use super::candidate::is_cluster;
use super::known_fields::KnownFields;
use super::packing::{PackedDocuments, pack, pack_both, unpack, unpack_older};
use super::policies::selects_namespace;
use super::previous::{OlderForm, older};
use super::publish::{PolicyRefusal, publish};
use super::report::Trouble;
use super::watch::NamespaceInputs;
use crate::operator::authority::CaConstraints;
use crate::policy::compile::revision;
use crate::policy::document::{Document, Selector};

/// What a namespace shall have.
#[derive(Debug)]
pub(super) struct DesiredState {
    pub(super) documents: BTreeMap<String, Document>,
    pub(super) refused: BTreeMap<String, PolicyRefusal>,
    pub(super) packed: PackedDocuments,
    pub(super) revision: String,
    /// The hosts that its CA shall vouch for.
    pub(super) constraints: CaConstraints,
    /// The revision of the form for gateways of the last release, if they cannot read the newest.
    pub(super) older_revision: Option<String>,
    /// The fields that those gateways do not know, by policy key.
    pub(super) beyond: BTreeMap<String, Vec<String>>,
    pub(super) trouble: Option<Trouble>,
}

impl DesiredState {
    /// Which pods each document selects.
    pub(super) fn in_force(&self) -> BTreeMap<String, Option<Selector>> {
        self.documents
            .iter()
            .map(|(key, document)| (key.clone(), document.spec.pod_selector.clone()))
            .collect()
    }

    /// The hosts of each policy that the CA has no room for.
    pub(super) fn left_out(&self) -> BTreeMap<String, Vec<String>> {
        let of_each = self.documents.iter();
        let of_each = of_each.map(|(key, document)| (key.clone(), self.constraints.left_out_of(document)));
        of_each.filter(|(_, hosts)| !hosts.is_empty()).collect()
    }
}

/// Computes what a namespace shall have whose ConfigMap is `current`. `floors` are the last good versions of the
/// cluster's policies: a namespace that came later never had them. `others` counts the bytes of the other keys of the
/// ConfigMap; `known` are the fields that gateways of the last release know.
pub(super) fn choose(
    scene: &NamespaceInputs,
    current: Option<&ConfigMap>,
    floors: BTreeMap<String, Document>,
    others: usize,
    known: &KnownFields,
) -> DesiredState {
    let last = LazyCell::new(|| current.map(unpack).unwrap_or_default());
    let with_floors = |had: BTreeMap<String, Document>| {
        let mut last_good = floors;
        last_good.extend(had);
        last_good.retain(|_, document| selects_namespace(document, &scene.labels));
        last_good
    };
    let last_good = || with_floors.clone()(last.clone());
    let published = publish(&scene.candidates, last_good, &scene.pods);
    let (documents, mut packed, trouble) = match pack(&published.documents, others) {
        Ok(packed) => (published.documents, packed, None),
        Err(error) => {
            let (documents, packed, instead) = fallen_back(&published.documents, last.clone(), others);
            let message = format!("{error}; {instead}");
            (documents, packed, Some(Trouble { reason: "TooLarge", message }))
        }
    };
    let given_last = || with_floors(current.map(unpack_older).unwrap_or_default());
    let OlderForm { documents: older, beyond } = older(known, &documents, given_last);
    let mut vouched: Vec<Document> = documents.values().cloned().collect();
    let newest_revision = revision(&vouched);
    let mut older_revision = None;
    // If both forms do not fit, older gateways get only the newest, and report that they do not know it.
    if !beyond.is_empty()
        && let Ok(both) = pack_both(&documents, &older, others)
    {
        packed = both;
        let older: Vec<Document> = older.into_values().collect();
        older_revision = Some(revision(&older));
        // The CA must vouch for the hosts that either form inspects.
        vouched.extend(older);
    }
    let (revision, constraints) = (newest_revision, CaConstraints::of(&vouched));
    let refused = published.refused;
    DesiredState { documents, refused, packed, revision, constraints, older_revision, beyond, trouble }
}

/// What is published if not everything fits, and a sentence that says so. However many policies a namespace has, a
/// change of the cluster's policies comes into force.
fn fallen_back(
    wanted: &BTreeMap<String, Document>,
    last: BTreeMap<String, Document>,
    others: usize,
) -> (BTreeMap<String, Document>, PackedDocuments, &'static str) {
    let of_cluster = |documents: &BTreeMap<String, Document>| -> BTreeMap<String, Document> {
        documents.iter().filter(|(key, _)| is_cluster(key)).map(|(k, v)| (k.clone(), v.clone())).collect()
    };
    let cluster = of_cluster(wanted);
    let known =
        |documents: &BTreeMap<String, Document>| revision(&documents.values().cloned().collect::<Vec<_>>());
    if known(&of_cluster(&last)) != known(&cluster)
        && let Ok(packed) = pack(&cluster, others)
    {
        return (cluster, packed, "the cluster's policies alone are in force");
    }
    let packed = pack(&last, others).unwrap_or_default();
    (last, packed, "what was published before stays in force")
}

#[cfg(test)]
mod tests {
    use super::super::testing::{candidate, cluster_policy, labels, policy};
    use super::*;

    fn documents(texts: &[String]) -> BTreeMap<String, Document> {
        let candidates = texts.iter().map(|text| candidate(text));
        candidates.map(|one| (one.key, one.read.unwrap())).collect()
    }

    fn cluster(action: &str) -> String {
        cluster_policy(
            "floor",
            &format!("destinations: [{{name: d, hosts: [one.example], action: {action}}}]"),
        )
    }

    #[test]
    fn what_a_namespace_adds_past_the_bound_does_not_keep_the_cluster_s_change_out() {
        let own = policy("a", "destinations: [{name: d, hosts: [two.example], action: Tunnel}]");
        let last = documents(&[cluster("Tunnel"), own.clone()]);
        let wanted = documents(&[cluster("Deny"), own.clone()]);
        let (published, packed, _) = fallen_back(&wanted, last.clone(), 0);
        assert_eq!(published.keys().collect::<Vec<_>>(), ["cluster-floor.json"]);
        assert!(packed.data["cluster-floor.json"].contains("Deny"));
        let unchanged = documents(&[cluster("Tunnel"), own]);
        let (published, _, said) = fallen_back(&unchanged, last, 0);
        assert_eq!((published.len(), said), (2, "what was published before stays in force"));
    }

    #[test]
    fn a_namespace_that_comes_later_gets_the_cluster_s_last_good_version() {
        let spec = |action: &str| {
            format!(
                "namespaceSelector: {{matchLabels: {{tier: a}}}}\n  destinations: [{{name: d, hosts: [a.example], action: {action}}}]"
            )
        };
        let floors = documents(&[cluster_policy("floor", &spec("Deny"))]);
        let broken = candidate(&cluster_policy("floor", &spec("Perhaps")));
        let chosen = |tier: &str| {
            let labels = labels(&[("tier", tier)]);
            let scene = NamespaceInputs {
                labels,
                leaving: false,
                candidates: vec![broken.clone()],
                pods: Vec::new(),
            };
            choose(&scene, None, floors.clone(), 0, KnownFields::by_last_release()).documents.len()
        };
        assert_eq!((chosen("a"), chosen("b")), (1, 0));
    }

    #[test]
    fn older_gateways_of_a_namespace_that_comes_later_have_the_cluster_s_floor() {
        let lines =
            include_str!("last-release.txt").lines().filter(|line| !line.starts_with("spec.toolDefault"));
        let known = KnownFields::of(&lines.collect::<Vec<_>>().join("\n"));
        let both =
            "[{name: d, hosts: [b.example], action: Deny}, {name: e, hosts: [a.example], action: Inspect}]";
        let newest = format!("destinations: {both}\n  toolDefault: Deny");
        let newest = candidate(&cluster_policy("floor", &newest));
        let chosen = |floors: &[String]| {
            let scene = NamespaceInputs {
                labels: labels(&[]),
                leaving: false,
                candidates: vec![newest.clone()],
                pods: Vec::new(),
            };
            let packed = choose(&scene, None, documents(floors), 0, &known).packed;
            let floor: serde_json::Value = serde_json::from_str(&packed.data["cluster-floor.json"]).unwrap();
            floor["spec"]["destinations"].clone()
        };
        let alone = chosen(&[]);
        assert_eq!((&alone[0]["action"], &alone[1]), (&"Deny".into(), &serde_json::Value::Null));
        let inspects = "destinations: [{name: d, hosts: [a.example], action: Inspect}]";
        let with_last = chosen(&[cluster_policy("floor", inspects)]);
        assert_eq!((&with_last[0]["action"], &with_last[1]["action"]), (&"Deny".into(), &"Inspect".into()));
    }
}
