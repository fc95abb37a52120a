//! Reports gateways that end and are restarted: while kubelet waits before a restart, nothing leaves their pods.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::guarded::{GatewayContainer, Guarded};
use super::{AT_ONCE, Controller, every};
use futures_util::{StreamExt, stream};

/// How often kubelet's statuses are checked. Its shortest wait is ten seconds.
const PERIOD: Duration = Duration::from_secs(1);
/// How many Events are written each time; the metrics count all.
const ROUND: usize = 50;

/// The last state of each gateway's container, by the UID of its pod.
#[derive(Debug, Default)]
pub(super) struct Crashes(Mutex<HashMap<String, SeenContainer>>);

#[derive(Debug, Clone, Copy)]
struct SeenContainer {
    restarts: u32,
    backs_off: bool,
}

/// What happened to a gateway since the last look.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct ContainerChange {
    restarts: u32,
    /// Kubelet began to wait.
    backed_off: bool,
}

impl ContainerChange {
    /// Compares with the last look. At the first look at a pod, earlier restarts are no change; a wait is.
    fn since(before: Option<&SeenContainer>, now: &GatewayContainer) -> Option<Self> {
        let known = before.map_or(now.restarts, |before| before.restarts);
        let change = Self {
            restarts: now.restarts.saturating_sub(known),
            backed_off: now.back_off.is_some() && before.is_none_or(|before| !before.backs_off),
        };
        (change != Self::default()).then_some(change)
    }
}

impl Controller {
    /// Checks the gateways' containers, forever.
    pub(super) async fn watch_crashes(&self) {
        self.watched.ready().await;
        let mut period = every(PERIOD);
        loop {
            period.tick().await;
            self.look_at_crashes().await;
        }
    }

    /// Counts and reports gateways that ended.
    pub(super) async fn look_at_crashes(&self) {
        let mut changes = self.crashed();
        changes.truncate(ROUND);
        stream::iter(changes)
            .for_each_concurrent(AT_ONCE, |(pod, change)| self.tell_crash(pod, change))
            .await;
    }

    fn crashed(&self) -> Vec<(Arc<Guarded>, ContainerChange)> {
        // The gateway of a pod that is being deleted ends as it should.
        let pods: Vec<_> = self.watched.pods().into_iter().filter(|pod| !pod.leaving).collect();
        let mut seen = self.crashes.0.lock().unwrap_or_else(PoisonError::into_inner);
        let there: HashSet<&str> = pods.iter().map(|pod| pod.uid.as_str()).collect();
        seen.retain(|uid, _| there.contains(uid.as_str()));
        let (mut changes, mut backing_off) = (Vec::new(), 0);
        for pod in &pods {
            let Some(gateway) = &pod.gateway else { continue };
            let backs_off = gateway.back_off.is_some();
            backing_off += usize::from(backs_off);
            if let Some(change) = ContainerChange::since(seen.get(&pod.uid), gateway) {
                self.metrics.gateway_ended(change.restarts, change.backed_off);
                changes.push((Arc::clone(pod), change));
            }
            seen.insert(pod.uid.clone(), SeenContainer { restarts: gateway.restarts, backs_off });
        }
        self.metrics.gateways_backing_off(backing_off);
        changes
    }

    async fn tell_crash(&self, pod: Arc<Guarded>, change: ContainerChange) {
        let Some(gateway) = &pod.gateway else { return };
        let how = gateway.ended.as_deref().unwrap_or("kubelet does not say how");
        let (reason, note) = match &gateway.back_off {
            Some(time) if change.backed_off => (
                "GatewayBackOff",
                format!(
                    "The gateway has ended again ({how}). Kubelet waits {time} before it starts it, and until then \
                     nothing leaves the pod. `kubectl logs --previous -c postern-gateway` has its last words; compare \
                     its memory limit"
                ),
            ),
            Some(_) | None => (
                "GatewayRestarted",
                format!(
                    "The gateway has ended ({how}) and was started again; restarts so far: {}. Nothing left the pod \
                     meanwhile. Where it ends again within ten minutes, kubelet waits before it starts it",
                    gateway.restarts
                ),
            ),
        };
        tracing::warn!(
            namespace = pod.namespace,
            pod = pod.name,
            restarts = gateway.restarts,
            how,
            reason,
            "a gateway ended"
        );
        self.warn(&pod.reference(), reason, "Restart", note).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gateway(restarts: u32, back_off: Option<&str>) -> GatewayContainer {
        GatewayContainer { restarts, ended: None, back_off: back_off.map(str::to_owned) }
    }

    #[test]
    fn a_restart_and_the_beginning_of_a_wait_are_news_once() {
        let seen = SeenContainer { restarts: 1, backs_off: false };
        assert_eq!(ContainerChange::since(Some(&seen), &gateway(1, None)), None);
        assert_eq!(
            ContainerChange::since(Some(&seen), &gateway(3, None)),
            Some(ContainerChange { restarts: 2, backed_off: false })
        );
        assert_eq!(
            ContainerChange::since(Some(&seen), &gateway(1, Some("10s"))),
            Some(ContainerChange { restarts: 0, backed_off: true })
        );
        let waits = SeenContainer { restarts: 1, backs_off: true };
        assert_eq!(ContainerChange::since(Some(&waits), &gateway(1, Some("10s"))), None);
    }

    #[test]
    fn restarts_of_before_the_operator_came_are_no_news_and_a_wait_is() {
        assert_eq!(ContainerChange::since(None, &gateway(7, None)), None);
        assert_eq!(
            ContainerChange::since(None, &gateway(7, Some("5m0s"))),
            Some(ContainerChange { restarts: 0, backed_off: true })
        );
    }
}
