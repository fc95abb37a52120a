//! Writes statuses where they have changed, and Events where a human should know.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::jiff::Timestamp;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::runtime::events::{Event, EventType};
use serde_json::json;
use tokio::time::Instant;

use super::Controller;
use super::objects::{MANAGER, said};
use super::policies::{Reading, resource, selects_namespace, word};
use super::status::{Place, Seen, status};
use super::watch::Guarded;
use crate::api::status::Status;
use crate::policy::document::API_VERSION;

/// How often statuses are looked at, where something has changed.
const PERIOD: Duration = Duration::from_secs(1);
/// And where nothing has.
const RESYNC: Duration = Duration::from_mins(5);
/// How long a new leader looks around before it says anything.
const SETTLING: Duration = Duration::from_secs(30);
/// How long a status that was written is given to come back through the watch.
const ECHO: Duration = Duration::from_secs(30);
/// The longest note of an Event.
const NOTE: usize = 1000;

/// The statuses that were written lately, by the UIDs of the policies.
#[derive(Debug, Default)]
pub(super) struct Written(Mutex<HashMap<String, (Status, Instant)>>);

impl Controller {
    /// Keeps statuses for ever.
    pub(super) async fn keep_statuses(&self) {
        self.settle().await;
        let mut looked = Instant::now();
        loop {
            tokio::time::sleep(PERIOD).await;
            if self.take_outdated() || looked.elapsed() >= RESYNC {
                looked = Instant::now();
                self.write_statuses().await;
            }
        }
    }

    /// Resolves when every namespace had its turn and every pod was asked, or would have been. A status that is written
    /// before says of what nobody has looked at yet that it is not so.
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
        self.watched.injected().iter().all(turned) && self.is_fleet_asked()
    }

    /// Writes every status that is not what it should be.
    pub(super) async fn write_statuses(&self) {
        let objects = self.watched.policies();
        let uids: HashSet<String> = objects.iter().filter_map(|(_, it)| it.metadata.uid.clone()).collect();
        self.readings.retain(&uids);
        let (pods, states) = (self.watched.pods(), self.states());
        let (reports, injected) = (self.reports.all(), self.watched.injected());
        let (mut accepted, mut refused) = (0, 0);
        for (kind, object) in objects {
            let reading = self.readings.read(kind, &object);
            let names = self.namespaces_of(&reading);
            let places: Vec<Place<'_>> = names
                .iter()
                .filter_map(|namespace| {
                    let of = |pod: &&Guarded| pod.namespace == *namespace && !pod.leaving;
                    let report = reports.get(namespace).map(Arc::as_ref);
                    let failure = self.reports.failure(namespace);
                    let pods: Vec<Seen<'_>> = pods
                        .iter()
                        .filter(of)
                        .map(|pod| Seen {
                            name: &pod.name,
                            labels: &pod.labels,
                            state: states.get(&pod.uid).map(|(state, _)| *state),
                            drifts: states.get(&pod.uid).is_some_and(|(_, drifts)| *drifts),
                        })
                        .collect();
                    injected.contains(namespace).then_some(Place { namespace, report, failure, pods })
                })
                .collect();
            let before = self.status_before(&object, &reading);
            let after = status(&reading, &places, &before, Timestamp::now());
            let good = after.conditions.iter().any(|one| one.type_ == "Accepted" && one.status == "True");
            if good {
                accepted += 1
            } else {
                refused += 1
            }
            if after != before {
                self.write_status(&reading, &before, after).await;
            }
        }
        self.metrics.policies(accepted, refused);
    }

    /// The namespaces that a policy is for.
    fn namespaces_of(&self, reading: &Reading) -> Vec<String> {
        if let Some(namespace) = &reading.namespace {
            return vec![namespace.clone()];
        }
        let reports = self.reports.all();
        let applies = |namespace: &String| {
            let key = &reading.candidate.key;
            let published = reports.get(namespace).is_some_and(|report| report.documents.contains_key(key));
            match &reading.candidate.read {
                Ok(document) => {
                    self.watched.labels(namespace).is_some_and(|labels| selects_namespace(document, &labels))
                }
                Err(_) => published,
            }
        };
        self.watched.namespaces().into_iter().filter(applies).collect()
    }

    /// The status that the policy has: what was written lately, else what the watch says.
    fn status_before(&self, object: &DynamicObject, reading: &Reading) -> Status {
        let mut written = self.written.0.lock().unwrap_or_else(PoisonError::into_inner);
        written.retain(|_, (_, at)| at.elapsed() < ECHO);
        if let Some((status, _)) = written.get(&reading.uid) {
            return status.clone();
        }
        let status = object.data.get("status").cloned();
        status.and_then(|status| serde_json::from_value(status).ok()).unwrap_or_default()
    }

    async fn write_status(&self, reading: &Reading, before: &Status, after: Status) {
        let resource = resource(reading.kind);
        let api: Api<DynamicObject> = match &reading.namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &resource),
            None => Api::all_with(self.client.clone(), &resource),
        };
        // Not another policy of the same name.
        let patch = json!({
            "apiVersion": API_VERSION,
            "kind": word(reading.kind),
            "metadata": { "name": reading.name, "namespace": reading.namespace, "uid": reading.uid },
            "status": after,
        });
        let parameters = PatchParams::apply(MANAGER).force();
        match api.patch_status(&reading.name, &parameters, &Patch::Apply(&patch)).await {
            Ok(_) => {}
            Err(kube::Error::Api(status)) if status.is_not_found() || status.is_conflict() => {}
            Err(error) => {
                tracing::warn!(policy = reading.id(), error = said(&error), "a status could not be written");
                self.outdated();
                return;
            }
        }
        self.tell(reading, before, &after).await;
        let mut written = self.written.0.lock().unwrap_or_else(PoisonError::into_inner);
        written.insert(reading.uid.clone(), (after, Instant::now()));
    }

    /// Says in an Event what has become wrong with a policy.
    async fn tell(&self, reading: &Reading, before: &Status, after: &Status) {
        for condition in
            after.conditions.iter().filter(|one| one.status == "False" && one.reason != "Pending")
        {
            let same = |one: &&k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition| {
                one.type_ == condition.type_ && one.reason == condition.reason
            };
            let known = before.conditions.iter().find(same);
            // That it is not accepted is said by the other condition.
            if known.is_none_or(|known| known.message != condition.message && condition.reason != "Drift")
                && condition.reason != "NotAccepted"
            {
                let action = if condition.type_ == "Accepted" { "Accept" } else { "Program" };
                self.warn(&reading.reference(), &condition.reason, action, condition.message.clone()).await;
            }
        }
    }

    /// Publishes a warning about an object. An Event that cannot be written holds nothing up.
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
            tracing::warn!(error = said(&error), reason, "an Event could not be written");
        }
    }
}
