//! `rules`: expressions in CEL over the facts of requests, tool calls and answers.

mod decide;
mod known;
mod lower;
mod place;
pub(in crate::policy) mod written;

use serde::Serialize;

use super::page::{Heading, Page};
use super::{Lowering, Owner, PolicySection};
use crate::decision::{Enforcement, RuleId};
use crate::policy::cel::Expression;
use crate::policy::scope::{Mode, PolicyScope};
use place::Places;
use written::RuleAction;

pub use decide::{CallRuling, KnownCall, RulesVerdict};
pub use known::UnknownFact;
pub use place::Place;

/// A rule of a policy, compiled.
#[derive(Debug)]
pub(in crate::policy) struct FactRule {
    id: RuleId,
    /// Whether its policy only records.
    audit: bool,
    action: RuleAction,
    /// As it is written.
    source: String,
    /// Where it is asked.
    places: Places,
    reads: CallReads,
    expression: Expression,
    reason: String,
}

/// What a rule reads of a call.
#[derive(Debug, Clone, Copy)]
struct CallReads {
    /// Anything, so that it may deny one call and not another.
    any: bool,
    /// Its kinds, which only the input may tell.
    kinds: bool,
    /// The input.
    input: bool,
}

impl CallReads {
    fn of(expression: &Expression) -> Self {
        let reads = |prefixes: &[&str]| expression.reads(prefixes).is_some();
        Self {
            any: reads(&["toolCall.", "dlp"]),
            kinds: reads(&["toolCall.kinds"]),
            input: reads(&["toolCall.inputBytes", "dlp"]),
        }
    }
}

/// The rules of all policies, the cluster's first.
#[derive(Debug)]
pub(in crate::policy) struct FactRules(Vec<FactRule>);

#[derive(Serialize)]
pub(in crate::policy) struct RulesListed {
    rules: Vec<RuleListed>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RuleListed {
    rule: String,
    enforcement: &'static str,
    action: &'static str,
    /// The expression.
    when: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    reason: String,
    /// The kinds of events that it is asked about; `ResponseEnd` is one whose usage is known.
    asked: Vec<&'static str>,
    /// What an evaluation costs at most.
    cost: u64,
}

impl PolicySection for FactRules {
    type Written = Vec<written::Rule>;
    type Lowered = Vec<FactRule>;
    type Listed = RulesListed;

    fn lower<'a>(written: &'a Self::Written, lowering: &mut Lowering<'a>) -> Self::Lowered {
        lower::lower(written, lowering)
    }

    fn unite(policies: Vec<(&Owner, Self::Lowered)>, _: Mode) -> Self {
        Self(policies.into_iter().flat_map(|(_, rules)| rules).collect())
    }

    fn list(&self, _: PolicyScope) -> RulesListed {
        let rules = self.0.iter().map(|rule| RuleListed {
            rule: rule.id.to_string(),
            enforcement: Enforcement::of(rule.audit).as_str(),
            action: rule.action.as_str(),
            when: rule.source.clone(),
            reason: rule.reason.clone(),
            asked: rule.places.words(),
            cost: rule.expression.cost(),
        });
        RulesListed { rules: rules.collect() }
    }

    fn rows(listed: &RulesListed, page: &mut Page) {
        for rule in &listed.rules {
            let reason = if rule.reason.is_empty() { String::new() } else { format!(": {}", rule.reason) };
            let by = page.by(&rule.rule, rule.enforcement);
            let left = format!("{} where {}", rule.action, rule.when.trim());
            page.add(Heading::Rules, [left, format!("[{by}{reason}]")]);
        }
    }
}
