//! What policy says of a request to a model, beside its tool calls.

use super::Policy;
use super::scope::{Mode, PolicyScope};
use super::section::hosted_tools::HostedAction;
use crate::call::{HostedAction as Action, HostedToolVerdict, Judgement, Terms};

impl Terms for Policy {
    fn hosted_tool(&self, tool_type: &str) -> HostedToolVerdict {
        let hosted_tools = &self.sections.hosted_tools;
        let judgement = self.weigh(|scope| hosted_tools.outcome(tool_type, scope));
        let action = match (judgement.denies(), hosted_tools.action(PolicyScope::Enforced)) {
            (false, _) => Action::Keep,
            (true, Some(HostedAction::Deny)) => Action::Refuse,
            (true, Some(HostedAction::Strip | HostedAction::Allow) | None) => Action::Strip,
        };
        HostedToolVerdict { action, decision: judgement.decision, audited: judgement.audited }
    }

    fn provider_state(&self) -> Judgement {
        self.weigh(|scope| self.sections.provider_state.0.at(scope).clone())
    }

    fn url_sources(&self) -> Judgement {
        self.weigh(|scope| self.sections.hosted_tools.url_sources.at(scope).clone())
    }

    fn may_edit(&self) -> bool {
        self.mode != Mode::AuditOnly
    }
}
