//! Terms for tests that ask nothing of policy.

use crate::call::{Decision, HostedAction, HostedToolVerdict, Judgement, Terms};
use crate::decision::Verdict;

/// Allows everything.
pub(crate) struct Open;

impl Terms for Open {
    fn hosted_tool(&self, _: &str) -> HostedToolVerdict {
        let decision = Decision::of(Verdict::Allow);
        HostedToolVerdict { action: HostedAction::Keep, decision, audited: None }
    }

    fn provider_state(&self) -> Judgement {
        Judgement { decision: Decision::of(Verdict::Allow), audited: None }
    }

    fn url_sources(&self) -> Judgement {
        self.provider_state()
    }

    fn may_edit(&self) -> bool {
        true
    }
}
