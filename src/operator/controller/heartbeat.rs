//! Vouches for what is published, and looks whether what it was made of has changed without anybody saying so.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
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

/// A policy, and which version of it.
type Version = (Option<String>, Option<i64>);

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

    /// Whether the watches have what the API server has.
    async fn is_current(&self) -> bool {
        let seen: BTreeSet<Version> = self
            .watched
            .policies()
            .iter()
            .map(|(_, object)| (object.metadata.uid.clone(), object.metadata.generation))
            .collect();
        let mut there = BTreeSet::new();
        for kind in [Kind::EgressPolicy, Kind::ClusterEgressPolicy] {
            let api: Api<DynamicObject> = Api::all_with(self.client.clone(), &resource(kind));
            match api.list_metadata(&ListParams::default()).await {
                Ok(list) => {
                    there.extend(list.into_iter().map(|it| (it.metadata.uid, it.metadata.generation)))
                }
                Err(error) => {
                    tracing::warn!(error = said(&error), "policies cannot be listed: nothing is vouched for");
                    return false;
                }
            }
        }
        if seen != there {
            tracing::info!("a watch is behind: nothing is vouched for until it has caught up");
        }
        seen == there
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
