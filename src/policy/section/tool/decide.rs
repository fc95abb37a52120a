//! Decides about a tool call by the rules that it meets (design sections 4, 5.2 and 6.4).
//!
//! An explicit Deny anywhere wins, then the built-in rule about control files, then an explicit Allow, then
//! `toolDefault`. Names and kinds decide at the call's start as far as they can; conditions need the input.

use std::slice;

use crate::call::{
    Advice, CallVerdict, Input, Judge, Judgement, Kind, KindsBy, ShellTerms, SimpleCommand, Spelling, Start,
    Tool, ToolCall,
};

use super::control_files;
use super::derived::DerivedRules;
use super::rule::{MatchedRule, is_exempt, visible};
use super::written::ToolAction;
use crate::decision::{self, Decision};
use crate::policy::Policy;
use crate::policy::condition::{CallSubject, HoldsFor};
use crate::policy::outcome::Outcome;
use crate::policy::scope::{Mode, PolicyScope, Tier};

/// The longest name of a tool that is looked at, with its namespace, in bytes. Providers allow 64 to 128 characters.
const MOST_NAME: usize = 1024;

/// The decision about a call by names and kinds alone.
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
                let by_default =
                    matches!(self.sections.tool_default.0.at(PolicyScope::Enforced), Outcome::Denied(_));
                let by_files = self.sections.data_loss.denies_files(PolicyScope::Enforced);
                writes || by_default || by_files || self.sections.tools.deny()
            }
        }
    }

    fn shell(&self) -> ShellTerms {
        match self.mode {
            Mode::Missing | Mode::Unselected => ShellTerms::default(),
            Mode::AuditOnly | Mode::Enforced { .. } => self.sections.shell.terms(self.scope()),
        }
    }

    fn start(&self, tool: &Tool<'_>) -> Start {
        if let Some(refused) = self.refused(tool) {
            return Start::Deny(refused);
        }
        let met = self.sections.tools.meet(tool);
        let audit_only = self.mode == Mode::AuditOnly;
        let decided = match self.prospect(tool, &met, self.scope()) {
            Prospect::Settled(outcome) => outcome,
            Prospect::Open if audit_only => return Start::Observe,
            Prospect::Open => return Start::NeedsInput,
        };
        let denied = !audit_only && matches!(decided, Outcome::Denied(_));
        let mut recording = visible(&met, PolicyScope::All, ToolAction::Audit);
        let recorded = recording.any(|met| !met.is_unconditional());
        let together = match self.prospect(tool, &met, PolicyScope::All) {
            Prospect::Settled(outcome) if denied || !recorded => outcome,
            Prospect::Open if denied => decided.clone(),
            Prospect::Settled(_) | Prospect::Open => return Start::Observe,
        };
        let judgement = self.weigh(|scope| match scope {
            PolicyScope::Enforced => decided.clone(),
            PolicyScope::All => together.clone(),
        });
        let verdict = verdict(judgement, Advice::NotAvailable, || self.audits(&met, None));
        if denied { Start::Deny(verdict) } else { Start::Allow(verdict) }
    }

    fn complete(&self, call: &ToolCall<'_>) -> CallVerdict {
        if let Some(refused) = self.refused(&call.tool) {
            return refused;
        }
        let kinds = call.facts.map_or(call.tool.kinds, |facts| slice::from_ref(&facts.kind));
        let met = self.sections.tools.meet(&Tool { kinds, ..call.tool });
        let derived = DerivedRules::of(self, call);
        let judgement = self.weigh(|scope| self.outcome(call, kinds, (&met, &derived), scope));
        let advice = match self.prospect(&call.tool, &self.sections.tools.meet(&call.tool), self.scope()) {
            Prospect::Settled(Outcome::Denied(_)) => Advice::NotAvailable,
            Prospect::Settled(Outcome::Allowed(_)) | Prospect::Open => Advice::NotThisUse,
        };
        let command = self.denied_command(&judgement.decision, call, (&met, &derived));
        let audits = || {
            let mut all = self.audits(&met, Some(call));
            derived.audits(self, call, &mut all);
            all
        };
        let opaque = call.facts.and_then(|facts| facts.shell.as_ref()).map(|shell| shell.is_opaque);
        CallVerdict { command, opaque, ..verdict(judgement, advice, audits) }
    }

    fn unknown(&self, tool: &Tool<'_>) -> CallVerdict {
        if let Some(refused) = self.refused(tool) {
            return refused;
        }
        let met = self.sections.tools.meet(tool);
        let judgement = self.weigh(|scope| self.unknown_outcome(tool, &met, scope));
        let advice = match self.prospect(tool, &met, self.scope()) {
            Prospect::Settled(Outcome::Denied(_)) => Advice::NotAvailable,
            Prospect::Settled(Outcome::Allowed(_)) | Prospect::Open => Advice::NotThisUse,
        };
        verdict(judgement, advice, || self.audits(&met, None))
    }
}

impl Policy {
    /// The denial of any call, and of a name beyond the bound, whoever selects the pod.
    fn refused(&self, tool: &Tool<'_>) -> Option<CallVerdict> {
        let decision = match self.mode {
            Mode::Missing | Mode::Unselected => self.unselected(),
            Mode::AuditOnly | Mode::Enforced { .. }
                if tool.name.len() + tool.namespace.map_or(0, str::len) >= MOST_NAME =>
            {
                Decision::builtin("bound", "The tool's name is too long")
            }
            Mode::AuditOnly | Mode::Enforced { .. } => return None,
        };
        Some(CallVerdict::of_no_tool(decision))
    }

    /// Decides as far as that needs no input.
    fn prospect(&self, tool: &Tool<'_>, met: &[MatchedRule<'_>], scope: PolicyScope) -> Prospect {
        let mut denying = visible(met, scope, ToolAction::Deny);
        if let Some(met) = denying.clone().find(|met| met.is_unconditional()) {
            return Prospect::Settled(Outcome::Denied(met.rule.ruling()));
        }
        let allowing = visible(met, scope, ToolAction::Allow);
        let default = self.sections.tool_default.0.at(scope);
        if allowing.clone().next().is_none() && matches!(default, Outcome::Denied(_)) {
            return Prospect::Settled(default.clone());
        }
        let is_about_files = self.sections.data_loss.is_about(tool, scope);
        if denying.next().is_some() || writes(tool, met, scope) || is_about_files {
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

    /// The outcome of a call by the rules of a scope.
    fn outcome(
        &self,
        call: &ToolCall<'_>,
        kinds: &[Kind],
        (met, derived): (&[MatchedRule<'_>], &DerivedRules<'_>),
        scope: PolicyScope,
    ) -> Outcome {
        if let Prospect::Settled(outcome) = self.prospect(&Tool { kinds, ..call.tool }, met, scope) {
            return outcome;
        }
        if let Some(decision) = self.ambiguous(call, met, scope) {
            return Outcome::Denied(decision);
        }
        if let Some(met) = visible(met, scope, ToolAction::Deny).find(|met| self.holds(met, call)) {
            return Outcome::Denied(met.rule.ruling());
        }
        if let Some(decision) = derived.denial(self, call, scope).or_else(|| self.native(call, scope)) {
            return Outcome::Denied(decision);
        }
        let mut allowing = visible(met, scope, ToolAction::Allow).filter(|met| self.holds(met, call));
        let lifted = |path: &str| allowing.clone().any(|met| self.names_file(met, call, path));
        if writes(&Tool { kinds, ..call.tool }, met, scope)
            && let Some(finding) = control_files::finding(call, lifted)
        {
            return Outcome::Denied(control_files::ruling(finding));
        }
        if let Some((_, finding)) = derived.control_file(self, call, scope) {
            return Outcome::Denied(control_files::ruling(finding));
        }
        if let Some(decision) = self.sections.data_loss.file_denial(call, scope) {
            return Outcome::Denied(decision);
        }
        match allowing.next() {
            Some(met) => Outcome::Allowed(Some(met.rule.ruling())),
            None => self.sections.tool_default.0.at(scope).clone(),
        }
    }

    /// The outcome of a call whose input is not known: a rule that needs the input denies.
    fn unknown_outcome(&self, tool: &Tool<'_>, met: &[MatchedRule<'_>], scope: PolicyScope) -> Outcome {
        if let Prospect::Settled(outcome) = self.prospect(tool, met, scope) {
            return outcome;
        }
        // What a shell writes is not known without its input.
        let runs = tool.by != KindsBy::Possible && tool.kinds.contains(&Kind::Shell);
        let is_unseen = |met: &MatchedRule<'_>| runs && !met.certain && met.rule.kind == Some(Kind::Write);
        if let Some(met) = visible(met, scope, ToolAction::Deny).find(|met| !is_unseen(met)) {
            return Outcome::Denied(unasked(met));
        }
        let call = ToolCall { tool: *tool, input: Input::Text(""), facts: None, derived: &[] };
        // Without a definition and an input nothing says that the tool writes.
        if tool.by != KindsBy::Possible
            && writes(tool, met, scope)
            && let Some(finding) = control_files::finding(&call, |_| false)
        {
            return Outcome::Denied(control_files::ruling(finding));
        }
        if self.sections.data_loss.is_about(tool, scope) {
            let reason =
                "A policy denies files by their names, and only running the script would tell which it names";
            return Outcome::Denied(Decision::builtin("unparseable", reason));
        }
        match visible(met, scope, ToolAction::Allow).find(|met| met.is_unconditional()) {
            Some(met) => Outcome::Allowed(Some(met.rule.ruling())),
            None => self.sections.tool_default.0.at(scope).clone(),
        }
    }
}

/// The denial of a call whose input is not known, by a rule that needs it.
fn unasked(met: &MatchedRule<'_>) -> Decision {
    let decision = met.rule.ruling();
    let reason = format!(
        "Rule {} asks what the tool is called with, and only running the script would tell",
        decision.rule_id()
    );
    Decision { enforcement: decision.enforcement, ..Decision::builtin("unparseable", reason) }
}

/// Whether the call may write files, by commands too, so that the built-in rule is about it: every Allow rule that takes
/// the tool out of its inferred kinds takes it out of that one.
pub(super) fn writes(tool: &Tool<'_>, met: &[MatchedRule<'_>], scope: PolicyScope) -> bool {
    let exempt = tool.is_inferred() && is_exempt(met, scope, Tier::Namespace);
    tool.kinds.iter().any(|kind| matches!(kind, Kind::Write | Kind::Shell)) && !exempt
}

fn verdict(judgement: Judgement, advice: Advice, audits: impl FnOnce() -> Vec<Decision>) -> CallVerdict {
    let mut audited: Vec<Decision> = judgement.audited.into_iter().collect();
    if judgement.decision.verdict != decision::Verdict::Deny {
        audited.extend(audits());
    }
    CallVerdict { decision: judgement.decision, advice, audited, command: None, opaque: None, edit: None }
}

impl Policy {
    /// The records of Audit rules about a call; without a call, of those that hold for every call.
    pub(super) fn audits(&self, met: &[MatchedRule<'_>], call: Option<&ToolCall<'_>>) -> Vec<Decision> {
        let recording = visible(met, PolicyScope::All, ToolAction::Audit);
        let holding =
            recording.filter(|met| call.map_or(met.is_unconditional(), |call| self.holds(met, call)));
        holding.map(|met| met.rule.ruling()).collect()
    }

    /// Whether a rule that is about the tool holds for this call.
    pub(super) fn holds(&self, met: &MatchedRule<'_>, call: &ToolCall<'_>) -> bool {
        let allows = met.rule.action == ToolAction::Allow;
        // The call may be of another of the tool's kinds: enough to deny, not to allow.
        if allows && !met.certain {
            return false;
        }
        met.rule.condition.as_ref().is_none_or(|condition| {
            let subject = self.subject(met, call);
            if allows {
                condition.holds_to_allow(&subject)
            } else {
                condition.holds_to_deny(&subject).is_some()
            }
        })
    }

    /// The simple command of a Shell call for which the rule holds that decides.
    fn denied_command(
        &self,
        decision: &Decision,
        call: &ToolCall<'_>,
        (met, derived): (&[MatchedRule<'_>], &DerivedRules<'_>),
    ) -> Option<Box<SimpleCommand>> {
        if !(decision.denies() || decision.would_deny()) {
            return None;
        }
        let shell = call.facts?.shell.as_ref()?;
        let deciding = met.iter().find(|met| Some(&met.rule.id) == decision.rule.as_ref());
        let of_rule = || {
            let met = deciding.filter(|met| met.rule.action == ToolAction::Deny)?;
            match met.rule.condition.as_ref()?.holds_to_deny(&self.subject(met, call))? {
                HoldsFor::Command(command) => Some(command.clone()),
                HoldsFor::Whole => None,
            }
        };
        let of_derived = || shell.commands.get(derived.decisive(self, call, decision)?).cloned();
        let of_native = || self.emulating(call, decision).cloned();
        of_rule().or_else(of_derived).or_else(of_native).map(Box::new)
    }

    /// The denial of a command that does the work of a file tool, which the request offers.
    fn native(&self, call: &ToolCall<'_>, scope: PolicyScope) -> Option<Decision> {
        let denial = self.sections.shell.native(scope)?;
        let shell = call.facts?.shell.as_ref()?;
        let tool = shell.commands.iter().find_map(|command| command.file_tool.as_deref())?;
        Some(Decision { reason: Some(format!("Use the tool {tool} instead of a command").into()), ..denial })
    }

    /// The command by which the section `shell` decides.
    fn emulating<'a>(&self, call: &ToolCall<'a>, decision: &Decision) -> Option<&'a SimpleCommand> {
        let denial = self.sections.shell.native(PolicyScope::All)?;
        let shell = call.facts?.shell.as_ref().filter(|_| denial.rule == decision.rule)?;
        shell.commands.iter().find(|command| command.file_tool.is_some())
    }

    /// The denial of a call in which two keys fold to one parameter that a rule, or the catalogue, reads: which of them
    /// its client takes is not known. Parameters that only Audit rules read do not count.
    fn ambiguous(
        &self,
        call: &ToolCall<'_>,
        met: &[MatchedRule<'_>],
        scope: PolicyScope,
    ) -> Option<Decision> {
        let mut deciding =
            visible(met, scope, ToolAction::Deny).chain(visible(met, scope, ToolAction::Allow));
        let mut of_rule =
            || deciding.find_map(|met| met.rule.condition.as_ref()?.ambiguous(&self.subject(met, call)));
        let what = match call.facts {
            Some(facts) if facts.spelling == Spelling::Ambiguous => "what the call does".to_owned(),
            Some(_) | None => format!("the parameter {}", of_rule()?),
        };
        Some(Decision::builtin(
            "unparseable",
            format!(
                "The tool's input has two readings: keys that differ in their case alone stand for {what}"
            ),
        ))
    }

    /// Whether a rule that allows the call names this file.
    pub(super) fn names_file(&self, met: &MatchedRule<'_>, call: &ToolCall<'_>, path: &str) -> bool {
        let condition = met.rule.condition.as_ref();
        condition.is_some_and(|condition| condition.names_file(&self.subject(met, call), path))
    }

    /// A call as a rule's condition sees it.
    pub(super) fn subject<'a>(&'a self, met: &MatchedRule<'_>, call: &ToolCall<'a>) -> CallSubject<'a> {
        let facts = call.facts.filter(|facts| met.rule.kind == Some(facts.kind));
        CallSubject::new(call.input, facts, self.sections.shell.directory(self.scope()))
    }
}
