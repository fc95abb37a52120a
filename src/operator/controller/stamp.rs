//! Stamps pods with the revisions that they should have, so that kubelet refreshes what they mount at once.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, Patch, PatchParams};
use serde_json::json;
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::Controller;
use super::objects::{MANAGER, said};
use super::watch::Guarded;
use crate::pod;

/// How many pods are stamped in a second: kubelets and the API server have other work too.
const PER_SECOND: u32 = 50;
/// How long a stamp is given to come back through the watch.
const ECHO: Duration = Duration::from_secs(30);
/// How often pods are looked through though nothing was published.
const PERIOD: Duration = Duration::from_secs(1);

/// What pods were stamped with lately, by their UIDs.
#[derive(Debug, Default)]
pub(super) struct Stamps(Mutex<HashMap<String, (Stamp, Instant)>>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Stamp {
    policy: String,
    secrets: String,
}

impl Controller {
    /// Stamps pods for ever.
    pub(super) async fn keep_stamps(&self) {
        let mut tokens = interval(Duration::from_secs(1) / PER_SECOND);
        tokens.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            // A period passes where nothing is published.
            let _ = tokio::time::timeout(PERIOD, self.published.notified()).await;
            for (pod, stamp) in self.unstamped(Instant::now()) {
                tokens.tick().await;
                self.stamp(&pod, stamp).await;
            }
        }
    }

    /// The pods whose stamps differ from what their namespaces have.
    fn unstamped(&self, now: Instant) -> Vec<(Guarded, Stamp)> {
        let reports = self.reports.all();
        let mut recent = self.stamps.0.lock().unwrap_or_else(PoisonError::into_inner);
        recent.retain(|_, (_, at)| now < *at + ECHO);
        let pods = self.watched.pods().into_iter().filter(|pod| !pod.leaving);
        pods.filter_map(|pod| {
            let report = reports.get(&pod.namespace)?;
            let stamp = Stamp { policy: report.revision.clone(), secrets: report.secrets.clone() };
            let there = pod.policy_stamp.as_ref() == Some(&stamp.policy)
                && pod.secrets_stamp.as_ref() == Some(&stamp.secrets);
            let lately = recent.get(&pod.uid).is_some_and(|(given, _)| *given == stamp);
            (!there && !lately).then_some((pod, stamp))
        })
        .collect()
    }

    /// Annotates a pod through its status, which takes no right to change the pod itself.
    async fn stamp(&self, pod: &Guarded, stamp: Stamp) {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), &pod.namespace);
        let annotations = json!({ pod::POLICY_REVISION: stamp.policy, pod::SECRETS_REVISION: stamp.secrets });
        // Not another pod of the same name.
        let patch = json!({ "metadata": { "uid": pod.uid, "annotations": annotations } });
        let parameters = PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
        match pods.patch_status(&pod.name, &parameters, &Patch::Merge(&patch)).await {
            Ok(_) => {
                self.metrics.stamped();
            }
            Err(kube::Error::Api(status)) if status.is_not_found() || status.is_conflict() => {}
            Err(error) => {
                let (namespace, name) = (pod.namespace.as_str(), pod.name.as_str());
                tracing::warn!(namespace, name, error = said(&error), "a pod could not be stamped");
            }
        }
        // One that could not be stamped waits too: kubelet refreshes it within 90 s anyway.
        let mut recent = self.stamps.0.lock().unwrap_or_else(PoisonError::into_inner);
        recent.insert(pod.uid.clone(), (stamp, Instant::now()));
    }

    /// Stamps what is to be stamped now.
    #[cfg(test)]
    pub(super) async fn stamp_all(&self) {
        for (pod, stamp) in self.unstamped(Instant::now()) {
            self.stamp(&pod, stamp).await;
        }
    }
}
