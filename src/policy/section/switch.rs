//! A switch that several policies may set: the strictest that is written decides.

use serde::{Deserialize, Serialize};

use super::Owner;
use crate::decision::{Decision, Verdict};
use crate::policy::outcome::Outcome;
use crate::policy::scope::PolicyScope;

/// A switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "operator", derive(schemars::JsonSchema))]
pub enum Permission {
    /// It is allowed.
    Allow,
    /// It is refused.
    Deny,
}

/// One switch: how the Enforce policies set it, and how all policies together do.
#[derive(Debug, Clone)]
pub(in crate::policy) struct Switch {
    enforced: Outcome,
    all: Outcome,
}

/// A setting as it holds, and who sets it; nobody where that is the default.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Setting {
    pub(super) action: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) rule: Option<String>,
}

impl Switch {
    /// Where nothing is written, `default` holds; what is written is its own rule, `namespace/policy/SECTION`.
    pub(super) fn new(
        section: &str,
        reason: &'static str,
        default: &Outcome,
        written: &[(&Owner, Option<Permission>)],
    ) -> Self {
        let set = |scope: PolicyScope| {
            let first = |wanted| {
                let mut visible = written.iter().filter(|(owner, _)| scope.shows(owner.audit));
                visible.find(|(_, permission)| *permission == Some(wanted))
            };
            if let Some((owner, _)) = first(Permission::Deny) {
                return Outcome::Denied(decision(owner, section, Verdict::Deny, reason));
            }
            match first(Permission::Allow) {
                Some((owner, _)) => Outcome::Allowed(Some(decision(owner, section, Verdict::Allow, ""))),
                None => default.clone(),
            }
        };
        Self { enforced: set(PolicyScope::Enforced), all: set(PolicyScope::All) }
    }

    /// The switch as these policies set it.
    pub(in crate::policy) fn at(&self, scope: PolicyScope) -> &Outcome {
        match scope {
            PolicyScope::Enforced => &self.enforced,
            PolicyScope::All => &self.all,
        }
    }

    pub(super) fn list(&self, scope: PolicyScope) -> Setting {
        // A built-in rule is nobody's setting.
        let rule = |decision: &Decision| {
            Some(decision.rule_id().to_owned()).filter(|rule| !rule.starts_with("postern/builtin/"))
        };
        match self.at(scope) {
            Outcome::Denied(decision) => Setting { action: "Deny", rule: rule(decision) },
            Outcome::Allowed(decision) => Setting { action: "Allow", rule: decision.as_ref().and_then(rule) },
        }
    }
}

impl Setting {
    /// `Deny  [namespace/policy/SECTION]`, with `but` behind the action.
    pub(super) fn row(&self, but: &str) -> String {
        format!("{}{but}  {}", self.action, self.set_by())
    }

    pub(super) fn set_by(&self) -> String {
        self.rule.as_ref().map_or_else(|| "[default]".to_owned(), |rule| format!("[{rule}]"))
    }
}

/// The decision of a section that is its own rule.
pub(super) fn decision(owner: &Owner, section: &str, verdict: Verdict, reason: &'static str) -> Decision {
    Decision::by(owner.rule(section), verdict, reason).under(owner.enforcement())
}
