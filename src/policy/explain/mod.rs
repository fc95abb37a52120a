//! Why each rule does or does not apply to one call or request; the decision itself is asked of those that make it.

mod destination;
mod shown;

use serde::Serialize;

use crate::decision::{Decision, Verdict};

use super::compile::{Mode, Policy};

pub(super) use shown::shown;

/// What is decided, and every rule's part in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    /// What it is about, in words.
    pub about: String,
    pub decision: Said,
    /// What is recorded beside: Audit rules, and Audit policies beside enforced ones.
    pub recorded: Vec<Said>,
    pub rules: Vec<RuleSaid>,
    /// The calls inside the call: in a script, or in a list of calls. One that is denied denies the whole.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub inside: Vec<Self>,
}

/// A decision, in the words of events.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Said {
    /// `Allow`, `Deny`, `Audit`, `WouldDeny`, or `NeedsInput` where the input would decide and is not known.
    pub verdict: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A rule's part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RuleSaid {
    pub rule: String,
    /// As it is written: `Deny`, `Allow`, `Audit`, `Inspect` or `Tunnel`.
    pub action: &'static str,
    /// `Enforce` or `Audit`, of its policy.
    pub enforcement: &'static str,
    pub applies: Applies,
    /// In the order in which it was found out.
    pub why: Vec<String>,
    /// Each test of its condition by itself.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tests: Vec<Tested>,
}

/// Whether a rule applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Applies {
    Yes,
    No,
    /// The input decides, and is not known.
    Unknown,
}

/// One test of a condition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Tested {
    /// Parameter, operator and values: `command Contains "sudo"`.
    pub test: String,
    /// What stands at the parameter, shortened, without what looks like a secret.
    pub found: Vec<String>,
    pub holds: bool,
}

impl Said {
    pub(super) fn needs_input() -> Self {
        let reason = "A condition needs the input, which is not known here".to_owned();
        Self { verdict: "NeedsInput", rule: None, reason: Some(reason) }
    }
}

impl From<&Decision> for Said {
    fn from(decision: &Decision) -> Self {
        Self {
            verdict: decision.verdict.as_str(),
            rule: decision.rule.as_ref().map(ToString::to_string),
            reason: decision.reason.as_ref().map(ToString::to_string),
        }
    }
}

impl Policy {
    /// What a rule that applies has to do with what is decided; `allows` says whether it would allow.
    pub(super) fn part(&self, rule: &str, audit: bool, allows: bool, decision: &Decision) -> String {
        let told = decision.rule.as_ref().map(ToString::to_string);
        match told {
            Some(told) if told == rule => "it decides".to_owned(),
            _ if audit && self.mode != Mode::AuditOnly => "its policy only records".to_owned(),
            Some(told) if allows && matches!(decision.verdict, Verdict::Deny | Verdict::WouldDeny) => {
                format!("{told} denies, and a denial wins")
            }
            Some(told) => format!("{told} says the same, and is told first"),
            None => "it decides nothing".to_owned(),
        }
    }
}
