//! What became of each namespace at its last turn: what stamps, pods and statuses are compared with.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use super::edit::Outline;
use super::publish::Refusal;
use crate::policy::document::Selector;

/// What a namespace has.
#[derive(Debug, Clone)]
pub(super) struct Report {
    /// Of the documents in the ConfigMap: what pods should enforce.
    pub(super) revision: String,
    /// Of what the Secrets hold.
    pub(super) secrets: String,
    /// When the operator last vouched for the ConfigMap.
    pub(super) synced_at: SystemTime,
    /// Which pods the documents in force select, by their keys.
    pub(super) in_force: BTreeMap<String, Option<Selector>>,
    pub(super) refused: BTreeMap<String, Refusal>,
    /// Credentials that are not there, as sentences, by the key of their policy.
    pub(super) credentials: BTreeMap<String, Vec<String>>,
    /// The Secrets that policies refer to, with the version that was copied; none where there is no such Secret.
    pub(super) sources: BTreeMap<Source, Option<String>>,
    /// Why not everything is as policies say.
    pub(super) trouble: Option<Trouble>,
    /// What the authors of the namespace's policies should know of its CA, a sentence each.
    pub(super) caveats: Vec<String>,
    /// Hosts that the CA has no room for, so that they are denied, by the key of their policy.
    pub(super) left_out: BTreeMap<String, Vec<String>>,
    /// The revision for gateways of the last release, where they could not read the newest.
    pub(super) older_revision: Option<String>,
    /// What those gateways do not know, by the key of its policy.
    pub(super) beyond: BTreeMap<String, Vec<String>>,
    /// What the next edit of the namespace's policies is judged by.
    pub(super) outline: Outline,
}

/// A Secret that a policy refers to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Source {
    pub(super) namespace: String,
    pub(super) name: String,
}

/// What is wrong with a whole namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Trouble {
    /// As a condition's reason.
    pub(super) reason: &'static str,
    pub(super) message: String,
}

/// The reports of all namespaces.
#[derive(Debug, Default)]
pub(super) struct Reports(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    reports: BTreeMap<String, Arc<Report>>,
    failures: BTreeMap<String, String>,
}

impl Reports {
    pub(super) fn put(&self, namespace: &str, report: Report) {
        let mut state = self.lock();
        state.failures.remove(namespace);
        state.reports.insert(namespace.to_owned(), Arc::new(report));
    }

    /// Notes that the last turn failed; what the one before found still holds for pods.
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

    pub(super) fn of(&self, namespace: &str) -> Option<Arc<Report>> {
        self.lock().reports.get(namespace).cloned()
    }

    pub(super) fn all(&self) -> BTreeMap<String, Arc<Report>> {
        self.lock().reports.clone()
    }

    /// Notes that the ConfigMap of the namespace was vouched for.
    pub(super) fn synced(&self, namespace: &str, at: SystemTime) {
        if let Some(report) = self.lock().reports.get_mut(namespace) {
            Arc::make_mut(report).synced_at = at;
        }
    }

    /// What it holds is whole after each call, also where a thread panicked.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
