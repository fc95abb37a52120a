//! Annotates pods with the revisions that they should have, so that kubelet refreshes their volumes at once.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::{StreamExt, stream};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, Patch};
use serde_json::json;
use tokio::time::Instant;

use super::edit::Edit;
use super::fair_queue::in_turn;
use super::fleet::PodState;
use super::guarded::Guarded;
use super::queue::IN_A_ROW;
use super::report::NamespaceReport;
use super::{AT_ONCE, Controller, every};
use crate::operator::objects::{is_replaced, patching, reason};
use crate::pod;
use crate::rate::Rate;

/// How many pods are stamped per second: kubelets and the API server have other work too. An edit that could make a
/// policy stricter does not wait for this.
const PER_SECOND: u32 = 50;
/// How many pods are stamped in a round at that pace, and in one without; then the waiting pods are determined anew.
const ROUND: usize = 10;
const HURRIED_ROUND: usize = 50;
/// The distance of revisions that the pods of a namespace are stamped with, after many in a row: a namespace that is
/// edited all the time does not use up the pace, and its pods get the newest revision in the end.
const APART: Duration = Duration::from_secs(5);
/// How long a stamp may take to come back through the watch.
const ECHO: Duration = Duration::from_secs(30);
/// How long after a stamp the pod is stamped again if its gateway does not have the revision: kubelet may see the stamp
/// before it sees the changed objects, and would look again only within 90 s.
const AGAIN: [Duration; 3] = [Duration::from_secs(2), Duration::from_secs(8), Duration::from_secs(20)];
/// How often pods are checked though nothing was published.
const PERIOD: Duration = Duration::from_secs(1);

/// The stamps that pods were given lately.
#[derive(Debug, Default)]
pub(super) struct Stamps(Mutex<StampState>);

#[derive(Debug, Default)]
struct StampState {
    /// By the UIDs of the pods.
    given: HashMap<String, Given>,
    /// The stamp that the pods of each namespace shall have now.
    admitted: HashMap<String, Admitted>,
}

/// A stamp that a pod was given.
#[derive(Debug, Clone)]
struct Given {
    stamp: RevisionStamp,
    at: Instant,
    /// How often the pod was given this stamp.
    times: usize,
    /// The Secrets or the settings have changed. A gateway reports only its policy, so whether it has them is not known.
    has_unreported: bool,
}

/// The stamp of a namespace's pods.
#[derive(Debug)]
struct Admitted {
    stamp: Option<RevisionStamp>,
    rate: Rate,
    /// It could be stricter than what the pods have.
    hurried: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct RevisionStamp {
    policy: String,
    secrets: String,
    settings: String,
}

/// The pods to stamp now, with their stamps.
#[derive(Debug, Default)]
struct Round {
    /// At once.
    hurried: Vec<(Arc<Guarded>, RevisionStamp)>,
    /// At the pace of all namespaces together.
    paced: Vec<(Arc<Guarded>, RevisionStamp)>,
}

/// The namespaces that were served last in a round, with and without a pace.
#[derive(Debug, Default)]
struct LastServed {
    hurried: String,
    paced: String,
}

impl Stamps {
    /// Notes the edit by which a namespace's policies came to what is published now.
    pub(super) fn edited(&self, namespace: &str, edit: Edit) {
        if edit == Edit::MayDeny {
            self.lock().admitted.entry(namespace.to_owned()).or_default().hurried = true;
        }
    }

    /// A poisoned lock is ignored: the state is whole after each step.
    fn lock(&self) -> MutexGuard<'_, StampState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Admitted {
    fn default() -> Self {
        Self { stamp: None, rate: Rate::new(APART, IN_A_ROW), hurried: false }
    }
}

impl Admitted {
    /// Admits what is published now, unless it may wait and the namespace has had too many revisions.
    fn admit(&mut self, published: &RevisionStamp, now: Instant) {
        if self.stamp.as_ref() == Some(published) {
            return;
        }
        let now = now.into_std();
        if !self.hurried && self.stamp.is_some() && !self.rate.take(now) {
            return;
        }
        self.stamp = Some(published.clone());
    }
}

impl Controller {
    /// Stamps pods, forever.
    pub(super) async fn keep_stamps(&self) {
        let mut tokens = every(Duration::from_secs(1) / PER_SECOND);
        let mut last = LastServed::default();
        loop {
            let Round { hurried, paced } = self.unstamped(&last, Instant::now());
            if hurried.is_empty() && paced.is_empty() {
                // The error means that the period passed and nothing was published.
                let _ = tokio::time::timeout(PERIOD, self.published.notified()).await;
            }
            for (round, last) in [(&hurried, &mut last.hurried), (&paced, &mut last.paced)] {
                if let Some((pod, _)) = round.last() {
                    last.clone_from(&pod.namespace);
                }
            }
            let at_once = stream::iter(hurried);
            at_once.for_each_concurrent(AT_ONCE, |(pod, stamp)| self.stamp(pod, stamp)).await;
            let pace = stream::poll_fn(|context| tokens.poll_tick(context).map(Some));
            let stamping = stream::iter(paced).zip(pace);
            stamping.for_each_concurrent(AT_ONCE, |((pod, stamp), _)| self.stamp(pod, stamp)).await;
        }
    }

    /// The next round of pods whose stamps differ from those of their namespaces.
    fn unstamped(&self, last: &LastServed, now: Instant) -> Round {
        let reports = self.reports.all();
        let mut state = self.stamps.lock();
        let StampState { given, admitted } = &mut *state;
        given.retain(|_, given| now < given.at + ECHO);
        admitted.retain(|namespace, _| reports.contains_key(namespace));
        for (namespace, report) in &reports {
            admitted.entry(namespace.clone()).or_default().admit(&RevisionStamp::of(report), now);
        }
        let unsure = self.unsure();
        let (mut hurried, mut paced) = (BTreeMap::<_, Vec<_>>::new(), BTreeMap::<_, Vec<_>>::new());
        let mut behind = HashSet::new();
        for pod in self.watched.pods().into_iter().filter(|pod| !pod.leaving) {
            let Some(report) = reports.get(&pod.namespace) else { continue };
            let of_namespace = &admitted[&pod.namespace];
            // A new pod has no older revision that it could keep meanwhile.
            let is_new = pod.policy_stamp.is_none();
            let stamp =
                of_namespace.stamp.clone().filter(|_| !is_new).unwrap_or_else(|| RevisionStamp::of(report));
            // The watch may be behind: what was given lately counts as well as what the pod shows.
            let before = given.get(&pod.uid);
            let is_due = if stamp.is_on(&pod) {
                before.is_some_and(|given| given.is_due_again(&stamp, unsure.contains(&pod.uid), now))
            } else {
                let is_untried = before.is_none_or(|given| given.stamp != stamp);
                // A pod that cannot be stamped must not keep its whole namespace hurried.
                if is_untried {
                    behind.insert(pod.namespace.clone());
                }
                is_untried || before.is_some_and(|given| now >= given.at + ECHO)
            };
            if is_due {
                let round = if of_namespace.hurried { &mut hurried } else { &mut paced };
                let waiting = (before.map(|given| given.at), pod);
                round.entry(waiting.1.namespace.clone()).or_default().push((waiting, stamp));
            }
        }
        for (namespace, of_namespace) in admitted.iter_mut().filter(|(it, _)| !behind.contains(*it)) {
            of_namespace.hurried &=
                of_namespace.stamp != reports.get(namespace).map(|it| RevisionStamp::of(it));
        }
        Round {
            hurried: round(hurried, &last.hurried, HURRIED_ROUND),
            paced: round(paced, &last.paced, ROUND),
        }
    }

    /// The UIDs of pods whose gateways report another revision than was published, or have not started: those may wait for
    /// what was stamped.
    fn unsure(&self) -> HashSet<String> {
        let lags = |state| matches!(state, PodState::Behind | PodState::Drifting);
        let sights = self.sights().into_iter();
        sights
            .filter(|(pod, known)| !pod.running && !pod.ended || known.is_some_and(|(its, _)| lags(its)))
            .map(|(pod, _)| pod.uid.clone())
            .collect()
    }

    /// Annotates a pod by a patch of its status: that needs no right to change the pod itself.
    async fn stamp(&self, pod: Arc<Guarded>, stamp: RevisionStamp) {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), &pod.namespace);
        let before = self.stamps.lock().given.get(&pod.uid).filter(|given| given.stamp == stamp).cloned();
        let annotations = json!({
            pod::POLICY_REVISION: stamp.policy,
            pod::SECRETS_REVISION: stamp.secrets,
            pod::SETTINGS_REVISION: stamp.settings,
            // The pod must change, or kubelet sees no update.
            pod::REFRESH: before.as_ref().map(|before| before.times.to_string()),
        });
        // With its UID, the patch fails for another pod of the same name.
        let patch = json!({ "metadata": { "uid": pod.uid, "annotations": annotations } });
        match pods.patch_status(&pod.name, &patching(), &Patch::Merge(&patch)).await {
            Ok(_) => {
                self.metrics.stamped();
            }
            Err(error) if is_replaced(&error) => {}
            Err(error) => {
                let (namespace, name) = (pod.namespace.as_str(), pod.name.as_str());
                tracing::warn!(namespace, name, error = reason(&error), "a pod could not be stamped");
            }
        }
        // A pod that could not be stamped waits too: kubelet refreshes it within 90 s anyway.
        let differs = |had: &Option<String>, now| had.as_ref().is_some_and(|had| had != now);
        let has_changed =
            || differs(&pod.secrets_stamp, &stamp.secrets) || differs(&pod.settings_stamp, &stamp.settings);
        let has_unreported = before.as_ref().map_or_else(has_changed, |before| before.has_unreported);
        let times = before.map_or(1, |before| before.times + 1);
        let given = Given { stamp, at: Instant::now(), times, has_unreported };
        self.stamps.lock().given.insert(pod.uid.clone(), given);
    }

    /// Stamps all pods that are due now.
    #[cfg(test)]
    pub(super) async fn stamp_all(&self) {
        let Round { hurried, paced } = self.unstamped(&LastServed::default(), Instant::now());
        for (pod, stamp) in hurried.into_iter().chain(paced) {
            self.stamp(pod, stamp).await;
        }
    }
}

impl Given {
    /// Whether a pod that has this stamp shall be given it again.
    fn is_due_again(&self, stamp: &RevisionStamp, is_unsure: bool, now: Instant) -> bool {
        let after = self.times.checked_sub(1).and_then(|before| AGAIN.get(before));
        self.stamp == *stamp
            && (is_unsure || self.has_unreported)
            && after.is_some_and(|after| now >= self.at + *after)
    }
}

impl RevisionStamp {
    fn of(report: &NamespaceReport) -> Self {
        Self {
            policy: report.revision.clone(),
            secrets: report.secrets.clone(),
            settings: report.settings.clone(),
        }
    }

    fn is_on(&self, pod: &Guarded) -> bool {
        let stamps = [
            (&pod.policy_stamp, &self.policy),
            (&pod.secrets_stamp, &self.secrets),
            (&pod.settings_stamp, &self.settings),
        ];
        stamps.into_iter().all(|(has, shall)| has.as_ref() == Some(shall))
    }
}

/// A waiting pod with the time of its last stamp, and its next stamp.
type WaitingPod = ((Option<Instant>, Arc<Guarded>), RevisionStamp);

/// The next waiting pods; within a namespace, the one that was stamped longest ago first.
fn round(
    mut waiting: BTreeMap<String, Vec<WaitingPod>>,
    last: &str,
    most: usize,
) -> Vec<(Arc<Guarded>, RevisionStamp)> {
    waiting.values_mut().for_each(|pods| pods.sort_by_key(|((at, _), _)| *at));
    in_turn(waiting, last, most).into_iter().map(|((_, pod), stamp)| (pod, stamp)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Cluster, policy};
    use super::*;

    fn stamp(policy: u64) -> RevisionStamp {
        RevisionStamp { policy: policy.to_string(), secrets: String::new(), settings: String::new() }
    }

    #[test]
    fn twenty_revisions_in_a_row_are_admitted_at_once_and_then_one_every_five_seconds_and_at_last_the_newest()
    {
        let start = Instant::now();
        let (mut admitted, mut changes) = (Admitted::default(), Vec::new());
        for second in 0..60 {
            let before = admitted.stamp.clone();
            admitted.admit(&stamp(second.min(45)), start + Duration::from_secs(second));
            if admitted.stamp != before {
                changes.push(second);
            }
        }
        assert_eq!(changes[..20], (0..20).collect::<Vec<_>>());
        assert!(changes.windows(2).skip(30).all(|pair| pair[1] - pair[0] == 5), "{changes:?}");
        assert_eq!(admitted.stamp, Some(stamp(45)));
    }

    #[test]
    fn kubelet_is_asked_again_where_the_gateway_does_not_have_what_was_stamped() {
        let at = Instant::now();
        let given = |times, has_unreported| Given { stamp: stamp(1), at, times, has_unreported };
        let seconds = |seconds| at + Duration::from_secs(seconds);
        assert!(!given(1, false).is_due_again(&stamp(1), true, seconds(1)), "a moment is given to it");
        assert!(given(1, false).is_due_again(&stamp(1), true, seconds(2)));
        assert!(!given(1, false).is_due_again(&stamp(1), false, seconds(2)), "it has it");
        assert!(
            given(1, true).is_due_again(&stamp(1), false, seconds(2)),
            "of Secrets and settings nobody tells"
        );
        assert!(!given(2, false).is_due_again(&stamp(1), true, seconds(7)));
        assert!(!given(4, false).is_due_again(&stamp(1), true, seconds(29)), "kubelet looks by itself");
    }

    #[test]
    fn a_revision_that_could_be_stricter_does_not_wait() {
        let start = Instant::now();
        let mut admitted = Admitted::default();
        (0..30).for_each(|revision| admitted.admit(&stamp(revision), start));
        assert_eq!(admitted.stamp, Some(stamp(20)), "the first has no revision before it");
        admitted.hurried = true;
        admitted.admit(&stamp(30), start);
        assert_eq!(admitted.stamp, Some(stamp(30)));
    }

    /// The pods that are to be stamped after so long.
    fn due(cluster: &Cluster, after: Duration) -> Vec<(Arc<Guarded>, RevisionStamp)> {
        let now = Instant::now() + after;
        let Round { hurried, paced } = cluster.controller.unstamped(&LastServed::default(), now);
        hurried.into_iter().chain(paced).collect()
    }

    /// Stamps what is due after so long, and the watch sees it.
    async fn stamped(cluster: &mut Cluster, after: Duration) {
        for (pod, stamp) in due(cluster, after) {
            cluster.controller.stamp(pod, stamp).await;
        }
        cluster.pod_seen("one");
    }

    /// A cluster whose one pod has the stamp.
    async fn stamped_cluster() -> Cluster {
        let mut cluster = Cluster::new().await;
        cluster.pod("one", &[]);
        cluster.turn().await;
        stamped(&mut cluster, Duration::ZERO).await;
        cluster
    }

    #[tokio::test]
    async fn changed_settings_are_stamped_and_again_since_nobody_reports_them() {
        let mut cluster = stamped_cluster().await;
        assert_eq!(due(&cluster, 2 * ECHO).len(), 0, "the pod has the stamp");
        cluster.gateway_settings("a: c");
        cluster.turn().await;
        assert_eq!(due(&cluster, Duration::ZERO).len(), 1);
        stamped(&mut cluster, Duration::ZERO).await;
        for again in AGAIN {
            assert_eq!(due(&cluster, again - Duration::from_secs(1)).len(), 0);
            assert_eq!(due(&cluster, again).len(), 1);
            stamped(&mut cluster, again).await;
        }
        assert_eq!(due(&cluster, 2 * ECHO).len(), 0);
    }

    #[tokio::test]
    async fn a_pod_whose_gateway_has_not_started_is_stamped_again() {
        let mut cluster = stamped_cluster().await;
        assert_eq!(due(&cluster, AGAIN[0]).len(), 0, "a running one reports what it has");
        cluster.pod_is("one", "Pending");
        assert_eq!(due(&cluster, AGAIN[0]).len(), 1);
    }

    #[tokio::test]
    async fn a_pod_that_cannot_be_stamped_hurries_its_namespace_until_it_was_tried_once() {
        let mut cluster = Cluster::new().await;
        cluster.pod("one", &[]);
        for action in ["Tunnel", "Deny"] {
            let spec = format!("destinations: [{{name: d, hosts: [a.example], action: {action}}}]");
            cluster.policy(&policy("a", &spec));
            cluster.turn().await;
        }
        let is_hurried = |cluster: &Cluster| cluster.controller.stamps.lock().admitted["agents"].hurried;
        cluster.controller.unstamped(&LastServed::default(), Instant::now());
        assert!(is_hurried(&cluster), "nothing was tried");
        // The stamp never comes back through the watch.
        cluster.controller.stamp_all().await;
        let again = cluster.controller.unstamped(&LastServed::default(), Instant::now());
        assert!(again.hurried.is_empty() && again.paced.is_empty());
        assert!(!is_hurried(&cluster));
    }
}
