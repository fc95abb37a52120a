//! Why tool rules do or do not apply to a call.

use std::ptr;
use std::slice;

use crate::call::{Judge, Kind, KindsBy, Start, Tool, ToolCall};
use crate::decision::{Decision, Enforcement, Verdict};
use crate::policy::compile::Policy;

use crate::policy::destination::Sight;
use crate::policy::document::tool::Action;
use crate::policy::explain::{Applies, Explanation, RuleSaid, Said};
use crate::policy::field;

use super::names::Name;
use super::rule::{Met, Rule, visible};
use super::{control_files, holds, subject};
use crate::call::name::Called;

/// The rules that a call meets, and what is decided about it.
struct Question<'a> {
    tool: Tool<'a>,
    /// None where the input is not known.
    call: Option<&'a ToolCall<'a>>,
    met: Vec<Met<'a>>,
    /// None where the input would decide and is not known.
    decision: Option<Decision>,
}

impl Policy {
    /// Says of every rule about tool calls why it does or does not apply to this one.
    pub fn explain_call(&self, call: &ToolCall<'_>) -> Explanation {
        let verdict = self.complete(call);
        let kinds = call.facts.map_or(call.tool.kinds, |facts| slice::from_ref(&facts.kind));
        let tool = Tool { kinds, ..call.tool };
        let question = Question {
            tool,
            call: Some(call),
            met: self.tools.meet(&tool),
            decision: Some(verdict.decision.clone()),
        };
        let mut rules = self.explain_rules(&question);
        rules.extend(self.explain_built_in(call, &verdict.decision));
        Explanation {
            about: name(&tool),
            decision: Said::from(&verdict.decision),
            recorded: verdict.audited.iter().map(Said::from).collect(),
            rules,
            inside: Vec::new(),
        }
    }

    /// The same of a call whose input is not known: what its start decides.
    pub fn explain_start(&self, tool: &Tool<'_>) -> Explanation {
        let (decision, recorded) = match self.start(tool) {
            Start::Allow(verdict) | Start::Deny(verdict) => (Some(verdict.decision), verdict.audited),
            Start::Observe => (Some(Decision::of(Verdict::Allow)), Vec::new()),
            Start::NeedsInput => (None, Vec::new()),
        };
        let question = Question { tool: *tool, call: None, met: self.tools.meet(tool), decision };
        Explanation {
            about: name(tool),
            decision: question.decision.as_ref().map_or_else(Said::needs_input, Said::from),
            recorded: recorded.iter().map(Said::from).collect(),
            rules: self.explain_rules(&question),
            inside: Vec::new(),
        }
    }

    fn explain_rules(&self, question: &Question<'_>) -> Vec<RuleSaid> {
        self.tools.all().iter().map(|rule| self.explain_rule(rule, question)).collect()
    }

    fn explain_rule(&self, rule: &Rule, question: &Question<'_>) -> RuleSaid {
        let mut said = RuleSaid {
            rule: rule.id.to_string(),
            action: word(rule.action),
            enforcement: Enforcement::of(rule.audit).as_str(),
            applies: Applies::No,
            why: Vec::new(),
            tests: Vec::new(),
        };
        let Some(met) = question.met.iter().find(|met| ptr::eq(met.rule, rule)) else {
            said.why.push(not_meeting(rule, &question.tool));
            return said;
        };
        said.why.push(meeting(met, &question.tool));
        let sight = if rule.audit { Sight::All } else { self.sight() };
        if !visible(&question.met, sight, rule.action).any(|met| ptr::eq(met.rule, rule)) {
            said.why.push(
                "an Allow rule names the tool, which takes it out of what its parameters say".to_owned(),
            );
            return said;
        }
        if let (Some(condition), Some(call)) = (&rule.condition, question.call) {
            said.tests = condition.tests(&subject(met, call), rule.action == Action::Allow);
        }
        said.applies = match question.call {
            Some(call) if holds(met, call) => Applies::Yes,
            Some(_) => Applies::No,
            None if met.is_unconditional() => Applies::Yes,
            None => Applies::Unknown,
        };
        said.why.extend(condition(rule, said.applies));
        if said.applies == Applies::Yes {
            said.why.push(match (rule.action, &question.decision) {
                (Action::Audit, _) => "it records".to_owned(),
                (Action::Allow | Action::Deny, Some(decision)) => {
                    self.part(rule.id.as_str(), rule.audit, rule.action == Action::Allow, decision)
                }
                (Action::Allow | Action::Deny, None) => {
                    "the input decides whether another rule denies".to_owned()
                }
            });
        }
        said
    }

    /// The built-in rule, where the call writes one of its files.
    fn explain_built_in(&self, call: &ToolCall<'_>, decision: &Decision) -> Option<RuleSaid> {
        let built_in = control_files::ruling(control_files::finding(call, |_| false)?);
        let decides = decision.rule == built_in.rule;
        let part = if decides {
            "it decides".to_owned()
        } else if decision.denies() {
            "another denial is told first".to_owned()
        } else {
            "an Allow rule names the file".to_owned()
        };
        Some(RuleSaid {
            rule: built_in.rule_id().to_owned(),
            action: "Deny",
            enforcement: Enforcement::Enforce.as_str(),
            applies: if decides || decision.denies() { Applies::Yes } else { Applies::No },
            why: vec![built_in.why().to_owned(), part],
            tests: Vec::new(),
        })
    }
}

/// What a condition adds to the name.
fn condition(rule: &Rule, applies: Applies) -> Option<String> {
    rule.condition.as_ref()?;
    Some(match applies {
        Applies::Yes => "its condition holds".to_owned(),
        Applies::No => "its condition does not hold".to_owned(),
        Applies::Unknown => "its condition needs the input".to_owned(),
    })
}

/// By what a rule is about the tool.
fn meeting(met: &Met<'_>, tool: &Tool<'_>) -> String {
    let called = Called::of(tool);
    let name = if met.rule.action == Action::Allow { called.exact.clone() } else { qualified(tool) };
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

fn not_meeting(rule: &Rule, tool: &Tool<'_>) -> String {
    let mut why = Vec::new();
    let called = Called::of(tool);
    let alike = |name: &Name| Name::spelled(&name.written).covers(&called);
    if rule.action == Action::Allow && rule.names.iter().any(alike) {
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

fn word(action: Action) -> &'static str {
    match action {
        Action::Deny => "Deny",
        Action::Audit => "Audit",
        Action::Allow => "Allow",
    }
}
