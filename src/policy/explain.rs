//! Why each rule does or does not apply to one call or request; the decision itself is asked of those that make it.

use std::fmt;

use serde::Serialize;

use crate::decision::{Decision, Verdict};

use super::Policy;
use super::scope::Mode;

/// A decision, and every rule's part in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    /// The call or request, in words.
    pub about: String,
    pub decision: ShownDecision,
    /// Decisions that are recorded too: of Audit rules, and of Audit policies beside enforced ones.
    pub recorded: Vec<ShownDecision>,
    pub rules: Vec<RuleExplanation>,
    /// The simple commands of a Shell call, as they were read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<CommandExplanation>,
    /// Whether a part of its commands cannot be told: `opaque` in rules.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub opaque: bool,
    /// The calls inside the call: in a script, or in a list of calls. One that is denied denies the whole.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub inside: Vec<Self>,
}

/// One simple command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CommandExplanation {
    /// Shortened, without anything that looks like a secret.
    pub command: String,
    /// What it does beside running: `Read "/etc/shadow"`.
    pub does: Vec<String>,
}

/// A decision, in the words of events.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ShownDecision {
    /// `Allow`, `Deny`, `Audit`, `WouldDeny`; or, where something would decide that is not known, `NeedsInput` (of a call)
    /// or `NeedsFacts` (of a rule).
    pub verdict: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A rule's part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RuleExplanation {
    pub rule: String,
    /// As it is written: `Deny`, `Allow`, `Audit`, `Inspect` or `Tunnel`; `Route` of a route.
    pub action: &'static str,
    /// `Enforce` or `Audit`, of its policy.
    pub enforcement: &'static str,
    pub applies: Applies,
    /// The reasons, in the order of the checks.
    pub why: Vec<String>,
    /// The tests of the rule's condition.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tests: Vec<TestResult>,
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
pub struct TestResult {
    /// Parameter, operator and values: `command Contains "sudo"`.
    pub test: String,
    /// The parameter's values, shortened, without anything that looks like a secret.
    pub found: Vec<String>,
    pub holds: bool,
}

impl ShownDecision {
    pub(super) fn needs_input() -> Self {
        let reason = "A condition needs the input, which is not known here".to_owned();
        Self { verdict: "NeedsInput", rule: None, reason: Some(reason) }
    }

    /// A rule could deny by what is not known; the reason names both.
    pub(crate) fn needs_facts(reason: String) -> Self {
        Self { verdict: "NeedsFacts", rule: None, reason: Some(reason) }
    }

    /// Whether nothing is decided, for want of something that is not known.
    pub(crate) fn is_open(&self) -> bool {
        matches!(self.verdict, "NeedsInput" | "NeedsFacts")
    }
}

impl fmt::Display for ShownDecision {
    /// `Deny by agents/coding-agents/no-force-remove: Nothing is removed by force`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.verdict)?;
        self.rule.as_ref().map_or(Ok(()), |rule| write!(f, " by {rule}"))?;
        self.reason.as_ref().map_or(Ok(()), |reason| write!(f, ": {reason}"))
    }
}

impl From<&Decision> for ShownDecision {
    fn from(decision: &Decision) -> Self {
        Self {
            verdict: decision.verdict.as_str(),
            rule: decision.rule.as_ref().map(ToString::to_string),
            reason: decision.reason.as_ref().map(ToString::to_string),
        }
    }
}

impl Policy {
    /// Says how an applying rule relates to the decision; `allows` says whether the rule would allow.
    pub(super) fn part(&self, rule: &str, audit: bool, allows: bool, decision: &Decision) -> String {
        let deciding = decision.rule.as_ref().map(ToString::to_string);
        match deciding {
            Some(deciding) if deciding == rule => "it decides".to_owned(),
            _ if audit && self.mode != Mode::AuditOnly => "its policy only records".to_owned(),
            Some(deciding) if allows && matches!(decision.verdict, Verdict::Deny | Verdict::WouldDeny) => {
                format!("{deciding} denies, and a denial wins")
            }
            Some(deciding) => format!("{deciding} says the same, and is told first"),
            None => "it decides nothing".to_owned(),
        }
    }
}
