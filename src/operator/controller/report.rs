//! The result of each namespace's last turn, with which stamps, pods and statuses are compared.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use super::edit::Outline;
use super::publish::PolicyRefusal;
use crate::policy::document::Selector;

/// What a namespace has since its last turn.
#[derive(Debug, Clone)]
pub(super) struct NamespaceReport {
    /// The revision of the documents in the ConfigMap, which pods should enforce.
    pub(super) revision: String,
    /// The digest of the Secrets.
    pub(super) secrets: String,
    /// The digest of the gateway's settings in the ConfigMap, and of the roots that they name.
    pub(super) settings: String,
    /// When the operator last vouched for the ConfigMap.
    pub(super) synced_at: SystemTime,
    /// The pod selectors of the documents in force, by policy key.
    pub(super) in_force: BTreeMap<String, Option<Selector>>,
    pub(super) refused: BTreeMap<String, PolicyRefusal>,
    /// Sentences about missing credentials, by policy key.
    pub(super) credentials: BTreeMap<String, Vec<String>>,
    /// The Secrets that policies refer to, with the version that was copied; none if there is no such Secret.
    pub(super) sources: BTreeMap<SecretId, Option<String>>,
    /// Why not everything is as the policies require.
    pub(super) trouble: Option<Trouble>,
    /// Sentences that the authors of the namespace's policies should know about its CA.
    pub(super) caveats: Vec<String>,
    /// Hosts that are denied because the CA has no room for them, by policy key.
    pub(super) left_out: BTreeMap<String, Vec<String>>,
    /// The revision for gateways of the last release, if they cannot read the newest.
    pub(super) older_revision: Option<String>,
    /// The fields that those gateways do not know, by policy key.
    pub(super) beyond: BTreeMap<String, Vec<String>>,
    /// Digests by which the next edit of the namespace's policies is judged.
    pub(super) outline: Outline,
}

/// A Secret that a policy refers to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SecretId {
    pub(super) namespace: String,
    pub(super) name: String,
}

/// A problem of a whole namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Trouble {
    /// A condition's reason.
    pub(super) reason: &'static str,
    pub(super) message: String,
}

/// The reports of all namespaces.
#[derive(Debug, Default)]
pub(super) struct Reports(Mutex<ReportState>);

#[derive(Debug, Default)]
struct ReportState {
    reports: BTreeMap<String, Arc<NamespaceReport>>,
    failures: BTreeMap<String, String>,
}

impl Reports {
    pub(super) fn put(&self, namespace: &str, report: NamespaceReport) {
        let mut state = self.lock();
        state.failures.remove(namespace);
        state.reports.insert(namespace.to_owned(), Arc::new(report));
    }

    /// Notes that the last turn failed. The report of the one before stays: pods are compared with it.
    pub(super) fn failed(&self, namespace: &str, error: String) {
        self.lock().failures.insert(namespace.to_owned(), error);
    }

    pub(super) fn forget(&self, namespace: &str) {
        let mut state = self.lock();
        state.failures.remove(namespace);
        state.reports.remove(namespace);
    }

    /// Why the namespace's last turn failed, if it did.
    pub(super) fn failure(&self, namespace: &str) -> Option<String> {
        self.lock().failures.get(namespace).cloned()
    }

    pub(super) fn of(&self, namespace: &str) -> Option<Arc<NamespaceReport>> {
        self.lock().reports.get(namespace).cloned()
    }

    pub(super) fn all(&self) -> BTreeMap<String, Arc<NamespaceReport>> {
        self.lock().reports.clone()
    }

    /// Notes that `syncedAt` of the namespace was renewed.
    pub(super) fn synced(&self, namespace: &str, at: SystemTime) {
        if let Some(report) = self.lock().reports.get_mut(namespace) {
            Arc::make_mut(report).synced_at = at;
        }
    }

    /// A poisoned lock is ignored: the state is consistent after each call.
    fn lock(&self) -> MutexGuard<'_, ReportState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
