//! Which rules a tool call meets, and what becomes of it (design sections 4, 5.2 and 6.4).
//!
//! An explicit Deny anywhere wins, then the built-in rule about control files, then an explicit Allow, then
//! `toolDefault`. Names and kinds decide at the call's start as far as they can; conditions need the input.

mod control_files;
mod explain;
mod names;
mod rule;

use std::slice;

use crate::call::{
    Advice, Input, Inputs, Judge, Judgement, Kind, KindsBy, Spelling, Start, Tool, ToolCall, Verdict,
};

use super::compile::{Mode, Policy};
use super::condition::Subject;
use super::destination::Sight;
use super::document::tool::Action;
use super::outcome::Outcome;
use super::rule::Tier;
use crate::decision::{self, Decision};

pub(super) use control_files::is_place;
pub use names::covers;
pub(super) use names::{Name, Pattern};
use rule::{Met, is_exempt, visible};
pub(super) use rule::{Rule, Rules};

/// The longest name of a tool that is looked at, with its namespace, in bytes. Providers allow 64 to 128 characters.
const MOST_NAME: usize = 1024;

/// What names and kinds say of a call.
enum Prospect {
    Settled(Outcome),
    /// The input decides.
    Open,
}

impl Judge for Policy {
    fn denies(&self, writes: bool) -> bool {
        match self.mode {
            Mode::Missing | Mode::Unselected => true,
            Mode::AuditOnly => false,
            Mode::Enforced { .. } => {
                let by_default = matches!(self.settings.tool_default.at(Sight::Enforced), Outcome::Denied(_));
                writes || by_default || self.tools.deny()
            }
        }
    }

    fn start(&self, tool: &Tool<'_>) -> Start {
        if let Some(refused) = self.refused(tool) {
            return Start::Deny(refused);
        }
        let met = self.tools.meet(tool);
        let audit_only = self.mode == Mode::AuditOnly;
        let decided = match self.prospect(tool, &met, self.sight()) {
            Prospect::Settled(outcome) => outcome,
            Prospect::Open if audit_only => return Start::Observe,
            Prospect::Open => return Start::NeedsInput,
        };
        let denied = !audit_only && matches!(decided, Outcome::Denied(_));
        let mut recording = visible(&met, Sight::All, Action::Audit);
        let recorded = recording.any(|met| !met.is_unconditional());
        let together = match self.prospect(tool, &met, Sight::All) {
            Prospect::Settled(outcome) if denied || !recorded => outcome,
            Prospect::Open if denied => decided.clone(),
            Prospect::Settled(_) | Prospect::Open => return Start::Observe,
        };
        let judgement = self.weigh(|sight| match sight {
            Sight::Enforced => decided.clone(),
            Sight::All => together.clone(),
        });
        let verdict = verdict(judgement, Advice::NotAvailable, || audits(&met, None));
        if denied { Start::Deny(verdict) } else { Start::Allow(verdict) }
    }

    fn complete(&self, call: &ToolCall<'_>) -> Verdict {
        if let Some(refused) = self.refused(&call.tool) {
            return refused;
        }
        let kinds = call.facts.map_or(call.tool.kinds, |facts| slice::from_ref(&facts.kind));
        let met = self.tools.meet(&Tool { kinds, ..call.tool });
        let judgement = self.weigh(|sight| self.outcome(call, kinds, &met, sight));
        let advice = match self.prospect(&call.tool, &self.tools.meet(&call.tool), self.sight()) {
            Prospect::Settled(Outcome::Denied(_)) => Advice::NotAvailable,
            Prospect::Settled(Outcome::Allowed(_)) | Prospect::Open => Advice::NotThisUse,
        };
        verdict(judgement, advice, || audits(&met, Some(call)))
    }

    fn unknown(&self, tool: &Tool<'_>) -> Verdict {
        if let Some(refused) = self.refused(tool) {
            return refused;
        }
        let met = self.tools.meet(tool);
        let judgement = self.weigh(|sight| self.unknown_outcome(tool, &met, sight));
        let advice = match self.prospect(tool, &met, self.sight()) {
            Prospect::Settled(Outcome::Denied(_)) => Advice::NotAvailable,
            Prospect::Settled(Outcome::Allowed(_)) | Prospect::Open => Advice::NotThisUse,
        };
        verdict(judgement, advice, || audits(&met, None))
    }
}

impl Policy {
    /// How much of a tool's input an event keeps: `audit.toolInputs`.
    pub fn tool_inputs(&self) -> Inputs {
        self.settings.tool_inputs
    }

    /// The denial of any call, and of a name beyond the bound, whoever selects the pod.
    fn refused(&self, tool: &Tool<'_>) -> Option<Verdict> {
        let decision = match self.mode {
            Mode::Missing | Mode::Unselected => self.unselected(),
            Mode::AuditOnly | Mode::Enforced { .. }
                if tool.name.len() + tool.namespace.map_or(0, str::len) >= MOST_NAME =>
            {
                Decision::builtin("bound", "The tool's name is too long")
            }
            Mode::AuditOnly | Mode::Enforced { .. } => return None,
        };
        Some(Verdict { decision, advice: Advice::NotAvailable, audited: Vec::new() })
    }

    /// What can be said without the input.
    fn prospect(&self, tool: &Tool<'_>, met: &[Met<'_>], sight: Sight) -> Prospect {
        let mut denying = visible(met, sight, Action::Deny);
        if let Some(met) = denying.clone().find(|met| met.is_unconditional()) {
            return Prospect::Settled(Outcome::Denied(met.rule.ruling()));
        }
        let allowing = visible(met, sight, Action::Allow);
        let default = self.settings.tool_default.at(sight);
        if allowing.clone().next().is_none() && matches!(default, Outcome::Denied(_)) {
            return Prospect::Settled(default.clone());
        }
        if denying.next().is_some() || writes(tool, met, sight) {
            return Prospect::Open;
        }
        if let Some(met) = allowing.clone().find(|met| met.is_unconditional()) {
            return Prospect::Settled(Outcome::Allowed(Some(met.rule.ruling())));
        }
        match default {
            Outcome::Denied(_) => Prospect::Open,
            Outcome::Allowed(_) => Prospect::Settled(default.clone()),
        }
    }

    /// What the rules say of a call that a sight shows.
    fn outcome(&self, call: &ToolCall<'_>, kinds: &[Kind], met: &[Met<'_>], sight: Sight) -> Outcome {
        if let Prospect::Settled(outcome) = self.prospect(&Tool { kinds, ..call.tool }, met, sight) {
            return outcome;
        }
        if let Some(decision) = ambiguous(call, met, sight) {
            return Outcome::Denied(decision);
        }
        if let Some(met) = visible(met, sight, Action::Deny).find(|met| holds(met, call)) {
            return Outcome::Denied(met.rule.ruling());
        }
        let mut allowing = visible(met, sight, Action::Allow).filter(|met| holds(met, call));
        let lifted = |path: &str| allowing.clone().any(|met| names_file(met, call, path));
        if writes(&Tool { kinds, ..call.tool }, met, sight)
            && let Some(finding) = control_files::finding(call, lifted)
        {
            return Outcome::Denied(control_files::ruling(finding));
        }
        match allowing.next() {
            Some(met) => Outcome::Allowed(Some(met.rule.ruling())),
            None => self.settings.tool_default.at(sight).clone(),
        }
    }

    /// What the rules say of a call whose input nobody knows: one that asks for it denies.
    fn unknown_outcome(&self, tool: &Tool<'_>, met: &[Met<'_>], sight: Sight) -> Outcome {
        if let Prospect::Settled(outcome) = self.prospect(tool, met, sight) {
            return outcome;
        }
        // What a shell writes is not seen in its input anyway.
        let runs = tool.by != KindsBy::Possible && tool.kinds.contains(&Kind::Shell);
        let is_unseen = |met: &Met<'_>| runs && !met.certain && met.rule.kind == Some(Kind::Write);
        if let Some(met) = visible(met, sight, Action::Deny).find(|met| !is_unseen(met)) {
            return Outcome::Denied(unasked(met));
        }
        let call = ToolCall { tool: *tool, input: Input::Text(""), facts: None };
        // Without a definition and an input nothing says that the tool writes.
        if tool.by != KindsBy::Possible
            && writes(tool, met, sight)
            && let Some(finding) = control_files::finding(&call, |_| false)
        {
            return Outcome::Denied(control_files::ruling(finding));
        }
        match visible(met, sight, Action::Allow).find(|met| met.is_unconditional()) {
            Some(met) => Outcome::Allowed(Some(met.rule.ruling())),
            None => self.settings.tool_default.at(sight).clone(),
        }
    }
}

/// The denial of a call whose input a rule asks for, and nobody knows.
fn unasked(met: &Met<'_>) -> Decision {
    let decision = met.rule.ruling();
    let reason = format!(
        "Rule {} asks what the tool is called with, and only running the script would tell",
        decision.rule_id()
    );
    Decision { enforcement: decision.enforcement, ..Decision::builtin("unparseable", reason) }
}

/// Whether the call may write files, so that the built-in rule is about it: every Allow rule that takes the tool out of
/// its inferred kinds takes it out of that one.
fn writes(tool: &Tool<'_>, met: &[Met<'_>], sight: Sight) -> bool {
    let exempt = tool.is_inferred() && is_exempt(met, sight, Tier::Namespace);
    tool.kinds.contains(&Kind::Write) && !exempt
}

fn verdict(judgement: Judgement, advice: Advice, audits: impl FnOnce() -> Vec<Decision>) -> Verdict {
    let mut audited: Vec<Decision> = judgement.audited.into_iter().collect();
    if judgement.decision.verdict != decision::Verdict::Deny {
        audited.extend(audits());
    }
    Verdict { decision: judgement.decision, advice, audited }
}

/// What the Audit rules record of a call; without one, those that hold for every call.
fn audits(met: &[Met<'_>], call: Option<&ToolCall<'_>>) -> Vec<Decision> {
    let recording = visible(met, Sight::All, Action::Audit);
    let holding = recording.filter(|met| call.map_or(met.is_unconditional(), |call| holds(met, call)));
    holding.map(|met| met.rule.ruling()).collect()
}

/// Whether a rule that is about the tool holds for this call.
fn holds(met: &Met<'_>, call: &ToolCall<'_>) -> bool {
    let allows = met.rule.action == Action::Allow;
    // Which of its kinds the call is could not be told: that is enough to deny, and not to allow.
    if allows && !met.certain {
        return false;
    }
    met.rule.condition.as_ref().is_none_or(|condition| {
        let subject = subject(met, call);
        if allows { condition.holds_to_allow(&subject) } else { condition.holds_to_deny(&subject) }
    })
}

/// The denial of a call in which two keys fold to one parameter that a rule, or the catalogue, reads: which of them its
/// client takes is not known. What Audit rules alone read is no reason.
fn ambiguous(call: &ToolCall<'_>, met: &[Met<'_>], sight: Sight) -> Option<Decision> {
    let mut deciding = visible(met, sight, Action::Deny).chain(visible(met, sight, Action::Allow));
    let mut of_rule = || deciding.find_map(|met| met.rule.condition.as_ref()?.ambiguous(&subject(met, call)));
    let what = match call.facts {
        Some(facts) if facts.spelling == Spelling::Ambiguous => "what the call does".to_owned(),
        Some(_) | None => format!("the parameter {}", of_rule()?),
    };
    Some(Decision::builtin(
        "unparseable",
        format!("The tool's input has two readings: keys that differ in their case alone stand for {what}"),
    ))
}

/// Whether a rule that allows the call names this file of it.
fn names_file(met: &Met<'_>, call: &ToolCall<'_>, path: &str) -> bool {
    met.rule.condition.as_ref().is_some_and(|condition| condition.names_file(&subject(met, call), path))
}

/// A call as a rule's condition sees it.
fn subject<'a>(met: &Met<'_>, call: &ToolCall<'a>) -> Subject<'a> {
    let facts = call.facts.filter(|facts| met.rule.kind == Some(facts.kind));
    Subject { input: call.input, facts }
}
