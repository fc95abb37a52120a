//! Reports the pods without a gateway in enforced namespaces, and deletes them if their namespace asks for it.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures_util::{StreamExt, stream};
use k8s_openapi::api::core::v1::{ObjectReference, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::Api;

use super::fair_queue::in_turn;
use super::guarded::Guarded;
use super::{AT_ONCE, Controller, every};
use crate::operator::objects::{delete_pod, pod_reference, reason};
use crate::pod;
use crate::policy::compile::Labels;

/// The annotation of a static pod, which kubelet creates from a file of its node: deleting it stops nothing.
pub(super) const MIRROR: &str = "kubernetes.io/config.mirror";
/// How often such pods are looked for.
const PERIOD: Duration = Duration::from_secs(2);
/// How many are reported or deleted each time: API servers store Events, and owners create pods anew.
const ROUND: usize = 20;
/// When a pod is reported again; the API server keeps an Event for an hour.
const AGAIN: Duration = Duration::from_hours(1);
/// When a deletion is tried again.
const RETRY: Duration = Duration::from_secs(30);

/// A pod without a gateway in an enforced namespace: it ran before the namespace was labelled, or was created while
/// neither the webhook nor the admission policies were installed.
#[derive(Debug, Clone)]
pub(super) struct Unguarded {
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) uid: String,
    pub(super) labels: Labels,
    /// It is being deleted.
    leaving: bool,
    /// It is a static pod.
    is_static: bool,
}

/// The action that is taken on such a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum UnguardedAction {
    NamespaceReport,
    Delete,
}

/// The actions taken so far, and the last counts.
#[derive(Debug, Default)]
pub(super) struct Reported(Mutex<Memory>);

#[derive(Debug, Default)]
struct Memory {
    /// The last action on each pod, by its UID, and when it is due again.
    actions: HashMap<String, (UnguardedAction, Instant)>,
    /// How many such pods each enforced namespace has.
    counted: BTreeMap<String, usize>,
}

impl Unguarded {
    pub(super) fn of(metadata: &ObjectMeta) -> Self {
        let metadata = metadata.clone();
        Self {
            namespace: metadata.namespace.unwrap_or_default(),
            name: metadata.name.unwrap_or_default(),
            uid: metadata.uid.unwrap_or_default(),
            labels: metadata.labels.unwrap_or_default(),
            leaving: metadata.deletion_timestamp.is_some(),
            is_static: metadata.annotations.is_some_and(|annotations| annotations.contains_key(MIRROR)),
        }
    }

    /// A pod that is labelled as injected, and has no gateway.
    pub(super) fn pretending(pod: &Guarded) -> Self {
        Self {
            namespace: pod.namespace.clone(),
            name: pod.name.clone(),
            uid: pod.uid.clone(),
            labels: pod.labels.clone(),
            leaving: pod.leaving,
            is_static: false,
        }
    }

    fn reference(&self) -> ObjectReference {
        pod_reference(&self.namespace, &self.name, &self.uid)
    }
}

impl Controller {
    /// Looks for pods without a gateway, forever.
    pub(super) async fn watch_unguarded(&self) {
        self.watched.ready().await;
        let mut period = every(PERIOD);
        loop {
            period.tick().await;
            self.look_at_unguarded(Instant::now()).await;
        }
    }

    /// Counts the pods without a gateway, reports those that were not reported lately, and deletes those that shall be
    /// deleted.
    pub(super) async fn look_at_unguarded(&self, now: Instant) {
        let enforced = self.enforced();
        let pods = self.watched.unguarded(|namespace| enforced.contains(namespace));
        self.count_unguarded(&enforced, &pods);
        let due = self.unguarded_due(pods, now);
        stream::iter(due).for_each_concurrent(AT_ONCE, |(pod, action)| self.act_on(pod, action)).await;
    }

    /// The pods of enforced namespaces that have no gateway.
    pub(super) fn unguarded(&self) -> Vec<Unguarded> {
        let enforced = self.enforced();
        self.watched.unguarded(|namespace| enforced.contains(namespace))
    }

    fn enforced(&self) -> HashSet<String> {
        self.watched.namespaces().into_iter().filter(|namespace| self.is_enforced(namespace)).collect()
    }

    fn count_unguarded(&self, enforced: &HashSet<String>, pods: &[Unguarded]) {
        let mut counts: BTreeMap<String, usize> = enforced.iter().map(|name| (name.clone(), 0)).collect();
        for pod in pods {
            *counts.entry(pod.namespace.clone()).or_default() += 1;
        }
        let mut memory = self.told.0.lock().unwrap_or_else(PoisonError::into_inner);
        for (namespace, count) in &counts {
            let before = memory.counted.get(namespace).copied().unwrap_or_default();
            if *count > before {
                tracing::warn!(
                    namespace,
                    pods = count,
                    "pods without a gateway run in an enforced namespace"
                );
            }
            self.metrics.unguarded(namespace, Some(*count));
        }
        let gone = memory.counted.keys().filter(|namespace| !counts.contains_key(*namespace));
        gone.for_each(|namespace| self.metrics.unguarded(namespace, None));
        memory.counted = counts;
    }

    /// The next round of actions, the namespaces taking turns.
    fn unguarded_due(&self, pods: Vec<Unguarded>, now: Instant) -> Vec<(Unguarded, UnguardedAction)> {
        let mut memory = self.told.0.lock().unwrap_or_else(PoisonError::into_inner);
        let there: HashSet<&str> = pods.iter().map(|pod| pod.uid.as_str()).collect();
        memory.actions.retain(|uid, _| there.contains(uid.as_str()));
        let mut waiting: BTreeMap<String, Vec<(Unguarded, UnguardedAction)>> = BTreeMap::new();
        for pod in pods.into_iter().filter(|pod| !pod.leaving) {
            let deletes = !pod.is_static && self.wanted(&pod.namespace) == Some(UnguardedAction::Delete);
            let action = if deletes { UnguardedAction::Delete } else { UnguardedAction::NamespaceReport };
            if memory.actions.get(&pod.uid).is_none_or(|(done, again)| *done != action || now >= *again) {
                waiting.entry(pod.namespace.clone()).or_default().push((pod, action));
            }
        }
        let round = in_turn(waiting, "", ROUND);
        for (pod, action) in &round {
            let again = match action {
                UnguardedAction::NamespaceReport => AGAIN,
                UnguardedAction::Delete => RETRY,
            };
            memory.actions.insert(pod.uid.clone(), (*action, now + again));
        }
        round
    }

    /// The action that the namespace asks for; none if its word is not known.
    fn wanted(&self, namespace: &str) -> Option<UnguardedAction> {
        match self.word_of(namespace)?.as_str() {
            "" | "Report" => Some(UnguardedAction::NamespaceReport),
            "Delete" => Some(UnguardedAction::Delete),
            _ => None,
        }
    }

    /// The word of the namespace's label, or else of its annotation; empty if it has neither.
    fn word_of(&self, namespace: &str) -> Option<String> {
        let namespace = self.watched.namespace(namespace)?;
        let metadata = &namespace.metadata;
        let maps = [&metadata.labels, &metadata.annotations];
        let mut words = maps.into_iter().flatten().filter_map(|map| map.get(pod::UNGUARDED));
        Some(words.next().cloned().unwrap_or_default())
    }

    async fn act_on(&self, pod: Unguarded, action: UnguardedAction) {
        let what = "The pod has no gateway, so that it reaches any address";
        let note = match action {
            UnguardedAction::Delete => format!(
                "{what}: it is deleted, as {}=Delete of its namespace asks. Its owner's next pod is guarded",
                pod::UNGUARDED
            ),
            UnguardedAction::NamespaceReport if pod.is_static => {
                format!("{what}. It is a static pod: remove its manifest from the node")
            }
            UnguardedAction::NamespaceReport => {
                let (injection, enabled, unguarded) = (pod::INJECTION_LABEL, pod::ENABLED, pod::UNGUARDED);
                let mut note = format!(
                    "{what}, although its namespace is labelled {injection}={enabled}. It ran before the label was \
                     set, or was made while the webhook was not installed. Start it anew (kubectl rollout restart, or \
                     delete it). With {unguarded}=Delete on the namespace the operator deletes such pods"
                );
                if let Some(word) =
                    self.word_of(&pod.namespace).filter(|_| self.wanted(&pod.namespace).is_none())
                {
                    note.push_str(&format!(
                        ". {unguarded} is {word:?} there, which is neither Report nor Delete"
                    ));
                }
                note
            }
        };
        let verb = if action == UnguardedAction::Delete { "Delete" } else { "Guard" };
        self.warn(&pod.reference(), "Unguarded", verb, note).await;
        if action == UnguardedAction::Delete {
            self.delete_unguarded(&pod).await;
        }
    }

    async fn delete_unguarded(&self, pod: &Unguarded) {
        let (namespace, name) = (pod.namespace.as_str(), pod.name.as_str());
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), namespace);
        // The watch shows no containers. A pod that lost its label and has a gateway is reported, not deleted.
        let is_guarded = |pod: Option<Pod>| pod.is_none_or(|pod| Guarded::of(&pod).gateway.is_some());
        match pods.get_opt(name).await.map(is_guarded) {
            Ok(false) => {}
            Ok(true) => return,
            Err(error) => {
                let error = reason(&error);
                tracing::error!(namespace, name, error, "an unguarded pod could not be read");
                return;
            }
        }
        match delete_pod(&self.client, namespace, name, &pod.uid).await {
            Ok(true) => {
                tracing::warn!(namespace, name, "deleted a pod without a gateway");
                self.metrics.unguarded_deleted();
            }
            Ok(false) => {}
            Err(error) => {
                let error = reason(&error);
                tracing::error!(namespace, name, error, "an unguarded pod could not be deleted");
            }
        }
    }
}
