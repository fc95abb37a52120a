//! Renews `syncedAt` of the published ConfigMaps, and checks the Secrets that no watch follows for changes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures_util::{StreamExt, stream};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{Api, DynamicObject, GetParams, ListParams, Patch};
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::policies::resource;
use super::reconcile::written;
use super::report::NamespaceReport;
use super::{AT_ONCE, Controller, every};
use crate::operator::objects::{patching, reason};
use crate::pod;
use crate::policy::document::Kind;

/// How old `syncedAt` may become; gateways call it stale at five minutes.
const REFRESH: Duration = Duration::from_mins(2);
/// How often the namespaces that are due are determined.
const PERIOD: Duration = Duration::from_secs(10);

/// How long a watch may take to show what was listed.
const CATCHING_UP: Duration = Duration::from_secs(5);
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// The generation of each policy, by its UID.
type Generations = BTreeMap<String, i64>;

impl Controller {
    /// Renews `syncedAt`, forever.
    pub(super) async fn keep_fresh(&self) {
        let mut period = every(PERIOD);
        loop {
            period.tick().await;
            self.refresh(SystemTime::now()).await;
        }
    }

    /// Renews `syncedAt` where it is due. After a failed turn, or while a watch may have missed something, it is left:
    /// it is better that gateways report stale policies.
    pub(super) async fn refresh(&self, now: SystemTime) {
        let due =
            |report: &NamespaceReport| now.duration_since(report.synced_at).is_ok_and(|age| age >= REFRESH);
        let reports = self.reports.all().into_iter().filter(|(_, report)| due(report));
        let due: Vec<String> =
            reports.map(|(namespace, _)| namespace).filter(|it| self.reports.failure(it).is_none()).collect();
        if due.is_empty() || !self.is_current().await {
            return;
        }
        stream::iter(due).for_each_concurrent(AT_ONCE, |namespace| self.vouch(namespace, now)).await;
    }

    async fn vouch(&self, namespace: String, now: SystemTime) {
        let maps: Api<ConfigMap> = Api::namespaced(self.client.clone(), &namespace);
        let patch = json!({ "data": { pod::SYNCED_AT_KEY: written(now) } });
        match maps.patch(pod::POLICY_CONFIG_MAP, &patching(), &Patch::Merge(&patch)).await {
            Ok(_) => self.reports.synced(&namespace, now),
            Err(kube::Error::Api(status)) if status.is_not_found() => self.touch(&namespace),
            Err(error) => {
                tracing::warn!(namespace, error = reason(&error), "syncedAt could not be refreshed")
            }
        }
    }

    /// Whether the watches have every policy that the API server lists, now or within [`CATCHING_UP`]. Policies that
    /// change all the time do not matter: generations only grow, so the watches reach or pass the listed ones.
    async fn is_current(&self) -> bool {
        let before = self.seen();
        let Some(there) = self.listed().await else { return false };
        let deleted: BTreeSet<&String> = before.keys().filter(|uid| !there.contains_key(*uid)).collect();
        let deadline = Instant::now() + CATCHING_UP;
        while !behind(&self.seen(), &there, &deleted).is_empty() && Instant::now() < deadline {
            sleep(LOOK_AGAIN).await;
        }
        let late = behind(&self.seen(), &there, &deleted);
        if late.is_empty() {
            return true;
        }
        // A policy that was listed and is missing in the watch may have been deleted meanwhile.
        let Some(now) = self.listed().await else { return false };
        let caught_up = late.iter().all(|uid| there.contains_key(*uid) && !now.contains_key(*uid));
        if !caught_up {
            tracing::info!("a watch is behind: nothing is vouched for until it has caught up");
        }
        caught_up
    }

    /// The policies that the watches have.
    fn seen(&self) -> Generations {
        let policies = self.watched.policies();
        policies.iter().filter_map(|(_, object)| generation(&object.metadata)).collect()
    }

    /// The policies that the API server has; none if it does not answer.
    async fn listed(&self) -> Option<Generations> {
        let mut there = Generations::new();
        for kind in [Kind::EgressPolicy, Kind::ClusterEgressPolicy] {
            let api: Api<DynamicObject> = Api::all_with(self.client.clone(), &resource(kind));
            match api.list_metadata(&ListParams::default()).await {
                Ok(list) => there.extend(list.into_iter().filter_map(|it| generation(&it.metadata))),
                Err(error) => {
                    let error = reason(&error);
                    tracing::warn!(error, "policies cannot be listed: nothing is vouched for");
                    return None;
                }
            }
        }
        Some(there)
    }

    /// Checks the Secrets that policies refer to, forever. Each is read by name, without its data.
    pub(super) async fn watch_sources(&self) {
        let mut period = every(PERIOD);
        loop {
            period.tick().await;
            // Concurrently: a namespace whose policies name many Secrets does not hold up the others.
            let looks =
                stream::iter(self.reports.all()).for_each_concurrent(AT_ONCE, async |(namespace, report)| {
                    self.look_at_sources(&namespace, &report).await;
                });
            looks.await;
        }
    }

    pub(super) async fn look_at_sources(&self, namespace: &str, report: &Arc<NamespaceReport>) {
        for (source, copied) in &report.sources {
            let secrets: Api<Secret> = Api::namespaced(self.client.clone(), &source.namespace);
            // Served from the API server's cache. If that is a moment behind, the next look sees the change.
            match secrets.get_metadata_opt_with(&source.name, &GetParams::any()).await {
                Ok(secret) => {
                    if secret.and_then(|secret| secret.metadata.resource_version) != *copied {
                        self.touch(namespace);
                    }
                }
                // A Secret that may not be read was not copied either; after other errors the next look decides.
                Err(error) => {
                    tracing::debug!(namespace, ?source, error = reason(&error), "a Secret cannot be read")
                }
            }
        }
    }
}

fn generation(metadata: &ObjectMeta) -> Option<(String, i64)> {
    Some((metadata.uid.clone()?, metadata.generation.unwrap_or_default()))
}

/// The policies that a watch lacks, has in an older version than was listed, or still has though they were deleted.
fn behind<'a>(seen: &Generations, there: &'a Generations, deleted: &BTreeSet<&'a String>) -> Vec<&'a String> {
    let older = there.iter().filter(|(uid, listed)| seen.get(*uid).is_none_or(|seen| seen < listed));
    older.map(|(uid, _)| uid).chain(deleted.iter().filter(|uid| seen.contains_key(**uid)).copied()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn generations(of: &[(&str, i64)]) -> Generations {
        of.iter().map(|(uid, generation)| ((*uid).to_owned(), *generation)).collect()
    }

    #[test]
    fn a_watch_that_has_passed_what_was_listed_is_not_behind() {
        let there = generations(&[("a", 3), ("b", 1)]);
        let none = BTreeSet::new();
        assert!(behind(&generations(&[("a", 900), ("b", 1), ("new", 1)]), &there, &none).is_empty());
        assert_eq!(behind(&generations(&[("a", 2), ("b", 1)]), &there, &none), ["a"]);
        assert_eq!(behind(&generations(&[("a", 3)]), &there, &none), ["b"]);
    }

    #[test]
    fn a_watch_that_still_has_what_was_deleted_is_behind() {
        let (there, gone) = (generations(&[("a", 1)]), "gone".to_owned());
        let deleted = BTreeSet::from([&gone]);
        assert_eq!(behind(&generations(&[("a", 1), ("gone", 4)]), &there, &deleted), ["gone"]);
        assert!(behind(&generations(&[("a", 1)]), &there, &deleted).is_empty());
    }
}
