//! The snapshot that a gateway serves under, built from settings and policy.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::SystemTime;

use super::{addresses, password};
use crate::command::check::Checked;
use crate::command::environment;
use crate::config::Settings;
use crate::config::evidence::EvidenceSettings;
use crate::credential::Store;
use crate::drain::Drain;
use crate::evidence::Evidence;
use crate::policy::Policy;
use crate::policy::age::{Age, Freshness};
use crate::problem::Problem;
use crate::proxy::snapshot::{self, Interception, Snapshot};
use crate::proxy::upstream::Places;
use crate::telemetry::Metrics;
use crate::tls::authority::Authority;
use crate::tls::gate;
use crate::tls::leaf::Leaves;

/// Builds the snapshot of files that were read. What did not change is kept from the one `before`; the places for
/// connections, and where the gateway listens, stay as they are while it runs.
pub(super) fn build(
    checked: Checked,
    (drain, metrics): (&Drain, &Arc<Metrics>),
    before: Option<&Snapshot>,
    (places, listeners): (Places, Vec<SocketAddr>),
) -> Result<Snapshot, Vec<Problem>> {
    let Checked { mut settings, policy, gate, upstream_tls, .. } = checked;
    if let Some(before) = before {
        // Listeners stay as they were bound, so that the status is true and the DNS pool in use is never dialled.
        settings.listeners = before.settings.listeners.clone();
        settings.admin = before.settings.admin.clone();
    }
    let interception = match gate.interception {
        gate::Interception::On(authority) => {
            Interception::On(leaves(authority, settings.limits.leaf_cache, before))
        }
        gate::Interception::Off => Interception::Off,
        gate::Interception::Passthrough { reason } => Interception::Passthrough(reason),
    };
    let proxy_credentials =
        match settings.upstream.proxy.as_ref().and_then(|proxy| proxy.credentials_file.as_ref()) {
            Some(file) => Some(password::read(file).map_err(|problem| vec![problem])?),
            None => None,
        };
    let credentials = credentials(&policy, &settings, before.map(|before| &*before.credentials))?;
    let evidence = evidence(settings.evidence.as_ref(), before, metrics).map_err(|problem| vec![problem])?;
    let parts = snapshot::SnapshotParts {
        evidence,
        settings: Arc::new(settings),
        policy,
        interception,
        credentials,
        tls: Arc::new(upstream_tls),
        proxy_credentials,
        own: addresses::own().map_err(|problem| vec![problem])?,
        places,
        listeners,
        cluster: addresses::cluster(environment::variable),
    };
    let snapshot = Snapshot::new(parts, drain.clone());
    let snapshot = match before {
        Some(before) => snapshot.after(before),
        None => snapshot,
    };
    warn_of_edits(&snapshot, before);
    Ok(with_age(snapshot))
}

/// Tells once, until it is mended, that a policy judges edits and nobody can say whether they fit.
pub(super) fn warn_of_edits(snapshot: &Snapshot, before: Option<&Snapshot>) {
    let is_unjudged = |snapshot: &Snapshot| snapshot.policy().edits().is_some() && !snapshot.judges_edits();
    if is_unjudged(snapshot) && !before.is_some_and(is_unjudged) {
        tracing::warn!(
            "the policy judges edits (spec.edits) and there is no workspace: none is judged; see the setting workspace"
        );
    }
}

/// Has a snapshot deny everything from its first moment where its policy has expired.
pub(super) fn with_age(snapshot: Snapshot) -> Snapshot {
    let now = SystemTime::now();
    let age = Age::at(now, now, snapshot.policy().synced_at());
    snapshot.set_expired(age.freshness == Freshness::Expired);
    snapshot
}

/// Reads the values of a policy's credentials, and those that must not leave; one that cannot be read stays as it was
/// `before`.
///
/// # Errors
/// A value that must not leave is not where the policy says.
pub(super) fn credentials(
    policy: &Policy,
    settings: &Settings,
    before: Option<&Store>,
) -> Result<Arc<Store>, Vec<Problem>> {
    let directory = settings.credentials.directory.as_deref();
    let values = (policy.credentials(), policy.named_values());
    let store = Store::load(values, directory, &environment::variable);
    let store = match before {
        Some(before) => store.after(before),
        None => store,
    };
    let problems = store.policy_problems();
    if problems.is_empty() { Ok(Arc::new(store)) } else { Err(problems) }
}

/// Opens the store of tool results, or goes on with the one `before`.
///
/// # Errors
/// The system gives it no thread.
fn evidence(
    settings: Option<&EvidenceSettings>,
    before: Option<&Snapshot>,
    metrics: &Arc<Metrics>,
) -> Result<Option<Evidence>, Problem> {
    let Some(settings) = settings else {
        metrics.evidence_bytes(0);
        return Ok(None);
    };
    let terms = settings.terms();
    let opened = match before.and_then(|before| before.evidence.as_ref()) {
        Some(before) => Ok(before.on(&terms)),
        None => Evidence::open(&terms, Arc::clone(metrics)),
    };
    opened.map(Some).map_err(|error| Problem::at("evidence", format!("no thread for files: {error}")))
}

/// Returns the leaves of a CA: the cached ones where the CA is the one before.
fn leaves(authority: Arc<Authority>, capacity: usize, before: Option<&Snapshot>) -> Arc<Leaves> {
    match before.map(|before| &before.interception) {
        Some(Interception::On(leaves)) if leaves.authority().fingerprint() == authority.fingerprint() => {
            Arc::clone(leaves)
        }
        Some(Interception::On(leaves)) => Arc::new(leaves.succeeded_by(authority)),
        Some(Interception::Off | Interception::Passthrough(_)) | None => {
            Arc::new(Leaves::new(authority, capacity))
        }
    }
}
