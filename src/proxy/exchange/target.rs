//! Where a request goes, and all that hangs on it: the pooled connection, the credential, the secrets in what comes back,
//! the limits that count.

use std::sync::Arc;

use super::enforce::Allowance;
use crate::call::Service;
use crate::credential::placement::Plan;
use crate::proxy::Gateway;
use crate::proxy::snapshot::Snapshot;
use crate::proxy::upstream::{Key, Origin, user_of};
use crate::secret::SecretMatcher;

/// The server that a request is sent to.
#[derive(Debug, Clone)]
pub(super) struct UpstreamTarget {
    pub(super) origin: Origin,
    /// The API that is called, where the server is an LLM provider's.
    pub(super) service: Option<Service>,
    /// The credential that is attached.
    pub(super) credential: Option<Plan>,
}

impl UpstreamTarget {
    /// Whether Postern reads the request and its answer.
    pub(super) fn is_read(&self) -> bool {
        self.service.is_some_and(|service| service.dialect.is_some())
    }

    /// Whether the request is signed, which takes its whole body.
    pub(super) fn signs(&self) -> bool {
        self.credential.as_ref().is_some_and(Plan::signs)
    }

    /// What the request and its answer count against.
    pub(super) fn allowance(&self, gateway: &Arc<Gateway>) -> Allowance {
        Allowance::new(gateway, self.credential.as_ref().map(Plan::credential))
    }

    /// The name of the credential that is attached.
    pub(super) fn credential_name(&self) -> Option<&str> {
        self.credential.as_ref().map(|plan| plan.credential().name.as_str())
    }

    /// Whose connections may carry the request.
    pub(super) fn pool_key(&self) -> Key {
        Key { user: user_of(self.credential.as_ref().map(Plan::credential)), origin: self.origin.clone() }
    }

    /// The secrets that are masked in what comes back, as they are now; none where no key goes there.
    pub(super) fn secrets(&self, snapshot: &Snapshot) -> Option<Arc<SecretMatcher>> {
        snapshot.needles(&self.origin)
    }
}
