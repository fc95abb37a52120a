//! One tool rule, compiled, and the index over them.

use crate::call::{Kind, Tool};
use crate::event::Verdict;
use crate::policy::RuleId;
use crate::policy::condition::Condition;
use crate::policy::destination::Sight;
use crate::policy::document::tool::Action;
use crate::policy::ruling::{AUDIT, ENFORCE, Ruling};

use super::fold::fold;
use super::names::{Name, Names};

/// A rule with everything a decision needs.
#[derive(Debug)]
pub(in crate::policy) struct Rule {
    pub(in crate::policy) id: RuleId,
    /// Whether its policy only records.
    pub(in crate::policy) audit: bool,
    pub(in crate::policy) kind: Option<Kind>,
    pub(in crate::policy) names: Vec<Name>,
    pub(in crate::policy) action: Action,
    pub(in crate::policy) condition: Option<Condition>,
    /// Empty where nothing is written.
    pub(in crate::policy) reason: String,
}

impl Rule {
    /// What the rule says where it holds.
    pub(super) fn ruling(&self) -> Ruling {
        let (verdict, default) = match self.action {
            Action::Deny => (Verdict::Deny, "A rule denies this tool call"),
            Action::Audit => (Verdict::Audit, "A rule records this tool call"),
            Action::Allow => (Verdict::Allow, ""),
        };
        let own = self.action != Action::Allow && !self.reason.is_empty();
        let reason = if own { self.reason.as_str() } else { default };
        let enforcement = if self.audit { AUDIT } else { ENFORCE };
        Ruling { verdict, rule: self.id.clone(), reason: reason.to_owned(), enforcement }
    }
}

/// All rules about tool calls, and how to find those about one tool.
#[derive(Debug, Default)]
pub(in crate::policy) struct Rules {
    rules: Vec<Rule>,
    /// By folded names: rules that deny or record.
    folded: Names,
    /// By names as they are written: rules that allow.
    exact: Names,
    /// In the order of [`Kind`].
    kinds: [Vec<usize>; 4],
}

/// A rule that is about a tool.
#[derive(Debug, Clone, Copy)]
pub(super) struct Met<'a> {
    pub(super) rule: &'a Rule,
    /// Whether it is about every call of the tool: by its name, or by its only kind.
    pub(super) certain: bool,
}

impl Met<'_> {
    /// Whether the rule holds whatever the input is.
    pub(super) fn is_unconditional(&self) -> bool {
        self.certain && self.rule.condition.is_none()
    }
}

impl Rules {
    /// The rules in the order of their policies.
    pub(in crate::policy) fn new(rules: Vec<Rule>) -> Self {
        let patterns = |allowing: bool| {
            let numbered =
                rules.iter().enumerate().filter(move |(_, rule)| (rule.action == Action::Allow) == allowing);
            numbered
                .flat_map(|(number, rule)| rule.names.iter().map(move |name| (name.pattern.clone(), number)))
        };
        let (folded, exact) = (Names::new(patterns(false)), Names::new(patterns(true)));
        let mut kinds = [const { Vec::new() }; 4];
        for (number, rule) in rules.iter().enumerate() {
            if let Some(all) = rule.kind.and_then(|kind| kinds.get_mut(place(kind))) {
                all.push(number);
            }
        }
        Self { rules, folded, exact, kinds }
    }

    /// Every rule, in the order of the policies.
    pub(in crate::policy) fn all(&self) -> &[Rule] {
        &self.rules
    }

    /// Whether an Enforce policy has a rule that denies.
    pub(super) fn deny(&self) -> bool {
        self.rules.iter().any(|rule| rule.action == Action::Deny && !rule.audit)
    }

    /// The rules about a tool, in their order.
    pub(super) fn meet(&self, tool: &Tool<'_>) -> Vec<Met<'_>> {
        let mut named = Vec::new();
        let mut name = |name: &str| {
            self.folded.find(&fold(name), &mut named);
            self.exact.find(name, &mut named);
        };
        name(tool.name);
        if let Some(namespace) = tool.namespace {
            name(&format!("{namespace}.{}", tool.name));
        }
        let certain = tool.kinds.len() == 1;
        let kinds = tool.kinds.iter().filter_map(|kind| self.kinds.get(place(*kind))).flatten();
        let mut found: Vec<(usize, bool)> = named.into_iter().map(|number| (number, true)).collect();
        found.extend(kinds.map(|number| (*number, certain)));
        // A rule that is met by name and by kind is met for certain.
        found.sort_unstable_by_key(|(number, certain)| (*number, !certain));
        found.dedup_by_key(|(number, _)| *number);
        let met = found
            .into_iter()
            .filter_map(|(number, certain)| Some(Met { rule: self.rules.get(number)?, certain }));
        met.collect()
    }
}

/// Those of `met` that a sight shows and that do this.
pub(super) fn visible<'a>(
    met: &'a [Met<'a>],
    sight: Sight,
    action: Action,
) -> impl Iterator<Item = &'a Met<'a>> + Clone {
    met.iter().filter(move |met| met.rule.action == action && (sight == Sight::All || !met.rule.audit))
}

fn place(kind: Kind) -> usize {
    match kind {
        Kind::Shell => 0,
        Kind::Read => 1,
        Kind::Write => 2,
        Kind::Fetch => 3,
    }
}
