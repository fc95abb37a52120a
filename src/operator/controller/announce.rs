//! Writes statuses that have changed, and Events for people.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use futures_util::{StreamExt, stream};
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use k8s_openapi::jiff::Timestamp;
use kube::api::{Api, DynamicObject, Patch};
use kube::runtime::events::{Event, EventType};
use serde_json::json;
use tokio::time::Instant;

use super::fair_queue::in_turn;
use super::policies::{PolicyReading, resource, selects_namespace, word};
use super::probe::Sighted;
use super::report::NamespaceReport;
use super::status::{NamespaceView, PodView, status};
use super::{AT_ONCE, Controller};
use crate::api::status::PolicyStatus;
use crate::operator::objects::{self, is_replaced, patching, reason};
use crate::policy::compile::Labels;
use crate::policy::document::API_VERSION;

/// How often statuses are computed while something changes.
const PERIOD: Duration = Duration::from_secs(1);
/// How often they are computed though nothing has changed.
const RESYNC: Duration = Duration::from_mins(5);
/// How long a new leader gathers information before it writes statuses.
const SETTLING: Duration = Duration::from_secs(30);
/// How long a status that was written may take to come back through the watch.
const ECHO: Duration = Duration::from_secs(30);
/// How many statuses are written in a round; then they are computed anew.
const ROUND: usize = 200;
/// The longest note of an Event.
const NOTE: usize = 1000;

/// The statuses that were written lately, by the UID of the policy.
#[derive(Debug, Default)]
pub(super) struct WrittenStatuses(Mutex<HashMap<String, (PolicyStatus, Instant)>>);

/// A status that is to be written.
struct StatusChange {
    reading: Arc<PolicyReading>,
    before: PolicyStatus,
    after: PolicyStatus,
}

impl Controller {
    /// Keeps statuses up to date, forever. Rests as long as computing took, so that the operator gets to other work.
    pub(super) async fn keep_statuses(&self) {
        self.metrics.statuses_checked(SystemTime::now());
        self.settle().await;
        let (mut looked, mut took) = (Instant::now(), Duration::ZERO);
        let mut last = String::new();
        loop {
            tokio::time::sleep(PERIOD.max(took)).await;
            if self.take_outdated() || looked.elapsed() >= RESYNC {
                looked = Instant::now();
                let changed = self.changed_statuses().await;
                took = looked.elapsed();
                last = self.write_statuses(changed, &last).await;
                self.metrics.statuses_checked(SystemTime::now());
            }
        }
    }

    /// Resolves once every namespace had its turn and every pod was asked, or after [`SETTLING`]. A status that is
    /// written earlier would call something wrong that was not checked yet.
    pub(super) async fn settle(&self) {
        self.watched.ready().await;
        let deadline = Instant::now() + SETTLING;
        while Instant::now() < deadline && !self.is_settled() {
            tokio::time::sleep(PERIOD).await;
        }
        self.outdated();
    }

    fn is_settled(&self) -> bool {
        let reports = self.reports.all();
        let turned = |it: &String| reports.contains_key(it) || self.reports.failure(it).is_some();
        let listed = self.watched.others_are_listed();
        listed && self.watched.injected().keys().all(turned) && self.is_fleet_asked()
    }

    /// Writes a round of statuses, beginning after the namespace `last`. Returns the namespace of the last one written.
    async fn write_statuses(&self, changed: BTreeMap<String, Vec<StatusChange>>, last: &str) -> String {
        if changed.values().map(Vec::len).sum::<usize>() > ROUND {
            self.outdated();
        }
        let round = in_turn(changed, last, ROUND);
        let namespace = |change: &StatusChange| change.reading.namespace.clone().unwrap_or_default();
        let last = round.last().map_or_else(|| last.to_owned(), namespace);
        stream::iter(round).for_each_concurrent(AT_ONCE, |change| self.write_status(change)).await;
        last
    }

    /// Writes the statuses that have changed.
    #[cfg(test)]
    pub(super) async fn announce(&self) {
        let changed = self.changed_statuses().await;
        self.write_statuses(changed, "").await;
    }

    /// The statuses to write, by namespace; those of the cluster's policies under the empty name.
    async fn changed_statuses(&self) -> BTreeMap<String, Vec<StatusChange>> {
        let objects = self.watched.policies();
        let uids: HashSet<String> = objects.iter().filter_map(|(_, it)| it.metadata.uid.clone()).collect();
        self.readings.retain(&uids);
        self.written().retain(|_, (_, at)| at.elapsed() < ECHO);
        let (reports, injected, sights) = (self.reports.all(), self.watched.injected(), self.sights());
        let unguarded = self.unguarded();
        let mut places = self.places(&reports, &injected, &sights);
        for pod in &unguarded {
            if let Some(place) = places.get_mut(pod.namespace.as_str()) {
                place.unguarded.push((&pod.name, &pod.labels));
            }
        }
        let (mut accepted, mut refused) = (0, 0);
        let mut changed: BTreeMap<String, Vec<StatusChange>> = BTreeMap::new();
        for (kind, object) in objects {
            let reading = self.readings.read(kind, &object);
            let before = self.status_before(&object, &reading);
            let after = status(&reading, &places_of(&reading, &places), &before, Timestamp::now());
            if after.conditions.iter().any(|each| each.type_ == "Accepted" && each.status == "True") {
                accepted += 1
            } else {
                refused += 1
            }
            if after != before {
                let namespace = reading.namespace.clone().unwrap_or_default();
                changed.entry(namespace).or_default().push(StatusChange { reading, before, after });
            }
            // There may be many policies: other tasks run between two of them.
            tokio::task::yield_now().await;
        }
        self.metrics.policies(accepted, refused);
        changed
    }

    /// What statuses need to know about each kept namespace, gathered once for all policies.
    fn places<'a>(
        &self,
        reports: &'a BTreeMap<String, Arc<NamespaceReport>>,
        injected: &'a BTreeMap<String, Labels>,
        sights: &'a [Sighted],
    ) -> BTreeMap<&'a str, NamespaceView<'a>> {
        let place = |(namespace, labels): (&'a String, &'a Labels)| {
            let report = reports.get(namespace).map(Arc::as_ref);
            let failure = self.reports.failure(namespace);
            (
                namespace.as_str(),
                NamespaceView { namespace, labels, report, failure, pods: Vec::new(), unguarded: Vec::new() },
            )
        };
        let mut places: BTreeMap<&str, NamespaceView<'_>> = injected.iter().map(place).collect();
        for (pod, known) in sights.iter().filter(|(pod, _)| !pod.leaving) {
            let Some(place) = places.get_mut(pod.namespace.as_str()) else { continue };
            place.pods.push(PodView {
                name: &pod.name,
                labels: &pod.labels,
                state: known.map(|(state, _)| state),
                drifts: known.is_some_and(|(_, drifts)| drifts),
            });
        }
        places
    }

    /// The policy's status as it was written lately, or else as the watch shows it.
    fn status_before(&self, object: &DynamicObject, reading: &PolicyReading) -> PolicyStatus {
        if let Some((status, _)) = self.written().get(&reading.uid) {
            return status.clone();
        }
        let status = object.data.get("status").cloned();
        status.and_then(|status| serde_json::from_value(status).ok()).unwrap_or_default()
    }

    fn written(&self) -> MutexGuard<'_, HashMap<String, (PolicyStatus, Instant)>> {
        self.written.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn write_status(&self, StatusChange { reading, before, after }: StatusChange) {
        let resource = resource(reading.kind);
        let api: Api<DynamicObject> = match &reading.namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &resource),
            None => Api::all_with(self.client.clone(), &resource),
        };
        // With its UID, the patch fails for another policy of the same name.
        let patch = json!({
            "apiVersion": API_VERSION,
            "kind": word(reading.kind),
            "metadata": { "name": reading.name, "namespace": reading.namespace, "uid": reading.uid },
            "status": after,
        });
        match api.patch_status(&reading.name, &patching().force(), &Patch::Apply(&patch)).await {
            Ok(_) => {}
            Err(error) if is_replaced(&error) => {}
            Err(error) => {
                tracing::warn!(
                    policy = reading.id(),
                    error = reason(&error),
                    "a status could not be written"
                );
                self.outdated();
                return;
            }
        }
        self.tell(&reading, &before, &after).await;
        self.written().insert(reading.uid.clone(), (after, Instant::now()));
    }

    /// Writes an Event for each condition of a policy that has become false.
    async fn tell(&self, reading: &PolicyReading, before: &PolicyStatus, after: &PolicyStatus) {
        let wrong =
            |new: &&Condition| new.status == "False" && new.reason != "Pending" && new.type_ != "Ready";
        for condition in after.conditions.iter().filter(wrong) {
            let same = |old: &&Condition| old.type_ == condition.type_ && old.reason == condition.reason;
            // These messages count pods and change often: one Event for the reason is enough.
            let counts = ["Drift", "Unguarded"].contains(&condition.reason.as_str());
            let known = before.conditions.iter().find(same);
            // The condition `Accepted` already says that it is not accepted.
            if known.is_none_or(|known| known.message != condition.message && !counts)
                && condition.reason != "NotAccepted"
            {
                let action = if condition.type_ == "Accepted" { "Accept" } else { "Program" };
                self.warn(&reading.reference(), &condition.reason, action, condition.message.clone()).await;
            }
        }
    }

    /// Publishes a warning about an object. If the Event cannot be written, that is only logged.
    pub(super) async fn warn(&self, about: &ObjectReference, reason: &str, action: &str, mut note: String) {
        note.truncate(note.floor_char_boundary(NOTE));
        let event = Event {
            type_: EventType::Warning,
            reason: reason.to_owned(),
            note: Some(note),
            action: action.to_owned(),
            secondary: None,
        };
        if let Err(error) = self.recorder.publish(&event, about).await {
            tracing::warn!(error = objects::reason(&error), reason, "an Event could not be written");
        }
    }
}

/// The kept namespaces that a policy is for.
fn places_of<'a, 'p>(
    reading: &PolicyReading,
    places: &'p BTreeMap<&'a str, NamespaceView<'a>>,
) -> Vec<&'p NamespaceView<'a>> {
    if let Some(namespace) = &reading.namespace {
        return places.get(namespace.as_str()).into_iter().collect();
    }
    let applies = |place: &&NamespaceView<'_>| match &reading.candidate.read {
        Ok(document) => selects_namespace(document, place.labels),
        Err(_) => place.report.is_some_and(|report| report.in_force.contains_key(&reading.candidate.key)),
    };
    places.values().filter(applies).collect()
}
