//! A switch that several policies may set: the strictest that is written decides.

use serde::{Deserialize, Serialize};

use super::Owner;
use crate::event::Verdict;
use crate::policy::RuleId;
use crate::policy::outcome::Outcome;
use crate::policy::ruling::Ruling;
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
        reason: &str,
        default: &Outcome,
        written: &[(&Owner, Option<Permission>)],
    ) -> Self {
        let set = |scope: PolicyScope| {
            let first = |wanted| {
                let mut visible = written.iter().filter(|(owner, _)| scope.shows(owner.audit));
                visible.find(|(_, permission)| *permission == Some(wanted))
            };
            if let Some((owner, _)) = first(Permission::Deny) {
                return Outcome::Denied(ruling(owner, section, Verdict::Deny, reason));
            }
            match first(Permission::Allow) {
                Some((owner, _)) => Outcome::Allowed(Some(ruling(owner, section, Verdict::Allow, ""))),
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
        // What is built in is nobody's.
        let written =
            |rule: &RuleId| Some(rule.to_string()).filter(|rule| !rule.starts_with("postern/builtin/"));
        match self.at(scope) {
            Outcome::Denied(ruling) => Setting { action: "Deny", rule: written(&ruling.rule) },
            Outcome::Allowed(ruling) => {
                Setting { action: "Allow", rule: ruling.as_ref().and_then(|ruling| written(&ruling.rule)) }
            }
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

/// The ruling of a section that is its own rule.
pub(super) fn ruling(owner: &Owner, section: &str, verdict: Verdict, reason: &str) -> Ruling {
    Ruling { verdict, rule: owner.rule(section), reason: reason.to_owned(), enforcement: owner.enforcement() }
}
