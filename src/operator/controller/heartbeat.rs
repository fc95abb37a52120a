//! Vouches for what is published, and looks whether what it was made of has changed without anybody saying so.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{Api, DynamicObject, ListParams, Patch, PatchParams};
use serde_json::json;
use tokio::time::{MissedTickBehavior, interval};

use super::Controller;
use super::objects::{MANAGER, said};
use super::policies::resource;
use super::reconcile::written;
use super::report::Report;
use crate::pod;
use crate::policy::document::Kind;

/// How old `syncedAt` may become; gateways call it stale at five minutes.
const REFRESH: Duration = Duration::from_mins(2);
/// How often it is looked which namespaces are due.
const PERIOD: Duration = Duration::from_secs(10);

/// How often the watches are compared before they are said to be behind, and how long they are given in between.
const LOOKS: usize = 4;
const PAUSE: Duration = Duration::from_millis(250);

/// Policies by UID, and which generation of each.
type Versions = BTreeMap<String, i64>;

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
        for namespace in due {
            let maps: Api<ConfigMap> = Api::namespaced(self.client.clone(), &namespace);
            let patch = json!({ "data": { pod::SYNCED_AT_KEY: written(now) } });
            let parameters =
                PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
            match maps.patch(pod::POLICY_CONFIG_MAP, &parameters, &Patch::Merge(&patch)).await {
                Ok(_) => self.reports.synced(&namespace, now),
                Err(kube::Error::Api(status)) if status.is_not_found() => self.touch(&namespace),
                Err(error) => {
                    tracing::warn!(namespace, error = said(&error), "syncedAt could not be refreshed")
                }
            }
        }
    }

    /// Whether the watches have what the API server has, or come to have it within a few looks: policies that change all
    /// the time are always a little ahead, and would else keep everybody's from being vouched for.
    async fn is_current(&self) -> bool {
        let mut behind: Option<Versions> = None;
        for look in 0..LOOKS {
            if look > 0 {
                tokio::time::sleep(PAUSE).await;
            }
            let listed = match self.listed().await {
                Ok(listed) => listed,
                Err(error) => {
                    tracing::warn!(error = said(&error), "policies cannot be listed: nothing is vouched for");
                    return false;
                }
            };
            let objects = self.watched.policies();
            let seen: Versions = objects.iter().filter_map(|(_, it)| version(&it.metadata)).collect();
            let left = still_behind(behind, &listed, &seen);
            if left.is_empty() {
                return true;
            }
            behind = Some(left);
        }
        tracing::info!("a watch is behind: nothing is vouched for until it has caught up");
        false
    }

    async fn listed(&self) -> Result<Versions, kube::Error> {
        let mut there = Versions::new();
        for kind in [Kind::EgressPolicy, Kind::ClusterEgressPolicy] {
            let api: Api<DynamicObject> = Api::all_with(self.client.clone(), &resource(kind));
            let list = api.list_metadata(&ListParams::default()).await?;
            there.extend(list.into_iter().filter_map(|it| version(&it.metadata)));
        }
        Ok(there)
    }

    /// Looks at the Secrets that policies refer to, for ever. They are asked for one by one, without what they hold.
    pub(super) async fn watch_sources(&self) {
        let mut period = interval(PERIOD);
        period.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            period.tick().await;
            for (namespace, report) in self.reports.all() {
                self.look_at_sources(&namespace, &report).await;
            }
        }
    }

    pub(super) async fn look_at_sources(&self, namespace: &str, report: &Arc<Report>) {
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), namespace);
        for (name, copied) in &report.sources {
            match secrets.get_metadata_opt(name).await {
                Ok(found) => {
                    if found.and_then(|found| found.metadata.resource_version) != *copied {
                        self.touch(namespace);
                    }
                }
                // What may not be read was not read before either; else the next look will tell.
                Err(error) => {
                    tracing::debug!(namespace, name, error = said(&error), "a Secret cannot be read")
                }
            }
        }
    }
}

fn version(metadata: &ObjectMeta) -> Option<(String, i64)> {
    Some((metadata.uid.clone()?, metadata.generation.unwrap_or_default()))
}

/// What of `before`, or at the first look of everything, the watches have not taken note of: a generation that they do not
/// have, or a policy that is there no more.
fn still_behind(before: Option<Versions>, listed: &Versions, seen: &Versions) -> Versions {
    let gone = seen.keys().filter(|uid| !listed.contains_key(*uid)).map(|uid| (uid.clone(), 0));
    let before = before.unwrap_or_else(|| listed.clone().into_iter().chain(gone).collect());
    let is_behind = |(uid, generation): &(String, i64)| match (listed.get(uid), seen.get(uid)) {
        (Some(_), Some(seen)) => seen < generation,
        (None, None) => false,
        (Some(_), None) | (None, Some(_)) => true,
    };
    before.into_iter().filter(is_behind).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn versions(all: &[(&str, i64)]) -> Versions {
        all.iter().map(|(uid, generation)| ((*uid).to_owned(), *generation)).collect()
    }

    #[test]
    fn a_policy_that_changes_all_the_time_is_not_a_watch_that_is_behind() {
        let left = still_behind(None, &versions(&[("a", 5), ("b", 1)]), &versions(&[("a", 4), ("b", 1)]));
        assert_eq!(left, versions(&[("a", 5)]));
        let later =
            still_behind(Some(left), &versions(&[("a", 9), ("b", 1)]), &versions(&[("a", 8), ("b", 1)]));
        assert!(later.is_empty());
    }

    #[test]
    fn policies_that_come_and_go_all_the_time_are_not_either() {
        let left = still_behind(None, &versions(&[("new", 1)]), &versions(&[("old", 1)]));
        assert_eq!(left, versions(&[("new", 1), ("old", 0)]));
        assert!(still_behind(Some(left), &versions(&[("newer", 1)]), &Versions::new()).is_empty());
    }

    #[test]
    fn a_watch_that_misses_a_change_or_a_deletion_stays_behind() {
        for (listed, seen) in [(&[("a", 2)][..], &[("a", 1)][..]), (&[], &[("a", 1)]), (&[("a", 1)], &[])] {
            let (listed, seen) = (versions(listed), versions(seen));
            let left = still_behind(None, &listed, &seen);
            assert_eq!(still_behind(Some(left), &listed, &seen).len(), 1, "{listed:?} {seen:?}");
        }
    }
}
