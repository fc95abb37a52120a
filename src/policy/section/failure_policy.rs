//! `failurePolicy`: what becomes of a provider's answer that cannot be understood.

use serde::{Deserialize, Serialize};

use super::page::{Heading, Page, row};
use super::{Lowering, Owner, PolicySection};
use crate::policy::Policy;
use crate::policy::scope::{Mode, PolicyScope};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "operator", derive(schemars::JsonSchema))]
pub enum FailurePolicy {
    /// It is refused.
    Closed,
    /// It passes as it came, with an event; no bound is lifted.
    Open,
}

/// Whether such an answer passes: one of the policies that decide says Open, and none Closed. Where only Audit policies
/// select the pod nothing is refused for it.
#[derive(Debug)]
pub(in crate::policy) struct FailOpen(bool);

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::policy) struct FailurePolicyListed {
    failure_policy: &'static str,
}

impl PolicySection for FailOpen {
    type Written = Option<FailurePolicy>;
    type Lowered = Option<FailurePolicy>;
    type Listed = FailurePolicyListed;

    fn lower(written: &Option<FailurePolicy>, _: &mut Lowering<'_>) -> Option<FailurePolicy> {
        *written
    }

    fn unite(policies: Vec<(&Owner, Option<FailurePolicy>)>, mode: Mode) -> Self {
        let deciding = policies.into_iter().filter(|(owner, _)| mode.heeds(owner.audit));
        let mut written = deciding.filter_map(|(_, written)| written).peekable();
        let is_open = written.peek().is_some() && written.all(|word| word == FailurePolicy::Open);
        Self(is_open || mode == Mode::AuditOnly)
    }

    fn list(&self, _: PolicyScope) -> FailurePolicyListed {
        FailurePolicyListed { failure_policy: if self.0 { "Open" } else { "Closed" } }
    }

    fn rows(listed: &FailurePolicyListed, page: &mut Page) {
        let words = if listed.failure_policy == "Open" { "pass" } else { "are refused" };
        page.add(Heading::Settings, row("answers that cannot be understood", words));
    }
}

impl Policy {
    /// `failurePolicy`: whether an answer that cannot be understood passes as it came.
    pub fn failure_open(&self) -> bool {
        self.sections.failure_policy.0
    }
}
