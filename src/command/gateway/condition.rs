//! How a running gateway is, for those who ask: readiness, status, metrics.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use super::proving::Proving;
use crate::admin::status::{Connections, Events, Interception, Listener, Policy, PolicyState};
use crate::admin::{Inspect, Status};
use crate::command::check::{Checked, Expected};
use crate::ledger::timestamp;
use crate::policy::age::{Age, Freshness};
use crate::proxy::Gateway;
use crate::tls::gate::{Evidence, GateState};

/// What is known beside the snapshot.
pub(super) struct Condition {
    pub(super) gateway: Arc<Gateway>,
    pub(super) started_at: SystemTime,
    pub(super) listeners: Vec<Listener>,
    pub(super) facts: Mutex<Facts>,
    /// `limits.connections`, or what file descriptors allow of it.
    pub(super) connections: usize,
    /// Where the transparent listener is on.
    pub(super) proving: Option<Arc<Proving>>,
}

/// What changes while the gateway runs.
pub(super) struct Facts {
    pub(super) evidence: Evidence,
    pub(super) loaded_at: SystemTime,
    /// When the operator last vouched for the policy.
    pub(super) synced_at: Option<SystemTime>,
    pub(super) expected: Expected,
    /// Why the newest files are not in force.
    pub(super) reload_error: Option<ReloadError>,
    /// What cannot be read now, and for how long.
    pub(super) unread: Option<Unreadable>,
    /// What is wrong with credentials, by name, without their values.
    pub(super) credentials: Vec<String>,
    /// Why agents do not have the roots that they are to trust.
    pub(super) trust: Option<String>,
}

/// Why the newest files are not in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ReloadError {
    pub(super) text: String,
    pub(super) why: Why,
}

/// What keeps files from being in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Why {
    /// Something is wrong with them.
    Wrong,
    /// They could not be read, so nobody knows whether anything is wrong with them.
    Unread,
    /// The operator wrote policies that this version does not know.
    UnknownPolicies,
    /// It wrote settings with keys that this version does not know; the policy in force is the newest.
    UnknownSettings,
}

/// Files that cannot be read.
#[derive(Debug, Clone)]
pub(super) struct Unreadable {
    pub(super) text: String,
    pub(super) lasts: Duration,
    /// It is no hiccup any more.
    pub(super) is_lasting: bool,
}

impl Facts {
    /// Of what was read just now, and nothing wrong with it.
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
            || self.reload_error.as_ref().is_some_and(|error| error.why == Why::UnknownPolicies)
    }
}

impl Condition {
    pub(super) fn facts(&self) -> std::sync::MutexGuard<'_, Facts> {
        self.facts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn age(&self) -> Age {
        let facts = self.facts();
        Age::at(SystemTime::now(), facts.loaded_at, facts.synced_at)
    }

    fn interception(&self) -> Interception {
        let facts = self.facts();
        let evidence = &facts.evidence;
        let mode = match evidence.state {
            GateState::Intercepting => "Required",
            GateState::Passthrough => "Passthrough",
            GateState::Off | GateState::Refused => "Off",
        };
        Interception {
            mode: mode.to_owned(),
            fingerprint: evidence.authority.as_ref().map(|authority| authority.fingerprint.clone()),
            not_after: evidence.authority.as_ref().map(|authority| authority.not_after.clone()),
            reason: evidence.reason.clone(),
            proof: self.proving.as_ref().and_then(|proving| proving.newest()).map(|proof| proof.to_string()),
        }
    }

    fn policy(&self) -> Policy {
        let age = self.age();
        let snapshot = self.gateway.snapshot();
        let policy = snapshot.policy();
        let facts = self.facts();
        Policy {
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

    /// Why the gateway is not ready, and what is worth knowing though it is.
    fn judge(&self, status: &mut Status) {
        match status.policy.state {
            // What is not known is said below.
            PolicyState::Fresh | PolicyState::Unknown => {}
            PolicyState::Stale => {
                status.reasons.push("the policy is stale: it was not refreshed for 5 minutes".into())
            }
            PolicyState::Expired => status.not_ready("the policy has expired: everything is denied", None),
        }
        self.judge_files(status);
        match self.proving.as_ref().map(|proving| proving.newest()) {
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
        status.reasons.extend(disagreements(&status.policy));
        if status.policy.policies == 0 {
            status.reasons.push("no policy selects this pod: everything is denied".into());
        }
        if status.interception.mode == "Passthrough" {
            status.reasons.push("no TLS is ended: inspected destinations are tunnelled unseen".into());
        }
        status.reasons.extend(self.facts().credentials.iter().cloned());
    }
}

impl Condition {
    /// What keeps the newest files from being in force, or from being read.
    fn judge_files(&self, status: &mut Status) {
        let facts = self.facts();
        match &facts.reload_error {
            None => {}
            Some(ReloadError { text, why: Why::UnknownPolicies }) => {
                let detail = format!(
                    "{text}; the last good policy stays in force, and expires 24 hours after the operator last vouched \
                     for it: {RENEW}"
                );
                status.not_ready("the newest policies are not known to this version", Some(&detail));
            }
            Some(ReloadError { text, why: Why::Wrong }) => {
                status.not_ready("the newest files are not in force", Some(text));
            }
            Some(ReloadError { text, why: Why::Unread }) => {
                status.reasons.push(format!("the newest files cannot be read yet: {text}"));
            }
            // After an upgrade of the chart all older gateways are so: that is no reason to take their pods away.
            Some(ReloadError { text, why: Why::UnknownSettings }) => {
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
        if let Some(Unreadable { text, lasts, is_lasting: true }) = &facts.unread {
            let detail = format!("for {} s: {text}", lasts.as_secs());
            status.not_ready("files cannot be read", Some(&detail));
        }
        if let Some(error) = &facts.trust {
            status.not_ready("agents do not have the roots that they are to trust", Some(error));
        }
    }
}

/// What helps a gateway that is older than its operator.
const RENEW: &str = "start the pod anew, so that it has the gateway of the operator's version";

/// In what the policy in force is not the one that the operator says; traffic goes on under it.
fn disagreements(policy: &Policy) -> Vec<String> {
    let Policy { revision, published, stamped, .. } = policy;
    let other = |said: &&String| *said != revision;
    let published = published.as_ref().filter(other).map(|published| {
        format!(
            "the documents compile to revision {revision}, and the operator calls them {published}: they were altered, \
             or gateway and operator are of different versions"
        )
    });
    let stamped = stamped.as_ref().filter(other).map(|stamped| {
        format!(
            "not programmed yet: the pod is stamped with revision {stamped}, and what is mounted is {revision}"
        )
    });
    published.into_iter().chain(stamped).collect()
}

impl Inspect for Condition {
    fn status(&self) -> Status {
        let uptime = self.started_at.elapsed().unwrap_or_default();
        let (written, dropped) = self.gateway.metrics.events_total();
        let snapshot = self.gateway.snapshot();
        let mut status = Status {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            started_at: timestamp(self.started_at).to_string(),
            uptime_seconds: uptime.as_secs(),
            ready: true,
            reasons: Vec::new(),
            unready: Vec::new(),
            interception: self.interception(),
            policy: self.policy(),
            listeners: self.listeners.clone(),
            connections: Connections {
                open: self.gateway.metrics.connections_open(),
                limit: self.connections as u64,
                configured: snapshot.settings.limits.connections as u64,
            },
            events: Events { written, dropped },
            settings: snapshot.settings.redacted(),
        };
        self.judge(&mut status);
        status
    }

    fn metrics(&self) -> String {
        self.gateway.metrics.encode()
    }
}
