//! What becomes of the tools that would run at the provider (design section 6.2), whoever knows which those are.

use crate::call::{Hosted, HostedAction as Action, Judgement, Terms};
use crate::decision::{Decision, Verdict};

use super::compile::{Mode, Policy};

use super::destination::Sight;
use super::document::tool::HostedAction;
use super::lower::Lowered;
use super::outcome::Outcome;
use super::permission;
use super::tool::Pattern;

const SECTION: &str = "hostedTools";
const REASON: &str = "This tool would run at the provider, beyond the reach of policy";

/// `hostedTools` of one policy, compiled; what it does not write is as where nobody writes it.
#[derive(Debug, Clone)]
pub(super) struct Section {
    pub(super) action: HostedAction,
    pub(super) allow: Vec<Pattern>,
}

/// `hostedTools` of all policies that write its action or its list.
#[derive(Debug)]
pub(super) struct HostedTools(Vec<Part>);

#[derive(Debug)]
struct Part {
    section: Section,
    audit: bool,
    allows: Decision,
    denies: Decision,
}

impl HostedTools {
    pub(super) fn new(policies: &[Lowered]) -> Self {
        let part = |policy: &Lowered| {
            let scope = &policy.scope;
            Some(Part {
                section: policy.written.hosted_tools.clone()?,
                audit: scope.audit,
                allows: permission::ruling(scope, SECTION, Verdict::Allow, ""),
                denies: permission::ruling(scope, SECTION, Verdict::Deny, REASON),
            })
        };
        Self(policies.iter().filter_map(part).collect())
    }

    fn visible(&self, sight: Sight) -> impl Iterator<Item = &Part> {
        self.0.iter().filter(move |part| sight == Sight::All || !part.audit)
    }

    /// The strictest action with its rule, none where nobody writes one; and every policy's list of what stays.
    pub(super) fn written(&self, sight: Sight) -> (Option<(HostedAction, String)>, Vec<Vec<String>>) {
        let strictest =
            self.strictest(sight).map(|part| (part.section.action, part.denies.rule_id().to_owned()));
        let lists = self.visible(sight).filter(|part| part.section.action != HostedAction::Allow);
        let words = |part: &Part| part.section.allow.iter().map(ToString::to_string).collect();
        (strictest, lists.map(words).collect())
    }

    /// The strictest action, and whose it is: the first that says so.
    fn strictest(&self, sight: Sight) -> Option<&Part> {
        self.visible(sight)
            .reduce(|one, other| if other.section.action > one.section.action { other } else { one })
    }

    /// A type is allowed where every policy that does not allow them all lists it.
    fn outcome(&self, tool_type: &str, sight: Sight) -> Outcome {
        let Some(strictest) = self.strictest(sight) else {
            return Outcome::Denied(Decision::builtin("hosted-tools", REASON));
        };
        let lists = |part: &Part| {
            part.section.action == HostedAction::Allow
                || part.section.allow.iter().any(|pattern| pattern.covers(tool_type))
        };
        if self.visible(sight).all(lists) {
            return Outcome::Allowed(Some(strictest.allows.clone()));
        }
        Outcome::Denied(strictest.denies.clone())
    }
}

impl Terms for Policy {
    fn hosted_tool(&self, tool_type: &str) -> Hosted {
        let judgement = self.weigh(|sight| self.settings.hosted_tools.outcome(tool_type, sight));
        let strictest = self.settings.hosted_tools.strictest(Sight::Enforced).map(|part| part.section.action);
        let action = match (judgement.denies(), strictest) {
            (false, _) => Action::Keep,
            (true, Some(HostedAction::Deny)) => Action::Refuse,
            (true, Some(HostedAction::Strip | HostedAction::Allow) | None) => Action::Strip,
        };
        Hosted { action, decision: judgement.decision, audited: judgement.audited }
    }

    fn provider_state(&self) -> Judgement {
        self.weigh(|sight| self.settings.provider_state.at(sight).clone())
    }

    fn url_sources(&self) -> Judgement {
        self.weigh(|sight| self.settings.url_sources.at(sight).clone())
    }

    fn may_edit(&self) -> bool {
        self.mode != Mode::AuditOnly
    }
}
