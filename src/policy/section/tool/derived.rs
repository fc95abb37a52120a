//! Judges what the commands of a Shell call do beside running: files that they read and write, URLs that they fetch.
//!
//! Such facts serve rules that deny or record, and the built-in rule about control files; a Shell call is allowed by a
//! rule of kind Shell or by its name alone.

use std::ptr;

use crate::call::{Facts, Kind, Tool, ToolCall};
use crate::decision::Decision;
use crate::policy::Policy;
use crate::policy::scope::PolicyScope;

use super::control_files::{self, ControlFileFinding};
use super::decide::writes;
use super::rule::{CallRule, MatchedRule, visible};
use super::written::ToolAction;

/// The kinds that commands may have, beside Shell.
const KINDS: [Kind; 3] = [Kind::Read, Kind::Write, Kind::Fetch];

/// The rules that meet the facts which a call's commands derive, for each kind that is among them.
pub(super) struct DerivedRules<'a>(Vec<(Kind, Vec<MatchedRule<'a>>)>);

impl<'a> DerivedRules<'a> {
    pub(super) fn of(policy: &'a Policy, call: &ToolCall<'_>) -> Self {
        let there = |kind: &Kind| call.derived.iter().any(|facts| facts.kind == *kind);
        let rules = KINDS.into_iter().filter(there).map(|kind| (kind, Self::meeting(policy, call, kind)));
        Self(rules.collect())
    }

    fn meeting(policy: &'a Policy, call: &ToolCall<'_>, kind: Kind) -> Vec<MatchedRule<'a>> {
        policy.sections.tools.meet(&Tool { kinds: &[kind], ..call.tool })
    }

    /// All rules that meet the tool, since an Allow rule by name takes it out of inferred kinds.
    fn about<'b>(&'b self, facts: &Facts<'_>) -> &'b [MatchedRule<'b>] {
        let rules = self.0.iter().find(|(kind, _)| *kind == facts.kind);
        rules.map_or(&[], |(_, rules)| rules)
    }

    /// The rules of an action that hold for a fact, each with the fact. Where policies say `Ignore` there are none.
    fn holding<'b>(
        &'b self,
        policy: &'b Policy,
        call: &'b ToolCall<'b>,
        scope: PolicyScope,
        action: ToolAction,
    ) -> impl Iterator<Item = (&'b Facts<'b>, &'b MatchedRule<'b>)> {
        let judged = if policy.sections.shell.judges(scope) { call.derived } else { &[] };
        judged.iter().flat_map(move |facts| {
            let one = doing(call, facts);
            // By the name of the tool the call itself is judged.
            let rules = visible(self.about(facts), scope, action)
                .filter(move |met| met.rule.kind == Some(facts.kind));
            rules.filter(move |met| policy.holds(met, &one)).map(move |met| (facts, met))
        })
    }

    /// The denial by a rule about what a command does.
    pub(super) fn denial(
        &self,
        policy: &Policy,
        call: &ToolCall<'_>,
        scope: PolicyScope,
    ) -> Option<Decision> {
        self.holding(policy, call, scope, ToolAction::Deny).next().map(|(_, met)| met.rule.ruling())
    }

    /// The first command that writes a control file which no rule names, by its number.
    pub(super) fn control_file(
        &self,
        policy: &Policy,
        call: &ToolCall<'_>,
        scope: PolicyScope,
    ) -> Option<(Option<usize>, ControlFileFinding)> {
        call.derived.iter().filter(|facts| facts.kind == Kind::Write).find_map(|facts| {
            let (met, one) = (self.about(facts), doing(call, facts));
            let allowing = visible(met, scope, ToolAction::Allow).filter(|met| policy.holds(met, &one));
            let lifted = |path: &str| allowing.clone().any(|met| policy.names_file(met, &one, path));
            let found = writes(&one.tool, met, scope).then(|| control_files::finding(&one, lifted))?;
            found.map(|finding| (facts.derived_from, finding))
        })
    }

    /// Adds the records of Audit rules, each once.
    pub(super) fn audits(&self, policy: &Policy, call: &ToolCall<'_>, all: &mut Vec<Decision>) {
        for (_, met) in self.holding(policy, call, PolicyScope::All, ToolAction::Audit) {
            let ruling = met.rule.ruling();
            if !all.contains(&ruling) {
                all.push(ruling);
            }
        }
    }

    /// The number of the command by which a decision was made.
    pub(super) fn decisive(
        &self,
        policy: &Policy,
        call: &ToolCall<'_>,
        decision: &Decision,
    ) -> Option<usize> {
        let scope = policy.scope();
        let mut denying = self.holding(policy, call, scope, ToolAction::Deny);
        let is_told = |met: &MatchedRule<'_>| Some(&met.rule.id) == decision.rule.as_ref();
        let of_rule = denying.find(|(_, met)| is_told(met)).map(|(facts, _)| facts.derived_from);
        of_rule.unwrap_or_else(|| {
            let (command, finding) = self.control_file(policy, call, scope)?;
            command.filter(|_| control_files::ruling(finding).rule == decision.rule)
        })
    }

    /// What a call's commands do that a rule is about, with the rule as it meets that. Where an Allow rule takes the tool
    /// out of its inferred kinds, there is nothing.
    pub(super) fn facts_of<'b>(
        &'b self,
        call: &'b ToolCall<'b>,
        rule: &'b CallRule,
        scope: PolicyScope,
    ) -> impl Iterator<Item = (ToolCall<'b>, &'b MatchedRule<'b>)> {
        let facts = call.derived.iter().filter(|facts| rule.kind == Some(facts.kind));
        facts.filter_map(move |facts| {
            let met = visible(self.about(facts), scope, rule.action).find(|met| ptr::eq(met.rule, rule))?;
            Some((doing(call, facts), met))
        })
    }
}

/// A call as what one of its commands does.
pub(super) fn doing<'b>(call: &ToolCall<'b>, facts: &'b Facts<'b>) -> ToolCall<'b> {
    ToolCall { facts: Some(facts), derived: &[], ..*call }
}
