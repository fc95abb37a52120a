//! Vouches for what is published, and looks whether what it was made of has changed without anybody saying so.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures_util::{StreamExt, stream};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{Api, DynamicObject, GetParams, ListParams, Patch, PatchParams};
use serde_json::json;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};

use super::objects::{MANAGER, said};
use super::policies::resource;
use super::reconcile::written;
use super::report::Report;
use super::{AT_ONCE, Controller};
use crate::pod;
use crate::policy::document::Kind;

/// How old `syncedAt` may become; gateways call it stale at five minutes.
const REFRESH: Duration = Duration::from_mins(2);
/// How often it is looked which namespaces are due.
const PERIOD: Duration = Duration::from_secs(10);

/// How long a watch may take to show what was listed.
const CATCHING_UP: Duration = Duration::from_secs(5);
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// The generation of each policy, by its UID.
type Generations = BTreeMap<String, i64>;

impl Controller {
    /// Refreshes `syncedAt`, for ever.
    pub(super) async fn keep_fresh(&self) {
        let mut period = interval(PERIOD);
        period.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            period.tick().await;
            self.refresh(SystemTime::now()).await;
        }
    }

    /// Refreshes what is due. Where a watch has missed something, or the last turn failed, nothing is vouched for: it
    /// is better that gateways say they are stale.
    pub(super) async fn refresh(&self, now: SystemTime) {
        let due = |report: &Report| now.duration_since(report.synced_at).is_ok_and(|age| age >= REFRESH);
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
        let parameters = PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
        match maps.patch(pod::POLICY_CONFIG_MAP, &parameters, &Patch::Merge(&patch)).await {
            Ok(_) => self.reports.synced(&namespace, now),
            Err(kube::Error::Api(status)) if status.is_not_found() => self.touch(&namespace),
            Err(error) => tracing::warn!(namespace, error = said(&error), "syncedAt could not be refreshed"),
        }
    }

    /// Whether the watches have what the API server has, or come to have it within [`CATCHING_UP`]. That policies change
    /// all the time proves nothing: generations only grow, so what is listed is reached or passed.
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
        // What was listed and is not watched may have been deleted meanwhile.
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

    /// The policies that the API server has; none where it does not say.
    async fn listed(&self) -> Option<Generations> {
        let mut there = Generations::new();
        for kind in [Kind::EgressPolicy, Kind::ClusterEgressPolicy] {
            let api: Api<DynamicObject> = Api::all_with(self.client.clone(), &resource(kind));
            match api.list_metadata(&ListParams::default()).await {
                Ok(list) => there.extend(list.into_iter().filter_map(|it| generation(&it.metadata))),
                Err(error) => {
                    tracing::warn!(error = said(&error), "policies cannot be listed: nothing is vouched for");
                    return None;
                }
            }
        }
        Some(there)
    }

    /// Looks at the Secrets that policies refer to, for ever. They are asked for one by one, without what they hold.
    pub(super) async fn watch_sources(&self) {
        let mut period = interval(PERIOD);
        period.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            period.tick().await;
            // Side by side: a namespace whose policies name many Secrets is not waited for by the others.
            let looks =
                stream::iter(self.reports.all()).for_each_concurrent(AT_ONCE, async |(namespace, report)| {
                    self.look_at_sources(&namespace, &report).await;
                });
            looks.await;
        }
    }

    pub(super) async fn look_at_sources(&self, namespace: &str, report: &Arc<Report>) {
        for (source, copied) in &report.sources {
            let secrets: Api<Secret> = Api::namespaced(self.client.clone(), &source.namespace);
            // From the API server's memory: one that is a moment behind is asked again.
            match secrets.get_metadata_opt_with(&source.name, &GetParams::any()).await {
                Ok(found) => {
                    if found.and_then(|found| found.metadata.resource_version) != *copied {
                        self.touch(namespace);
                    }
                }
                // What may not be read was not read before either; else the next look will tell.
                Err(error) => {
                    tracing::debug!(namespace, ?source, error = said(&error), "a Secret cannot be read")
                }
            }
        }
    }
}

fn generation(metadata: &ObjectMeta) -> Option<(String, i64)> {
    Some((metadata.uid.clone()?, metadata.generation.unwrap_or_default()))
}

/// The policies of which a watch has an older version than was listed, or none, or one that was deleted before.
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
