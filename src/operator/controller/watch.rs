//! Watches the cluster's objects, and keeps them as they are now.
//!
//! Of Secrets only the operator's own are watched, by name and without their data: a client that may list or watch all
//! Secrets may read all of them. The Secrets that policies refer to are read by name.

use std::collections::{BTreeMap, HashSet};
use std::fmt::Debug;
use std::hash::Hash;
use std::pin::pin;
use std::sync::Arc;

use futures_util::{FutureExt, Stream, StreamExt};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::ResourceExt;
use kube::api::{Api, DynamicObject};
use kube::core::PartialObjectMeta;
use kube::runtime::reflector::{Lookup, ObjectRef, Store, store::Writer};
use kube::runtime::watcher::{self, Config, Event, watcher};
use kube::runtime::{WatchStreamExt, reflector};

use super::Controller;
use super::candidate::PolicyCandidate;
use super::guarded::Guarded;
use super::policies::{PolicyReading, resource, selects_namespace};
use super::unguarded::{MIRROR, Unguarded};
use crate::operator::objects;
use crate::pod;
use crate::policy::compile::Labels;
use crate::policy::document::Kind;

/// Selects pods that have not ended: they may run, be starting, or be ending.
const NOT_ENDED: &str = "status.phase!=Succeeded,status.phase!=Failed";

/// Seconds that one watch lasts: load balancers drop connections that are idle for four minutes.
const TIMEOUT: u32 = 200;

/// The objects that the watches have seen.
#[derive(Debug, Clone)]
pub(super) struct ClusterObjects {
    policies: Store<DynamicObject>,
    cluster_policies: Store<DynamicObject>,
    namespaces: Store<PartialObjectMeta<Namespace>>,
    pods: Store<Guarded>,
    /// The pods of the cluster that are not labelled as injected and have not ended.
    others: Store<PartialObjectMeta<Pod>>,
    config_maps: Store<PartialObjectMeta<ConfigMap>>,
    cas: Store<PartialObjectMeta<Secret>>,
    credentials: Store<PartialObjectMeta<Secret>>,
}

/// The writers of these stores, for the watches.
#[derive(Debug)]
pub(super) struct Writers {
    pub(super) policies: Writer<DynamicObject>,
    pub(super) cluster_policies: Writer<DynamicObject>,
    pub(super) namespaces: Writer<PartialObjectMeta<Namespace>>,
    pub(super) pods: Writer<Guarded>,
    pub(super) others: Writer<PartialObjectMeta<Pod>>,
    pub(super) config_maps: Writer<PartialObjectMeta<ConfigMap>>,
    pub(super) cas: Writer<PartialObjectMeta<Secret>>,
    pub(super) credentials: Writer<PartialObjectMeta<Secret>>,
}

/// What a namespace's turn is computed from.
#[derive(Debug)]
pub(super) struct NamespaceInputs {
    pub(super) labels: Labels,
    /// It is being deleted.
    pub(super) leaving: bool,
    pub(super) candidates: Vec<PolicyCandidate>,
    /// The labels of its injected pods.
    pub(super) pods: Vec<Labels>,
}

/// The namespaces that are reconciled after a change of an object.
#[derive(Debug, Clone, Copy)]
enum Affected {
    /// The object's own namespace.
    Namespace,
    /// The object is the namespace.
    Itself,
    All,
    /// None: only statuses mention the object.
    Statuses,
}

/// Empty stores, and their writers.
pub(super) fn stores() -> (ClusterObjects, Writers) {
    let writers = Writers {
        policies: Writer::new(resource(Kind::EgressPolicy)),
        cluster_policies: Writer::new(resource(Kind::ClusterEgressPolicy)),
        namespaces: reflector::store().1,
        pods: reflector::store().1,
        others: reflector::store().1,
        config_maps: reflector::store().1,
        cas: reflector::store().1,
        credentials: reflector::store().1,
    };
    let watched = ClusterObjects {
        policies: writers.policies.as_reader(),
        cluster_policies: writers.cluster_policies.as_reader(),
        namespaces: writers.namespaces.as_reader(),
        pods: writers.pods.as_reader(),
        others: writers.others.as_reader(),
        config_maps: writers.config_maps.as_reader(),
        cas: writers.cas.as_reader(),
        credentials: writers.credentials.as_reader(),
    };
    (watched, writers)
}

impl NamespaceInputs {
    /// Whether the operator keeps objects in the namespace.
    pub(super) fn is_kept(&self) -> bool {
        is_labelled(&self.labels) || !self.pods.is_empty()
    }
}

/// Whether a namespace with these labels wants its pods injected.
fn is_labelled(labels: &Labels) -> bool {
    labels.get(pod::INJECTION_LABEL).is_some_and(|value| value == pod::ENABLED)
}

impl ClusterObjects {
    /// Resolves once everything that decides was listed. Before, objects that are not listed yet would seem to be gone.
    pub(super) async fn ready(&self) {
        // The error is a dropped writer, and writers live as long as the controller.
        let _ = tokio::join!(
            self.policies.wait_until_ready(),
            self.cluster_policies.wait_until_ready(),
            self.namespaces.wait_until_ready(),
            self.pods.wait_until_ready(),
        );
    }

    /// Whether the pods without a gateway have been listed once.
    pub(super) fn others_are_listed(&self) -> bool {
        self.others.wait_until_ready().now_or_never().is_some()
    }

    /// All injected pods that have not ended.
    pub(super) fn pods(&self) -> Vec<Arc<Guarded>> {
        let mut pods = self.pods.state();
        pods.retain(|pod| !pod.ended && pod.gateway.is_some());
        pods
    }

    /// The pods without a gateway that have not ended, in namespaces that are `is_enforced`. A pod that is being
    /// deleted counts too: it runs until it ends.
    pub(super) fn unguarded(&self, is_enforced: impl Fn(&str) -> bool) -> Vec<Unguarded> {
        let is_in = |namespace: Option<&str>| namespace.is_some_and(&is_enforced);
        let others = self.others.state();
        let others = others.iter().filter(|pod| is_in(pod.metadata.namespace.as_deref()));
        let pretending = self.pods.state();
        let pretending = pretending
            .iter()
            .filter(|pod| pod.gateway.is_none() && !pod.ended && is_in(Some(pod.namespace.as_str())));
        others
            .map(|pod| Unguarded::of(&pod.metadata))
            .chain(pretending.map(|pod| Unguarded::pretending(pod)))
            .collect()
    }

    /// The metadata of a namespace that exists and is not being deleted.
    pub(super) fn namespace(&self, name: &str) -> Option<Arc<PartialObjectMeta<Namespace>>> {
        self.namespaces.get(&ObjectRef::new(name)).filter(|it| it.metadata.deletion_timestamp.is_none())
    }

    pub(super) fn namespaces(&self) -> Vec<String> {
        self.namespaces.state().iter().map(|namespace| namespace.name_any()).collect()
    }

    /// The namespaces that shall have the operator's objects, and their labels.
    pub(super) fn injected(&self) -> BTreeMap<String, Labels> {
        let pods = self.pods();
        let with_pods: HashSet<&str> = pods.iter().map(|pod| pod.namespace.as_str()).collect();
        let mut namespaces = self.namespaces.state();
        namespaces.retain(|it| {
            let leaving = it.metadata.deletion_timestamp.is_some();
            (!leaving && is_labelled(it.labels())) || with_pods.contains(it.name_any().as_str())
        });
        namespaces.iter().map(|it| (it.name_any(), it.labels().clone())).collect()
    }

    /// The objects of both kinds, as they were listed or seen last.
    pub(super) fn policies(&self) -> Vec<(Kind, Arc<DynamicObject>)> {
        let namespaced = self.policies.state().into_iter().map(|object| (Kind::EgressPolicy, object));
        let cluster = self.cluster_policies.state().into_iter();
        namespaced.chain(cluster.map(|object| (Kind::ClusterEgressPolicy, object))).collect()
    }

    /// The policies that could select pods of a namespace: its own, and all of the cluster's.
    fn policies_of(&self, namespace: &str) -> Vec<(Kind, Arc<DynamicObject>)> {
        let mut policies = self.policies();
        policies.retain(|(kind, object)| {
            *kind == Kind::ClusterEgressPolicy || object.metadata.namespace.as_deref() == Some(namespace)
        });
        policies
    }

    /// The operator's objects that exist in a namespace, by kind and name.
    pub(super) fn kept(&self, namespace: &str) -> Vec<(&'static str, &'static str)> {
        let is_ours =
            |labels: &Labels| labels.get(objects::MANAGED_BY).is_some_and(|by| by == objects::MANAGER);
        let map = self.config_maps.get(&ObjectRef::new(pod::POLICY_CONFIG_MAP).within(namespace));
        let mut kept = Vec::new();
        if map.is_some_and(|it| is_ours(it.labels())) {
            kept.push(("ConfigMap", pod::POLICY_CONFIG_MAP));
        }
        for (name, secrets) in [(pod::CA_SECRET, &self.cas), (pod::CREDENTIALS_SECRET, &self.credentials)] {
            let secret = secrets.get(&ObjectRef::new(name).within(namespace));
            if secret.is_some_and(|it| is_ours(it.labels())) {
                kept.push(("Secret", name));
            }
        }
        kept
    }
}

impl Controller {
    /// What a namespace's turn is computed from now; none if there is no such namespace.
    pub(super) fn scene(&self, namespace: &str) -> Option<NamespaceInputs> {
        let object = self.watched.namespaces.get(&ObjectRef::new(namespace))?;
        let labels = object.labels().clone();
        let selected = |reading: &Arc<PolicyReading>| match (&reading.candidate.read, reading.kind) {
            (Ok(document), Kind::ClusterEgressPolicy) => selects_namespace(document, &labels),
            // A policy that cannot be read falls back to its last good version, which has its own selector.
            (Err(_), Kind::ClusterEgressPolicy) | (_, Kind::EgressPolicy) => true,
        };
        let of_namespace = self.watched.policies_of(namespace);
        let readings = of_namespace.iter().map(|(kind, object)| self.readings.read(*kind, object));
        let candidates = readings.filter(selected).map(|reading| reading.candidate.clone()).collect();
        let pods = self.watched.pods();
        let pods =
            pods.iter().filter(|pod| pod.namespace == namespace).map(|pod| pod.labels.clone()).collect();
        let leaving = object.metadata.deletion_timestamp.is_some();
        Some(NamespaceInputs { leaving, candidates, pods, labels })
    }

    /// Runs all watches, forever.
    pub(super) async fn follow(&self, writers: Writers) {
        let client = || self.client.clone();
        let config = || Config::default().timeout(TIMEOUT);
        let others = config().labels(&format!("{}!=true", pod::INJECTED_LABEL)).fields(NOT_ENDED);
        let others = watcher(Api::<PartialObjectMeta<Pod>>::all(client()), others).modify(trim);
        // Managed fields can be longer than the policy, and nothing reads them.
        let lean = |object: &mut DynamicObject| object.metadata.managed_fields = None;
        let named = |name: &str| config().fields(&format!("metadata.name={name}"));
        let dynamic = |kind| Api::<DynamicObject>::all_with(client(), &resource(kind));
        let injected = config().labels(&format!("{}=true", pod::INJECTED_LABEL));
        let pods = watcher(Api::<Pod>::all(client()), injected).map(|event| event.map(Guarded::seen));
        let maps = watcher(Api::<PartialObjectMeta<ConfigMap>>::all(client()), named(pod::POLICY_CONFIG_MAP));
        let cas = watcher(Api::<PartialObjectMeta<Secret>>::all(client()), named(pod::CA_SECRET));
        let credentials =
            watcher(Api::<PartialObjectMeta<Secret>>::all(client()), named(pod::CREDENTIALS_SECRET));
        tokio::join!(
            self.keep(
                watcher(dynamic(Kind::EgressPolicy), config()).modify(lean),
                writers.policies,
                Affected::Namespace,
                |event| is_written(&self.watched.policies, Kind::EgressPolicy, event)
            ),
            self.keep(
                watcher(dynamic(Kind::ClusterEgressPolicy), config()).modify(lean),
                writers.cluster_policies,
                Affected::All,
                |event| is_written(&self.watched.cluster_policies, Kind::ClusterEgressPolicy, event)
            ),
            self.keep(
                watcher(Api::<PartialObjectMeta<Namespace>>::all(client()), config()),
                writers.namespaces,
                Affected::Itself,
                |_| true
            ),
            self.keep(pods, writers.pods, Affected::Namespace, |event| self.matters(event)),
            self.keep(others, writers.others, Affected::Statuses, |event| self.shows(event)),
            self.keep(maps, writers.config_maps, Affected::Namespace, is_others),
            self.keep(cas, writers.cas, Affected::Namespace, is_others),
            self.keep(credentials, writers.credentials, Affected::Namespace, is_others),
        );
    }

    /// Keeps a store up to date with its watch, and queues the affected namespaces after events that `matter`.
    async fn keep<K>(
        &self,
        watch: impl Stream<Item = watcher::Result<Event<K>>>,
        mut writer: Writer<K>,
        about: Affected,
        matters: impl Fn(&Event<K>) -> bool,
    ) where
        K: Lookup + Clone + Debug + 'static,
        K::DynamicType: Eq + Hash + Clone,
    {
        let mut watch = pin!(watch.default_backoff());
        while let Some(event) = watch.next().await {
            match event {
                Ok(event) => {
                    let matters = matters(&event);
                    writer.apply_watcher_event(&event);
                    if matters || !matches!(about, Affected::Statuses) {
                        self.outdated();
                    }
                    if matters {
                        self.heard(&event, about);
                    }
                }
                // The watch restarts by itself, with a growing delay.
                Err(error) => {
                    let what = std::any::type_name::<K>();
                    tracing::warn!(what, error = %error, "a watch was interrupted");
                }
            }
        }
    }

    fn heard<K: Lookup>(&self, event: &Event<K>, about: Affected) {
        match (event, about) {
            (Event::Apply(object) | Event::Delete(object), Affected::Namespace) => {
                object.namespace().iter().for_each(|namespace| self.touch(namespace));
            }
            (Event::Apply(object) | Event::Delete(object), Affected::Itself) => {
                object.name().iter().for_each(|namespace| self.touch(namespace));
            }
            (Event::Init | Event::InitApply(_), _) | (_, Affected::Statuses) => {}
            // After a watch was interrupted, deleted objects are only missing from the new list.
            (Event::Apply(_) | Event::Delete(_), Affected::All) | (Event::InitDone, _) => self.touch_all(),
        }
    }

    /// Whether a pod has come, gone, ended or changed its labels. Its status changes far more often.
    fn matters(&self, event: &Event<Guarded>) -> bool {
        let Event::Apply(pod) = event else { return true };
        let before = self.watched.pods.get(&ObjectRef::from_obj(pod));
        let facts = |pod: &Guarded| (pod.ended, pod.gateway.is_some());
        before.is_none_or(|before| (facts(&before), &before.labels) != (facts(pod), &pod.labels))
    }

    /// Whether a status may mention a change of a pod without a gateway: most pods of a cluster are in namespaces that
    /// want none.
    fn shows(&self, event: &Event<PartialObjectMeta<Pod>>) -> bool {
        let enforced = |pod: &PartialObjectMeta<Pod>| {
            pod.metadata.namespace.as_deref().is_some_and(|namespace| self.is_enforced(namespace))
        };
        match event {
            Event::Apply(pod) => {
                let before = self.watched.others.get(&ObjectRef::from_obj(pod));
                enforced(pod) && before.is_none_or(|before| before.metadata != pod.metadata)
            }
            Event::Delete(pod) => enforced(pod),
            Event::InitDone => true,
            Event::Init | Event::InitApply(_) => false,
        }
    }

    /// Whether every new pod of a namespace gets a gateway: it is labelled, and not exempt from the webhook.
    pub(super) fn is_enforced(&self, namespace: &str) -> bool {
        let exempt = self.settings.is_exempt(namespace);
        !exempt && self.watched.namespace(namespace).is_some_and(|it| is_labelled(it.labels()))
    }

    pub(super) fn touch_all(&self) {
        let known: HashSet<String> =
            self.watched.namespaces().into_iter().chain(self.reports.all().into_keys()).collect();
        known.iter().for_each(|namespace| self.touch(namespace));
    }
}

/// Drops the metadata of a pod without a gateway that nothing reads: a cluster has many such pods.
fn trim(pod: &mut PartialObjectMeta<Pod>) {
    let metadata = std::mem::take(&mut pod.metadata);
    let mirror = metadata.annotations.unwrap_or_default().remove_entry(MIRROR);
    pod.metadata = ObjectMeta {
        namespace: metadata.namespace,
        name: metadata.name,
        uid: metadata.uid,
        labels: metadata.labels,
        deletion_timestamp: metadata.deletion_timestamp,
        annotations: mirror.map(|entry| BTreeMap::from([entry])),
        ..ObjectMeta::default()
    };
}

/// Whether a policy has come, gone or changed its spec. Its status, which the operator writes, changes far more often.
fn is_written(seen: &Store<DynamicObject>, kind: Kind, event: &Event<DynamicObject>) -> bool {
    let Event::Apply(object) = event else { return true };
    let version = |object: &DynamicObject| (object.metadata.uid.clone(), object.metadata.generation);
    let before = seen.get(&ObjectRef::from_obj_with(object, resource(kind)));
    before.is_none_or(|before| version(&before) != version(object))
}

/// Whether another client has written to one of the operator's objects, or it is gone. An object that the operator
/// alone has written is as it should be.
fn is_others<K: ResourceExt>(event: &Event<K>) -> bool {
    let Event::Apply(object) = event else { return true };
    let fields = object.managed_fields();
    fields.is_empty() || fields.iter().any(|it| it.manager.as_deref() != Some(objects::MANAGER))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{object, policy};
    use super::*;

    #[test]
    fn a_policy_whose_status_alone_has_changed_gives_nobody_a_turn() {
        let (watched, mut writers) = stores();
        let matters = |object: &DynamicObject| {
            is_written(&watched.policies, Kind::EgressPolicy, &Event::Apply(object.clone()))
        };
        let mut one = object(&policy("a", "{}"));
        assert!(matters(&one));
        writers.policies.apply_watcher_event(&Event::Apply(one.clone()));
        one.data["status"] = serde_json::json!({ "selectedPods": 3 });
        assert!(!matters(&one));
        one.metadata.generation = Some(2);
        assert!(matters(&one));
        assert!(is_written(&watched.policies, Kind::EgressPolicy, &Event::Delete(one)));
    }

    #[test]
    fn of_a_pod_without_a_gateway_little_is_kept() {
        let pod = serde_json::json!({ "metadata": {
            "name": "a", "namespace": "b", "uid": "c", "labels": { "app": "d" },
            "annotations": { "kubernetes.io/config.mirror": "e", "long": "f" },
            "managedFields": [{ "manager": "kubelet" }], "ownerReferences": [], "resourceVersion": "7",
        } });
        let mut pod: PartialObjectMeta<Pod> = serde_json::from_value(pod).unwrap();
        trim(&mut pod);
        let kept = serde_json::to_value(&pod.metadata).unwrap();
        let expected = serde_json::json!({
            "name": "a", "namespace": "b", "uid": "c", "labels": { "app": "d" },
            "annotations": { "kubernetes.io/config.mirror": "e" },
        });
        assert_eq!(kept, expected);
    }

    #[test]
    fn what_the_operator_wrote_itself_gives_nobody_a_turn_and_what_others_wrote_does() {
        let written_by = |managers: &[&str]| {
            let fields: Vec<_> = managers.iter().map(|it| serde_json::json!({ "manager": it })).collect();
            let map =
                serde_json::json!({ "metadata": { "name": "postern-policy", "managedFields": fields } });
            is_others(&Event::Apply(serde_json::from_value::<PartialObjectMeta<ConfigMap>>(map).unwrap()))
        };
        assert!(!written_by(&["postern-operator", "postern-operator"]));
        assert!(written_by(&["postern-operator", "kubectl-edit"]));
        assert!(written_by(&[]));
        assert!(is_others(&Event::Delete(ConfigMap::default())));
    }
}
