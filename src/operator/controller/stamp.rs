//! Stamps pods with the revisions that they should have, so that kubelet refreshes what they mount at once.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, Patch, PatchParams};
use serde_json::json;
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::Controller;
use super::guarded::Guarded;
use super::objects::{MANAGER, said};
use super::rota::in_turn;
use crate::pod;

/// How many pods are stamped in a second: kubelets and the API server have other work too.
const PER_SECOND: u32 = 50;
/// How many are stamped before it is looked again who waits.
const ROUND: usize = PER_SECOND as usize;
/// How far apart the stamps of one pod are, but for a few edits in a row: who edits all the time does not have all of the
/// pace, and the pods have the newest revision in the end.
const APART: Duration = Duration::from_secs(10);
const IN_A_ROW: u32 = 3;
/// How long a stamp is given to come back through the watch.
const ECHO: Duration = Duration::from_secs(30);
/// How often pods are looked through though nothing was published.
const PERIOD: Duration = Duration::from_secs(1);

/// What pods were stamped with lately, by their UIDs.
#[derive(Debug, Default)]
pub(super) struct Stamps(Mutex<HashMap<String, Given>>);

/// A stamp that a pod was given.
#[derive(Debug, Clone)]
struct Given {
    stamp: Stamp,
    at: Instant,
    /// When it and those before would have been given, each [`APART`] from the other; never long past.
    even: Instant,
}

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
        let mut last = String::new();
        loop {
            let round = self.unstamped(&last, Instant::now());
            if round.is_empty() {
                // A period passes where nothing is published.
                let _ = tokio::time::timeout(PERIOD, self.published.notified()).await;
            }
            for (pod, stamp) in round {
                tokens.tick().await;
                self.stamp(&pod, stamp).await;
                last.clone_from(&pod.namespace);
            }
        }
    }

    /// The next round of pods whose stamps differ from what their namespaces have; `last` is the namespace that was
    /// served last.
    fn unstamped(&self, last: &str, now: Instant) -> Vec<(Arc<Guarded>, Stamp)> {
        let reports = self.reports.all();
        let mut recent = self.stamps.0.lock().unwrap_or_else(PoisonError::into_inner);
        recent.retain(|_, given| now < given.at + ECHO);
        let mut waiting: BTreeMap<String, Vec<_>> = BTreeMap::new();
        for pod in self.watched.pods().into_iter().filter(|pod| !pod.leaving) {
            let Some(report) = reports.get(&pod.namespace) else { continue };
            let there = pod.policy_stamp.as_ref() == Some(&report.revision)
                && pod.secrets_stamp.as_ref() == Some(&report.secrets);
            if there {
                continue;
            }
            let stamp = Stamp { policy: report.revision.clone(), secrets: report.secrets.clone() };
            let given = recent.get(&pod.uid);
            if is_due(&stamp, given, now) {
                let at = given.map(|given| given.at);
                waiting.entry(pod.namespace.clone()).or_default().push((at, pod, stamp));
            }
        }
        // Of one namespace whoever was stamped longest ago.
        waiting.values_mut().for_each(|pods| pods.sort_by_key(|(at, _, _)| *at));
        in_turn(waiting, last, ROUND).into_iter().map(|(_, pod, stamp)| (pod, stamp)).collect()
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
        let given = Given::after(recent.get(&pod.uid), stamp, Instant::now());
        recent.insert(pod.uid.clone(), given);
    }

    /// Stamps what is to be stamped now.
    #[cfg(test)]
    pub(super) async fn stamp_all(&self) {
        for (pod, stamp) in self.unstamped("", Instant::now()) {
            self.stamp(&pod, stamp).await;
        }
    }
}

impl Given {
    fn after(before: Option<&Self>, stamp: Stamp, now: Instant) -> Self {
        let even = before.map_or(now, |before| (before.even + APART).max(now));
        Self { stamp, at: now, even }
    }
}

/// Whether a pod is to get this stamp now that got the `given` one.
fn is_due(stamp: &Stamp, given: Option<&Given>, now: Instant) -> bool {
    given.is_none_or(|given| {
        if given.stamp == *stamp {
            now >= given.at + ECHO
        } else {
            now + APART * (IN_A_ROW - 1) >= given.even + APART
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamp(policy: u64) -> Stamp {
        Stamp { policy: policy.to_string(), secrets: String::new() }
    }

    #[test]
    fn a_pod_whose_policy_changes_all_the_time_is_stamped_now_and_then_and_at_last_with_the_newest() {
        let start = Instant::now();
        let (mut given, mut stamped) = (None::<Given>, Vec::new());
        for second in 0..60 {
            let (now, newest) = (start + Duration::from_secs(second), stamp(second.min(35)));
            let there = given.as_ref().is_some_and(|given| given.stamp == newest);
            if !there && is_due(&newest, given.as_ref(), now) {
                stamped.push(second);
                given = Some(Given::after(given.as_ref(), newest, now));
            }
        }
        assert_eq!(stamped, [0, 1, 2, 10, 20, 30, 40]);
        assert_eq!(given.unwrap().stamp, stamp(35));
    }

    #[test]
    fn a_stamp_that_does_not_come_back_is_given_again() {
        let given = Given::after(None, stamp(1), Instant::now());
        assert!(!is_due(&stamp(1), Some(&given), given.at + APART));
        assert!(is_due(&stamp(1), Some(&given), given.at + ECHO));
    }
}
