//! The operator's metrics.

use std::time::{SystemTime, UNIX_EPOCH};

use prometheus::core::Collector;
use prometheus::{
    Encoder, Error, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry, TextEncoder,
};

/// The operator's metrics, in a registry of their own.
#[derive(Debug)]
pub struct OperatorMetrics {
    registry: Registry,
    policies: IntGaugeVec,
    namespaces: IntGauge,
    pods: IntGaugeVec,
    ca_not_after: IntGaugeVec,
    root_not_after: IntGaugeVec,
    reconciles: IntCounterVec,
    webhook_requests: IntCounterVec,
    webhook_closed: IntCounter,
    webhook_certificate: IntGaugeVec,
    leader: IntGauge,
    deleted: IntCounter,
    dangers: Dangers,
    statuses_checked: IntGaugeVec,
    stamps: IntCounter,
}

/// Pods that have no gateway, and gateways that do not run.
#[derive(Debug)]
struct Dangers {
    unguarded: IntGaugeVec,
    unguarded_deleted: IntCounter,
    restarts: IntCounter,
    back_offs: IntCounter,
    backing_off: IntGauge,
}

impl Dangers {
    fn register(r: &Registry) -> Result<Self, Error> {
        Ok(Self {
            unguarded: gauges(
                r,
                "unguarded_pods",
                "Pods without a gateway in namespaces whose pods are all guarded.",
                &["namespace"],
            )?,
            unguarded_deleted: counter(
                r,
                "unguarded_pods_deleted_total",
                "Pods without a gateway that were deleted, as their namespace asks.",
            )?,
            restarts: counter(r, "gateway_restarts_total", "Gateways that ended and were started again.")?,
            back_offs: counter(
                r,
                "gateway_back_offs_total",
                "Times that kubelet waited before it started a gateway again.",
            )?,
            backing_off: registered(
                r,
                IntGauge::new(
                    name("gateways_backing_off"),
                    "Gateways that kubelet waits to start again; nothing leaves their pods meanwhile.",
                )?,
            )?,
        })
    }
}

/// The outcome of an admission request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WebhookVerdict {
    Allowed,
    Denied,
    /// It could not be read or judged.
    Failed,
}

impl WebhookVerdict {
    fn word(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::Denied => "denied",
            Self::Failed => "failed",
        }
    }
}

impl OperatorMetrics {
    /// Registers all of them.
    ///
    /// # Errors
    /// A name is taken or not well-formed.
    pub fn new() -> Result<Self, Error> {
        let registry = Registry::new();
        let r = &registry;
        Ok(Self {
            policies: gauges(
                r,
                "policies",
                "Policies of the cluster, by whether they are accepted.",
                &["accepted"],
            )?,
            namespaces: registered(
                r,
                IntGauge::new(name("namespaces"), "Namespaces whose objects the operator keeps.")?,
            )?,
            pods: gauges(r, "pods", "Injected pods that run, by what their gateways say.", &["state"])?,
            ca_not_after: gauges(
                r,
                "ca_not_after_timestamp_seconds",
                "When the CA of a namespace expires.",
                &["namespace"],
            )?,
            root_not_after: gauges(r, "root_not_after_timestamp_seconds", "When the root CA expires.", &[])?,
            reconciles: counters(r, "reconciles_total", "Reconciliations of a namespace.", &["result"])?,
            webhook_requests: counters(
                r,
                "webhook_requests_total",
                "Questions of the API server.",
                &["path", "verdict"],
            )?,
            webhook_closed: counter(
                r,
                "webhook_connections_closed_total",
                "Connections to the webhook that were closed to make room for others.",
            )?,
            webhook_certificate: gauges(
                r,
                "webhook_certificate_not_after_timestamp_seconds",
                "When the webhook's certificate expires.",
                &[],
            )?,
            leader: registered(
                r,
                IntGauge::new(name("leader"), "Whether this replica runs the controller.")?,
            )?,
            deleted: counter(
                r,
                "pods_deleted_total",
                "Pods deleted because their interception stayed unproven.",
            )?,
            dangers: Dangers::register(r)?,
            statuses_checked: gauges(
                r,
                "statuses_checked_timestamp_seconds",
                "When the statuses of all policies were last compared with the cluster.",
                &[],
            )?,
            stamps: counter(r, "stamps_total", "Pods annotated so that kubelet refreshes their volumes.")?,
            registry,
        })
    }

    /// The exposition, as Prometheus reads it.
    pub fn encode(&self) -> String {
        let mut text = Vec::new();
        // Writing to a Vec cannot fail.
        let _ = TextEncoder::new().encode(&self.registry.gather(), &mut text);
        String::from_utf8(text).unwrap_or_default()
    }

    /// Counts a request of the API server at this path of the webhook.
    pub fn webhook(&self, path: &str, verdict: WebhookVerdict) {
        self.webhook_requests.with_label_values(&[path, verdict.word()]).inc();
    }

    /// Counts a connection to the webhook that was closed to make room for another.
    pub fn webhook_closed(&self) {
        self.webhook_closed.inc();
    }

    /// Sets when the webhook's certificate expires.
    pub fn webhook_certificate(&self, not_after: SystemTime) {
        self.webhook_certificate.with_label_values::<&str>(&[]).set(seconds(not_after));
    }

    /// Sets whether this replica runs the controller. If not, resets the gauges that describe the cluster.
    pub fn leader(&self, leads: bool) {
        self.leader.set(i64::from(leads));
        if !leads {
            let vectors = [&self.policies, &self.pods, &self.ca_not_after, &self.root_not_after];
            vectors
                .iter()
                .chain(&[&self.dangers.unguarded, &self.statuses_checked])
                .for_each(|it| it.reset());
            [&self.namespaces, &self.dangers.backing_off].iter().for_each(|it| it.set(0));
        }
    }

    pub(super) fn policies(&self, accepted: usize, refused: usize) {
        self.policies.with_label_values(&["true"]).set(count(accepted));
        self.policies.with_label_values(&["false"]).set(count(refused));
    }

    pub(super) fn namespaces(&self, kept: usize) {
        self.namespaces.set(count(kept));
    }

    pub(super) fn pods(&self, state: &str, pods: usize) {
        self.pods.with_label_values(&[state]).set(count(pods));
    }

    /// Sets when the CA of a namespace expires; none if there is no CA.
    pub(super) fn ca(&self, namespace: &str, not_after: Option<SystemTime>) {
        match not_after {
            Some(time) => self.ca_not_after.with_label_values(&[namespace]).set(seconds(time)),
            // Removing a label that does not exist is an error, which does not matter.
            None => drop(self.ca_not_after.remove_label_values(&[namespace])),
        }
    }

    /// Sets when the root expires; none if there is no root.
    pub(super) fn root(&self, not_after: Option<SystemTime>) {
        match not_after {
            Some(time) => self.root_not_after.with_label_values::<&str>(&[]).set(seconds(time)),
            None => self.root_not_after.reset(),
        }
    }

    pub(super) fn reconciled(&self, success: bool) {
        self.reconciles.with_label_values(&[if success { "success" } else { "failure" }]).inc();
    }

    pub(super) fn deleted(&self) {
        self.deleted.inc();
    }

    /// Sets how many pods of an enforced namespace have no gateway; none if the namespace is not enforced any more.
    pub(super) fn unguarded(&self, namespace: &str, pods: Option<usize>) {
        match pods {
            Some(pods) => self.dangers.unguarded.with_label_values(&[namespace]).set(count(pods)),
            // Removing a label that does not exist is an error, which does not matter.
            None => drop(self.dangers.unguarded.remove_label_values(&[namespace])),
        }
    }

    pub(super) fn unguarded_deleted(&self) {
        self.dangers.unguarded_deleted.inc();
    }

    /// Counts a gateway's restarts, and whether kubelet began to wait before the next.
    pub(super) fn gateway_ended(&self, restarts: u32, backed_off: bool) {
        self.dangers.restarts.inc_by(u64::from(restarts));
        self.dangers.back_offs.inc_by(u64::from(backed_off));
    }

    pub(super) fn gateways_backing_off(&self, gateways: usize) {
        self.dangers.backing_off.set(count(gateways));
    }

    /// Sets when all statuses were last compared with the cluster.
    pub(super) fn statuses_checked(&self, at: SystemTime) {
        self.statuses_checked.with_label_values::<&str>(&[]).set(seconds(at));
    }

    pub(super) fn stamped(&self) {
        self.stamps.inc();
    }
}

fn name(of: &str) -> String {
    format!("postern_operator_{of}")
}

fn registered<C: Collector + Clone + 'static>(registry: &Registry, collector: C) -> Result<C, Error> {
    registry.register(Box::new(collector.clone()))?;
    Ok(collector)
}

fn gauges(registry: &Registry, of: &str, help: &str, labels: &[&str]) -> Result<IntGaugeVec, Error> {
    registered(registry, IntGaugeVec::new(Opts::new(name(of), help), labels)?)
}

fn counter(registry: &Registry, of: &str, help: &str) -> Result<IntCounter, Error> {
    registered(registry, IntCounter::new(name(of), help)?)
}

fn counters(registry: &Registry, of: &str, help: &str, labels: &[&str]) -> Result<IntCounterVec, Error> {
    registered(registry, IntCounterVec::new(Opts::new(name(of), help), labels)?)
}

fn count(things: usize) -> i64 {
    i64::try_from(things).unwrap_or(i64::MAX)
}

/// Seconds since 1970, the unit of times in Prometheus.
fn seconds(time: SystemTime) -> i64 {
    let elapsed = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(elapsed.as_secs()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn what_alerts_ask_for_is_there_by_its_name() {
        let metrics = OperatorMetrics::new().unwrap();
        metrics.webhook("/pods/mutate", WebhookVerdict::Denied);
        metrics.webhook_certificate(UNIX_EPOCH + Duration::from_secs(7));
        metrics.leader(true);
        metrics.ca("agents", Some(UNIX_EPOCH + Duration::from_secs(9)));
        metrics.pods("drifting", 2);
        let text = metrics.encode();
        for line in [
            "postern_operator_webhook_requests_total{path=\"/pods/mutate\",verdict=\"denied\"} 1",
            "postern_operator_webhook_certificate_not_after_timestamp_seconds 7",
            "postern_operator_leader 1",
            "postern_operator_ca_not_after_timestamp_seconds{namespace=\"agents\"} 9",
            "postern_operator_pods{state=\"drifting\"} 2",
            "postern_operator_stamps_total 0",
        ] {
            assert!(text.lines().any(|told| told == line), "{line} in\n{text}");
        }
    }

    #[test]
    fn a_replica_that_does_not_lead_says_nothing_of_the_cluster() {
        let metrics = OperatorMetrics::new().unwrap();
        metrics.policies(3, 1);
        metrics.ca("agents", Some(UNIX_EPOCH));
        metrics.leader(false);
        let text = metrics.encode();
        assert!(!text.contains("postern_operator_policies{") && !text.contains("agents"), "{text}");
    }
}
