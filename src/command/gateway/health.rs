//! The health of a running gateway, for probes and `postern status`: readiness, status, metrics.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use super::redirect_proof::RedirectProver;
use crate::admin::status::{
    ConnectionCounts, EventCounts, InterceptionStatus, ListenerStatus, PolicyState, PolicyStatus,
};
use crate::admin::{GatewayStatus, Inspect};
use crate::command::check::{Checked, Expected};
use crate::ledger::store::{Retention, StoreHealth};
use crate::ledger::timestamp;
use crate::policy::age::{Age, Freshness};
use crate::problem::Problem;
use crate::proxy::{Gateway, snapshot};
use crate::telemetry::label;
use crate::tls::gate::{Evidence, GateState};

/// What is known of a running gateway beside its snapshot.
pub(super) struct GatewayHealth {
    pub(super) gateway: Arc<Gateway>,
    pub(super) started_at: SystemTime,
    pub(super) listeners: Vec<ListenerStatus>,
    pub(super) facts: Mutex<GatewayFacts>,
    /// `limits.connections`, or as many as file descriptors allow.
    pub(super) connections: usize,
    /// The health of the ledger's file, and whether events wait for it.
    pub(super) store: Option<(StoreHealth, bool)>,
    /// How much of the ledger is kept.
    pub(super) retention: Option<Retention>,
    /// Where the transparent listener is on.
    pub(super) prover: Option<Arc<RedirectProver>>,
}

/// GatewayFacts that change while the gateway runs.
pub(super) struct GatewayFacts {
    pub(super) evidence: Evidence,
    pub(super) loaded_at: SystemTime,
    /// When the operator last vouched for the policy.
    pub(super) synced_at: Option<SystemTime>,
    pub(super) expected: Expected,
    /// ReloadFailure the newest files are not in force.
    pub(super) reload_error: Option<ReloadError>,
    /// The files that cannot be read now.
    pub(super) unread: Option<UnreadableFiles>,
    /// Mistakes in credentials, by name, without their values.
    pub(super) credentials: Vec<String>,
    /// ReloadFailure agents do not have the roots that they are to trust.
    pub(super) trust: Option<String>,
}

/// ReloadFailure the newest files are not in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ReloadError {
    pub(super) text: String,
    pub(super) why: ReloadFailure,
}

/// The kinds of reasons that keep files from being in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReloadFailure {
    /// Something is wrong with them.
    Wrong,
    /// They could not be read, so their mistakes are not known.
    Unread,
    /// The operator wrote policies that this version does not know.
    UnknownPolicies,
    /// It wrote settings with keys that this version does not know; the policy in force is the newest.
    UnknownSettings,
}

/// Files that cannot be read.
#[derive(Debug, Clone)]
pub(super) struct UnreadableFiles {
    pub(super) text: String,
    pub(super) lasts: Duration,
    /// It has lasted for too long to be a hiccup.
    pub(super) is_lasting: bool,
}

impl GatewayFacts {
    /// The facts of files that were read just now and hold no mistake.
    pub(super) fn of(checked: &Checked) -> Self {
        Self {
            evidence: checked.gate.evidence.clone(),
            loaded_at: SystemTime::now(),
            synced_at: checked.policy.synced_at(),
            expected: checked.expected.clone(),
            reload_error: None,
            unread: None,
            credentials: Vec::new(),
            trust: None,
        }
    }

    /// Whether the operator has published policies that this version does not know.
    pub(super) fn is_unknown(&self) -> bool {
        self.expected.unknown.is_some()
            || self.reload_error.as_ref().is_some_and(|error| error.why == ReloadFailure::UnknownPolicies)
    }
}

impl GatewayHealth {
    /// A poisoned lock is ignored: the facts are consistent after each step.
    pub(super) fn facts(&self) -> MutexGuard<'_, GatewayFacts> {
        self.facts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn age(&self) -> Age {
        let facts = self.facts();
        Age::at(SystemTime::now(), facts.loaded_at, facts.synced_at)
    }

    /// Sets the metrics of the policy in force and of interception.
    pub(super) fn update_metrics(&self) {
        let snapshot = self.gateway.snapshot();
        let revision = snapshot.policy().revision();
        let metrics = &self.gateway.metrics;
        {
            let facts = self.facts();
            metrics.policy_in_force(revision, facts.synced_at.unwrap_or(facts.loaded_at));
            metrics.policy_programmed(facts.expected.stamped.as_ref().map(|stamped| stamped == revision));
            metrics.policy_unknown(facts.is_unknown());
        }
        metrics.interception(match &snapshot.interception {
            snapshot::Interception::On(_) => label::Interception::Required,
            snapshot::Interception::Off => label::Interception::Off,
            snapshot::Interception::Passthrough(_) => label::Interception::Passthrough,
        });
    }

    fn interception(&self) -> InterceptionStatus {
        let facts = self.facts();
        let evidence = &facts.evidence;
        let mode = match evidence.state {
            GateState::Intercepting => "Required",
            GateState::Passthrough => "Passthrough",
            GateState::Off | GateState::Refused => "Off",
        };
        InterceptionStatus {
            mode: mode.to_owned(),
            fingerprint: evidence.authority.as_ref().map(|authority| authority.fingerprint.clone()),
            not_after: evidence.authority.as_ref().map(|authority| authority.not_after.clone()),
            reason: evidence.reason.clone(),
            proof: self.prover.as_ref().and_then(|prover| prover.newest()).map(|proof| proof.to_string()),
        }
    }

    fn policy(&self) -> PolicyStatus {
        let age = self.age();
        let snapshot = self.gateway.snapshot();
        let policy = snapshot.policy();
        let facts = self.facts();
        PolicyStatus {
            revision: policy.revision().to_owned(),
            published: facts.expected.published.clone(),
            stamped: facts.expected.stamped.clone(),
            synced_at: Some(timestamp(facts.synced_at.unwrap_or(facts.loaded_at)).to_string()),
            age_seconds: Some(age.elapsed.as_secs()),
            state: match age.freshness {
                Freshness::Expired => PolicyState::Expired,
                Freshness::Fresh | Freshness::Stale if facts.is_unknown() => PolicyState::Unknown,
                Freshness::Fresh => PolicyState::Fresh,
                Freshness::Stale => PolicyState::Stale,
            },
            policies: policy.count(),
            last_error: facts.reload_error.as_ref().map(|error| error.text.clone()),
        }
    }

    /// Adds why the gateway is not ready, and reasons for concern while it is.
    fn add_reasons(&self, status: &mut GatewayStatus) {
        match status.policy.state {
            // `add_file_reasons` names the policies that are not known.
            PolicyState::Fresh | PolicyState::Unknown => {}
            PolicyState::Stale => {
                status.reasons.push("the policy is stale: it was not refreshed for 5 minutes".into())
            }
            PolicyState::Expired => status.not_ready("the policy has expired: everything is denied", None),
        }
        self.add_file_reasons(status);
        match self.prover.as_ref().map(|prover| prover.newest()) {
            None => {}
            Some(None) => status.not_ready("interception is not proven yet", None),
            Some(Some(proof)) if proof.holds() => {}
            Some(Some(proof)) => {
                let detail = format!(
                    "{proof}; see that `postern redirect` ran in this network namespace, with the user ID of this \
                     process, and that nothing changed its rules"
                );
                status.not_ready("interception is not proven", Some(&detail));
            }
        }
        self.add_ledger_reason(status);
        status.reasons.extend(disagreements(&status.policy));
        if status.policy.policies == 0 {
            status.reasons.push("no policy selects this pod: everything is denied".into());
        }
        if status.interception.mode == "Passthrough" {
            status.reasons.push("no TLS is ended: inspected destinations are tunnelled unseen".into());
        }
        status.reasons.extend(self.facts().credentials.iter().cloned());
        let passed_over = self.gateway.routing.health.closed(Instant::now());
        status.reasons.extend(passed_over.into_iter().map(|(model, left)| {
            let left = left.as_secs().max(1);
            format!("routes pass over {model} for {left} s more where another one is left, since it gave no answer")
        }));
    }

    /// Adds why the ledger cannot be written. Where events wait for it, the gateway is not ready.
    fn add_ledger_reason(&self, status: &mut GatewayStatus) {
        let Some((failure, blocks)) =
            self.store.as_ref().and_then(|(store, blocks)| Some((store.failure()?, blocks)))
        else {
            return;
        };
        if *blocks {
            status.not_ready("the ledger cannot be written", Some(&failure.reason));
        } else {
            status.reasons.push(format!("events are dropped: {}", failure.reason));
        }
    }

    /// Adds why the newest files are not in force, or cannot be read.
    fn add_file_reasons(&self, status: &mut GatewayStatus) {
        let facts = self.facts();
        match &facts.reload_error {
            None => {}
            Some(ReloadError { text, why: ReloadFailure::UnknownPolicies }) => {
                let detail = format!(
                    "{text}; the last good policy stays in force, and expires 24 hours after the operator last vouched \
                     for it: {RENEW}"
                );
                status.not_ready("the newest policies are not known to this version", Some(&detail));
            }
            Some(ReloadError { text, why: ReloadFailure::Wrong }) => {
                status.not_ready("the newest files are not in force", Some(text));
            }
            Some(ReloadError { text, why: ReloadFailure::Unread }) => {
                status.reasons.push(format!("the newest files cannot be read yet: {text}"));
            }
            // After an upgrade of the chart every older gateway is in this state: no reason to take their pods away.
            Some(ReloadError { text, why: ReloadFailure::UnknownSettings }) => {
                status.reasons.push(format!(
                    "the newest settings are not known to this version, and the last good ones are in force: {RENEW} ({text})"
                ));
            }
        }
        if let Some(text) = &facts.expected.unknown {
            status.reasons.push(format!(
                "the newest policies are not known to this version, and the operator's form of them for older versions \
                 is in force: {RENEW} ({text})"
            ));
        }
        if let Some(UnreadableFiles { text, lasts, is_lasting: true }) = &facts.unread {
            let detail = format!("for {} s: {text}", lasts.as_secs());
            status.not_ready("files cannot be read", Some(&detail));
        }
        if let Some(error) = &facts.trust {
            status.not_ready("agents do not have the roots that they are to trust", Some(error));
        }
    }
}

/// The remedy for a gateway that is older than its operator.
const RENEW: &str = "start the pod anew, so that it has the gateway of the operator's version";

/// Lists how the policy in force differs from the one that the operator names; traffic goes on under it.
fn disagreements(policy: &PolicyStatus) -> Vec<String> {
    let PolicyStatus { revision, published, stamped, .. } = policy;
    let is_other = |named: &&String| *named != revision;
    let published = published.as_ref().filter(is_other).map(|published| {
        format!(
            "the documents compile to revision {revision}, and the operator calls them {published}: they were altered, \
             or gateway and operator are of different versions"
        )
    });
    let stamped = stamped.as_ref().filter(is_other).map(|stamped| {
        format!(
            "not programmed yet: the pod is stamped with revision {stamped}, and what is mounted is {revision}"
        )
    });
    published.into_iter().chain(stamped).collect()
}

impl Inspect for GatewayHealth {
    fn status(&self) -> GatewayStatus {
        let uptime = self.started_at.elapsed().unwrap_or_default();
        let (written, dropped) = self.gateway.metrics.events_total();
        let snapshot = self.gateway.snapshot();
        let mut status = GatewayStatus {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            started_at: timestamp(self.started_at).to_string(),
            uptime_seconds: uptime.as_secs(),
            ready: true,
            reasons: Vec::new(),
            unready: Vec::new(),
            interception: self.interception(),
            policy: self.policy(),
            listeners: self.listeners.clone(),
            connections: ConnectionCounts {
                open: self.gateway.metrics.connections_open(),
                limit: self.connections as u64,
                configured: snapshot.settings.limits.connections as u64,
            },
            events: EventCounts { written, dropped },
            settings: snapshot.settings.redacted(),
        };
        self.add_reasons(&mut status);
        status
    }

    fn metrics(&self) -> String {
        self.gateway.metrics.encode()
    }
}

/// The texts of problems, in their order.
pub(super) fn texts(problems: &[Problem]) -> Vec<String> {
    problems.iter().map(ToString::to_string).collect()
}
