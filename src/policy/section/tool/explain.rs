//! Explains why tool rules do or do not apply to a call.

use std::ptr;
use std::slice;

use crate::call::{Judge, Kind, KindsBy, Start, Tool, ToolCall};
use crate::decision::{Decision, Enforcement, Verdict};
use crate::policy::Policy;
use crate::policy::explain::{Applies, CommandExplanation, Explanation, RuleExplanation, ShownDecision};
use crate::policy::scope::PolicyScope;
use crate::policy::shown::shown;

use super::control_files;
use super::derived::{DerivedRules, doing};
use super::names::ToolName;
use super::rule::{CallRule, MatchedRule, visible};
use super::written::ToolAction;
use crate::call::name::Called;
use crate::yaml::field;

/// A call with the rules that it meets and the decision.
struct CallQuestion<'a> {
    tool: Tool<'a>,
    /// None where the input is not known.
    call: Option<&'a ToolCall<'a>>,
    met: Vec<MatchedRule<'a>>,
    /// None where the input would decide and is not known.
    decision: Option<Decision>,
}

impl Policy {
    /// Says of every rule about tool calls why it does or does not apply to this one.
    pub fn explain_call(&self, call: &ToolCall<'_>) -> Explanation {
        let verdict = self.complete(call);
        let kinds = call.facts.map_or(call.tool.kinds, |facts| slice::from_ref(&facts.kind));
        let tool = Tool { kinds, ..call.tool };
        let question = CallQuestion {
            tool,
            call: Some(call),
            met: self.sections.tools.meet(&tool),
            decision: Some(verdict.decision.clone()),
        };
        let mut rules = self.explain_rules(&question);
        rules.extend(self.explain_built_in(call, &verdict.decision));
        rules.extend(self.explain_native(call, &verdict.decision));
        Explanation {
            about: name(&tool),
            decision: ShownDecision::from(&verdict.decision),
            recorded: verdict.audited.iter().map(ShownDecision::from).collect(),
            rules,
            commands: commands(call),
            opaque: call.facts.and_then(|facts| facts.shell.as_ref()).is_some_and(|shell| shell.is_opaque),
            inside: Vec::new(),
        }
    }

    /// Explains a call whose input is not known, by the decision at its start.
    pub fn explain_start(&self, tool: &Tool<'_>) -> Explanation {
        let (decision, recorded) = match self.start(tool) {
            Start::Allow(verdict) | Start::Deny(verdict) => (Some(verdict.decision), verdict.audited),
            Start::Observe => (Some(Decision::of(Verdict::Allow)), Vec::new()),
            Start::NeedsInput => (None, Vec::new()),
        };
        let question =
            CallQuestion { tool: *tool, call: None, met: self.sections.tools.meet(tool), decision };
        Explanation {
            about: name(tool),
            decision: question.decision.as_ref().map_or_else(ShownDecision::needs_input, ShownDecision::from),
            recorded: recorded.iter().map(ShownDecision::from).collect(),
            rules: self.explain_rules(&question),
            commands: Vec::new(),
            opaque: false,
            inside: Vec::new(),
        }
    }

    fn explain_rules(&self, question: &CallQuestion<'_>) -> Vec<RuleExplanation> {
        self.sections.tools.all().iter().map(|rule| self.explain_rule(rule, question)).collect()
    }

    fn explain_rule(&self, rule: &CallRule, question: &CallQuestion<'_>) -> RuleExplanation {
        let mut explanation = RuleExplanation {
            rule: rule.id.to_string(),
            action: rule.action.as_str(),
            enforcement: Enforcement::of(rule.audit).as_str(),
            applies: Applies::No,
            why: Vec::new(),
            tests: Vec::new(),
        };
        let Some(met) = question.met.iter().find(|met| ptr::eq(met.rule, rule)) else {
            return self.explain_derived(rule, question, explanation);
        };
        explanation.why.push(meeting(met, &question.tool));
        let scope = if rule.audit { PolicyScope::All } else { self.scope() };
        if !visible(&question.met, scope, rule.action).any(|met| ptr::eq(met.rule, rule)) {
            explanation.why.push(
                "an Allow rule names the tool, which takes it out of what its parameters say".to_owned(),
            );
            return explanation;
        }
        if let (Some(condition), Some(call)) = (&rule.condition, question.call) {
            explanation.tests = condition.tests(&self.subject(met, call), rule.action == ToolAction::Allow);
        }
        explanation.applies = match question.call {
            Some(call) if self.holds(met, call) => Applies::Yes,
            Some(_) => Applies::No,
            None if met.is_unconditional() => Applies::Yes,
            None => Applies::Unknown,
        };
        explanation.why.extend(condition(rule, explanation.applies));
        self.explain_part(rule, question, &mut explanation);
        explanation
    }

    /// A rule that does not meet the tool itself: it may be about what its commands do.
    fn explain_derived(
        &self,
        rule: &CallRule,
        question: &CallQuestion<'_>,
        mut explanation: RuleExplanation,
    ) -> RuleExplanation {
        let scope = if rule.audit { PolicyScope::All } else { self.scope() };
        let may_derive = question.tool.kinds.contains(&Kind::Shell)
            && rule.action != ToolAction::Allow
            && matches!(rule.kind, Some(Kind::Read | Kind::Write | Kind::Fetch));
        let Some(kind) = rule.kind.filter(|_| may_derive) else {
            explanation.why.push(not_meeting(rule, &question.tool));
            return explanation;
        };
        if !self.sections.shell.judges(scope) {
            explanation.why.push("shell.files is Ignore: it is about no command".to_owned());
            return explanation;
        }
        let Some(call) = question.call else {
            explanation.applies = Applies::Unknown;
            explanation.why.push(format!("a command may be a {kind:?}, too: the input decides"));
            return explanation;
        };
        let derived = DerivedRules::of(self, call);
        let mut about = derived.facts_of(call, rule, scope);
        let Some(first) = about.next() else {
            explanation
                .why
                .push(format!("it is about {kind:?}, and no command of the call is known to be one"));
            return explanation;
        };
        let holding = [first].into_iter().chain(about).find(|(one, met)| self.holds(met, one));
        explanation.applies = if holding.is_some() { Applies::Yes } else { Applies::No };
        let (one, met) = holding.unwrap_or(first);
        if let Some(condition) = &rule.condition {
            explanation.tests = condition.tests(&self.subject(met, &one), false);
        }
        explanation.why.push(format!("a command in it is a {kind:?}"));
        explanation.why.extend(condition(rule, explanation.applies));
        self.explain_part(rule, question, &mut explanation);
        explanation
    }

    /// The part of a rule that applies in the decision.
    fn explain_part(&self, rule: &CallRule, question: &CallQuestion<'_>, explanation: &mut RuleExplanation) {
        if explanation.applies == Applies::Yes {
            explanation.why.push(match (rule.action, &question.decision) {
                (ToolAction::Audit, _) => "it records".to_owned(),
                (ToolAction::Allow | ToolAction::Deny, Some(decision)) => {
                    self.part(rule.id.as_str(), rule.audit, rule.action == ToolAction::Allow, decision)
                }
                (ToolAction::Allow | ToolAction::Deny, None) => {
                    "the input decides whether another rule denies".to_owned()
                }
            });
        }
    }

    /// The section `shell`, where it asks for file tools and a command does the work of one.
    fn explain_native(&self, call: &ToolCall<'_>, decision: &Decision) -> Option<RuleExplanation> {
        let rule = self.sections.shell.native(PolicyScope::All)?;
        let shell = call.facts?.shell.as_ref()?;
        let command = shell.commands.iter().find(|command| command.emulates.is_some())?;
        let (applies, why) = match &command.file_tool {
            Some(tool) if decision.rule == rule.rule => {
                (Applies::Yes, format!("{tool} is offered; it decides"))
            }
            Some(tool) if decision.denies() => {
                (Applies::Yes, format!("{tool} is offered; another denial is told first"))
            }
            Some(tool) => (Applies::Yes, format!("{tool} is offered; its policy only records")),
            None => (Applies::No, "no tool is known to be offered that does the same".to_owned()),
        };
        let does = format!("{} does a file tool's work", shown(&command.text));
        Some(RuleExplanation {
            rule: rule.rule_id().to_owned(),
            action: "Deny",
            enforcement: rule.enforcement.map_or("Enforce", Enforcement::as_str),
            applies,
            why: vec![does, why],
            tests: Vec::new(),
        })
    }

    /// The built-in rule, where the call writes one of its files.
    fn explain_built_in(&self, call: &ToolCall<'_>, decision: &Decision) -> Option<RuleExplanation> {
        let of_command = |facts| control_files::finding(&doing(call, facts), |_| false);
        let finding = control_files::finding(call, |_| false);
        let finding = finding.or_else(|| call.derived.iter().find_map(of_command))?;
        let built_in = control_files::ruling(finding);
        let decides = decision.rule == built_in.rule;
        let part = if decides {
            "it decides".to_owned()
        } else if decision.denies() {
            "another denial is told first".to_owned()
        } else {
            "an Allow rule names the file".to_owned()
        };
        Some(RuleExplanation {
            rule: built_in.rule_id().to_owned(),
            action: "Deny",
            enforcement: Enforcement::Enforce.as_str(),
            applies: if decides || decision.denies() { Applies::Yes } else { Applies::No },
            why: vec![built_in.why().to_owned(), part],
            tests: Vec::new(),
        })
    }
}

/// The simple commands of a call, each with what it does.
fn commands(call: &ToolCall<'_>) -> Vec<CommandExplanation> {
    let shell = call.facts.and_then(|facts| facts.shell.as_ref());
    let numbered = shell.into_iter().flat_map(|shell| shell.commands.iter().enumerate());
    let explained = numbered.map(|(number, command)| {
        let derived = call.derived.iter().filter(|facts| facts.derived_from == Some(number));
        let does = derived.map(|facts| {
            let named: Vec<String> = facts.paths.iter().chain(&facts.urls).map(|text| shown(text)).collect();
            format!("{:?} {}", facts.kind, named.join(", "))
        });
        CommandExplanation { command: shown(&command.text), does: does.collect() }
    });
    explained.collect()
}

/// Says whether the rule's condition holds.
fn condition(rule: &CallRule, applies: Applies) -> Option<String> {
    rule.condition.as_ref()?;
    Some(match applies {
        Applies::Yes => "its condition holds".to_owned(),
        Applies::No => "its condition does not hold".to_owned(),
        Applies::Unknown => "its condition needs the input".to_owned(),
    })
}

/// Says by which name or kind a rule is about the tool.
fn meeting(met: &MatchedRule<'_>, tool: &Tool<'_>) -> String {
    let called = Called::of(tool);
    let name = if met.rule.action == ToolAction::Allow { called.exact.clone() } else { qualified(tool) };
    let named = met
        .rule
        .names
        .iter()
        .find(|name| name.covers(&called))
        .map(|pattern| format!("{:?} matches the name {}", pattern.written, field::quoted(&name)));
    named.unwrap_or_else(|| match (met.rule.kind, tool.by, met.certain) {
        (Some(kind), KindsBy::Catalogue | KindsBy::Ending, true) => format!("it is a {kind:?} tool"),
        (Some(kind), KindsBy::Inferred | KindsBy::Possible, true) => {
            format!("it looks like a {kind:?} tool, by its parameters")
        }
        (Some(kind), _, false) => format!("it may be a {kind:?} call: which kind it is, the input says"),
        (None, _, _) => "it is about this tool".to_owned(),
    })
}

fn not_meeting(rule: &CallRule, tool: &Tool<'_>) -> String {
    let mut why = Vec::new();
    let called = Called::of(tool);
    let alike = |name: &ToolName| ToolName::spelled(&name.written).covers(&called);
    if rule.action == ToolAction::Allow && rule.names.iter().any(alike) {
        why.push("an Allow rule compares names exactly, and the name is written differently".to_owned());
    } else if !rule.names.is_empty() {
        why.push("it names other tools".to_owned());
    }
    if let Some(kind) = rule.kind {
        why.push(match tool.kinds {
            [] => format!("it is about {kind:?} tools, and of this one no kind is known"),
            kinds if kinds.contains(&kind) => {
                format!("an Allow rule of kind {kind:?} is about tools that the catalogue knows by their whole names")
            }
            kinds => {
                let kinds: Vec<String> = kinds.iter().map(|kind: &Kind| format!("{kind:?}")).collect();
                format!("it is about {kind:?} tools, and this is {}", kinds.join(" or "))
            }
        });
    }
    why.join("; ")
}

/// The name, with its namespace in front.
fn qualified(tool: &Tool<'_>) -> String {
    match tool.namespace {
        Some(namespace) => format!("{namespace}.{}", tool.name),
        None => tool.name.to_owned(),
    }
}

fn name(tool: &Tool<'_>) -> String {
    let name = qualified(tool);
    match tool.kinds {
        [] => format!("a call of {}", field::quoted(&name)),
        kinds => {
            let kinds: Vec<String> = kinds.iter().map(|kind| format!("{kind:?}")).collect();
            format!("a call of {} ({})", field::quoted(&name), kinds.join(" or "))
        }
    }
}
