//! The policies of the cluster, each read once per version.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use k8s_openapi::api::core::v1::ObjectReference;
use kube::api::DynamicObject;
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};

use super::candidate::{self, Gist, PolicyCandidate};
use super::packing::keyed;
use crate::api::accepted::accepted;
use crate::api::crd::{GROUP, VERSION};
use crate::policy::compile::Labels;
use crate::policy::document::{API_VERSION, Document, Kind};
use crate::policy::selector::selects;
use crate::problem::Problem;

/// One policy as the API server holds it.
#[derive(Debug)]
pub(super) struct PolicyReading {
    pub(super) kind: Kind,
    pub(super) namespace: Option<String>,
    pub(super) name: String,
    pub(super) uid: String,
    pub(super) generation: i64,
    pub(super) candidate: PolicyCandidate,
}

impl PolicyReading {
    /// `namespace/policy`, or `-/policy`.
    pub(super) fn id(&self) -> String {
        format!("{}/{}", self.namespace.as_deref().unwrap_or("-"), self.name)
    }

    /// As events refer to it.
    pub(super) fn reference(&self) -> ObjectReference {
        ObjectReference {
            api_version: Some(API_VERSION.to_owned()),
            kind: Some(word(self.kind).to_owned()),
            name: Some(self.name.clone()),
            namespace: self.namespace.clone(),
            uid: Some(self.uid.clone()),
            ..ObjectReference::default()
        }
    }

    fn of(kind: Kind, object: &DynamicObject) -> Self {
        let metadata = &object.metadata;
        let name = metadata.name.clone().unwrap_or_default();
        let key = candidate::key(kind, &name);
        let read = read(kind, object, &key);
        let gist = Arc::new(read.as_ref().map(Gist::of).unwrap_or_default());
        Self {
            kind,
            namespace: metadata.namespace.clone(),
            uid: metadata.uid.clone().unwrap_or_default(),
            generation: metadata.generation.unwrap_or_default(),
            candidate: PolicyCandidate { key, read, gist },
            name,
        }
    }
}

/// The policies that were read, and the last good version of each of the cluster's.
#[derive(Debug, Default)]
pub(super) struct Readings(Mutex<HeldReadings>);

#[derive(Debug, Default)]
struct HeldReadings {
    readings: HashMap<String, Arc<PolicyReading>>,
    last_good: BTreeMap<String, Document>,
}

impl Readings {
    /// Reads an object, once for each version of it.
    pub(super) fn read(&self, kind: Kind, object: &DynamicObject) -> Arc<PolicyReading> {
        let uid = object.metadata.uid.clone().unwrap_or_default();
        let generation = object.metadata.generation.unwrap_or_default();
        let mut held = self.lock();
        if let Some(known) = held.readings.get(&uid).filter(|known| known.generation == generation) {
            return Arc::clone(known);
        }
        let reading = Arc::new(PolicyReading::of(kind, object));
        if let (Kind::ClusterEgressPolicy, Ok(document)) = (kind, &reading.candidate.read) {
            held.last_good.insert(reading.candidate.key.clone(), document.clone());
        }
        held.readings.insert(uid, Arc::clone(&reading));
        reading
    }

    /// The last good versions of the cluster's policies.
    pub(super) fn floors(&self) -> BTreeMap<String, Document> {
        self.lock().last_good.clone()
    }

    /// Forgets all policies but these.
    pub(super) fn retain(&self, uids: &HashSet<String>) {
        self.lock().readings.retain(|uid, _| uids.contains(uid));
    }

    fn lock(&self) -> MutexGuard<'_, HeldReadings> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a document is for a namespace with these labels. An EgressPolicy is always for its own namespace.
pub(super) fn selects_namespace(document: &Document, labels: &Labels) -> bool {
    document.kind != Some(Kind::ClusterEgressPolicy)
        || selects(document.spec.namespace_selector.as_ref(), labels)
}

/// The resource of a kind, for untyped clients.
pub(super) fn resource(kind: Kind) -> ApiResource {
    let plural = match kind {
        Kind::EgressPolicy => "egresspolicies",
        Kind::ClusterEgressPolicy => "clusteregresspolicies",
    };
    ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(GROUP, VERSION, word(kind)), plural)
}

pub(super) fn word(kind: Kind) -> &'static str {
    match kind {
        Kind::EgressPolicy => "EgressPolicy",
        Kind::ClusterEgressPolicy => "ClusterEgressPolicy",
    }
}

/// Reads a policy as gateways will. Its key is the file of its problems.
fn read(kind: Kind, object: &DynamicObject, key: &str) -> Result<Document, Vec<Problem>> {
    let mut metadata = json!({ "name": object.metadata.name });
    if let Some(namespace) = &object.metadata.namespace {
        metadata["namespace"] = Value::from(namespace.as_str());
    }
    let spec = object.data.get("spec").cloned().unwrap_or_else(|| json!({}));
    let whole = json!({ "apiVersion": API_VERSION, "kind": word(kind), "metadata": metadata, "spec": spec });
    let plain = |problem: Problem| Problem { position: None, ..problem.in_file(key) };
    let document =
        accepted(&whole).map_err(|problems| problems.into_iter().map(plain).collect::<Vec<Problem>>())?;
    let unreadable = "gateways would not read it as it was read here";
    keyed(&document)
        .map(|(_, document)| document)
        .ok_or_else(|| vec![Problem::at("", unreadable).in_file(key)])
}

#[cfg(test)]
mod tests {
    use super::super::testing::{object, policy};
    use super::*;

    #[test]
    fn an_object_that_cannot_be_read_is_a_problem_of_its_own() {
        let strange = DynamicObject { data: json!({ "spec": [1, 2] }), ..object(&policy("a", "{}")) };
        let reading = PolicyReading::of(Kind::EgressPolicy, &strange);
        assert!(!reading.candidate.read.unwrap_err().is_empty());
    }

    #[test]
    fn a_version_is_read_once() {
        let readings = Readings::default();
        let mut one = object(&policy("a", "destinations: [{name: d, hosts: [a.example], action: Tunnel}]"));
        let first = readings.read(Kind::EgressPolicy, &one);
        assert!(Arc::ptr_eq(&first, &readings.read(Kind::EgressPolicy, &one)));
        one.metadata.generation = Some(2);
        assert!(!Arc::ptr_eq(&first, &readings.read(Kind::EgressPolicy, &one)));
    }
}
