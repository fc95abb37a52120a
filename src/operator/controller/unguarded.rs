//! Says which pods of enforced namespaces have no gateway, and deletes them where their namespace asks for it.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures_util::{StreamExt, stream};
use k8s_openapi::api::core::v1::{ObjectReference, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{Api, DeleteParams, Preconditions};
use tokio::time::{MissedTickBehavior, interval};

use super::guarded::Guarded;
use super::objects::{pod_reference, said};
use super::rota::in_turn;
use super::{AT_ONCE, Controller};
use crate::pod;
use crate::policy::compile::Labels;

/// The annotation of a pod that kubelet made of a file of its node: deleting it stops nothing.
pub(super) const MIRROR: &str = "kubernetes.io/config.mirror";
/// How often such pods are looked for.
const PERIOD: Duration = Duration::from_secs(2);
/// How many are told of, or deleted, each time: API servers keep Events, and owners make pods anew.
const ROUND: usize = 20;
/// When a pod is told of again; the API server keeps an Event for an hour.
const AGAIN: Duration = Duration::from_hours(1);
/// When a deletion is tried again.
const RETRY: Duration = Duration::from_secs(30);
/// How long kubelet lets a pod end by itself whose agent may be talking to anybody.
const GRACE: u32 = 1;

/// A pod of an enforced namespace that has no gateway: it ran before the namespace was labelled, or was made while
/// neither the webhook nor the admission policies were there.
#[derive(Debug, Clone)]
pub(super) struct Unguarded {
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) uid: String,
    pub(super) labels: Labels,
    /// It is being deleted.
    leaving: bool,
    /// A file of the node makes it.
    is_static: bool,
}

/// What is done about such a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    Report,
    Delete,
}

/// What was done about which pod, by their UIDs, and when it is due again; and the namespaces that were counted.
#[derive(Debug, Default)]
pub(super) struct Told(Mutex<Memory>);

#[derive(Debug, Default)]
struct Memory {
    told: HashMap<String, (Action, Instant)>,
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
            is_static: metadata.annotations.is_some_and(|all| all.contains_key(MIRROR)),
        }
    }

    /// One that is labelled as injected all the same.
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
    /// Looks for pods without a gateway for ever.
    pub(super) async fn watch_unguarded(&self) {
        self.watched.ready().await;
        let mut period = interval(PERIOD);
        period.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            period.tick().await;
            self.look_at_unguarded(Instant::now()).await;
        }
    }

    /// Counts the pods without a gateway, tells of those that were not told of lately, and deletes those that are to be
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

    /// The next round of what is to be done, the namespaces taking turns.
    fn unguarded_due(&self, pods: Vec<Unguarded>, now: Instant) -> Vec<(Unguarded, Action)> {
        let mut memory = self.told.0.lock().unwrap_or_else(PoisonError::into_inner);
        let there: HashSet<&str> = pods.iter().map(|pod| pod.uid.as_str()).collect();
        memory.told.retain(|uid, _| there.contains(uid.as_str()));
        let mut waiting: BTreeMap<String, Vec<(Unguarded, Action)>> = BTreeMap::new();
        for pod in pods.into_iter().filter(|pod| !pod.leaving) {
            let deletes = !pod.is_static && self.wanted(&pod.namespace) == Some(Action::Delete);
            let action = if deletes { Action::Delete } else { Action::Report };
            if memory.told.get(&pod.uid).is_none_or(|(done, again)| *done != action || now >= *again) {
                waiting.entry(pod.namespace.clone()).or_default().push((pod, action));
            }
        }
        let round = in_turn(waiting, "", ROUND);
        for (pod, action) in &round {
            let again = match action {
                Action::Report => AGAIN,
                Action::Delete => RETRY,
            };
            memory.told.insert(pod.uid.clone(), (*action, now + again));
        }
        round
    }

    /// What the namespace asks for; none where it says something else.
    fn wanted(&self, namespace: &str) -> Option<Action> {
        match self.word_of(namespace)?.as_str() {
            "" | "Report" => Some(Action::Report),
            "Delete" => Some(Action::Delete),
            _ => None,
        }
    }

    /// What the namespace says in its label, or else in its annotation.
    fn word_of(&self, namespace: &str) -> Option<String> {
        let namespace = self.watched.namespace(namespace)?;
        let metadata = &namespace.metadata;
        let said = [&metadata.labels, &metadata.annotations];
        let mut said = said.into_iter().flatten().filter_map(|all| all.get(pod::UNGUARDED));
        Some(said.next().cloned().unwrap_or_default())
    }

    async fn act_on(&self, pod: Unguarded, action: Action) {
        let what = "The pod has no gateway, so that it reaches any address";
        let note = match action {
            Action::Delete => format!(
                "{what}: it is deleted, as {}=Delete of its namespace asks. Its owner's next pod is guarded",
                pod::UNGUARDED
            ),
            Action::Report if pod.is_static => {
                format!("{what}. It is a static pod: remove its manifest from the node")
            }
            Action::Report => {
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
        let verb = if action == Action::Delete { "Delete" } else { "Guard" };
        self.warn(&pod.reference(), "Unguarded", verb, note).await;
        if action == Action::Delete {
            self.delete_unguarded(&pod).await;
        }
    }

    async fn delete_unguarded(&self, pod: &Unguarded) {
        let (namespace, name) = (pod.namespace.as_str(), pod.name.as_str());
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), namespace);
        // The watch shows no containers. A pod that lost its label and has a gateway is reported, not deleted.
        let guarded = |found: Option<Pod>| found.is_none_or(|found| Guarded::of(&found).gateway.is_some());
        match pods.get_opt(name).await.map(guarded) {
            Ok(false) => {}
            Ok(true) => return,
            Err(error) => {
                tracing::error!(namespace, name, error = said(&error), "an unguarded pod could not be read");
                return;
            }
        }
        let parameters = DeleteParams {
            grace_period_seconds: Some(GRACE),
            preconditions: Some(Preconditions { uid: Some(pod.uid.clone()), resource_version: None }),
            ..DeleteParams::default()
        };
        match pods.delete(name, &parameters).await {
            Ok(_) => {
                tracing::warn!(namespace, name, "deleted a pod without a gateway");
                self.metrics.unguarded_deleted();
            }
            Err(kube::Error::Api(status)) if status.is_not_found() || status.is_conflict() => {}
            Err(error) => {
                tracing::error!(
                    namespace,
                    name,
                    error = said(&error),
                    "an unguarded pod could not be deleted"
                );
            }
        }
    }
}
