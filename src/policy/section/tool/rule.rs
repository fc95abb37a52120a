//! One tool rule, compiled, and the index over them.

use crate::call::name::Called;
use crate::call::{Kind, KindsBy, Tool};
use crate::decision::{Decision, Enforcement, RuleId, Verdict};
use crate::policy::condition::Condition;
use crate::policy::scope::{PolicyScope, Tier};

use super::names::{NameIndex, NamePattern, ToolName};
use super::written::ToolAction;

/// A rule with everything a decision needs.
#[derive(Debug)]
pub(in crate::policy) struct CallRule {
    pub(in crate::policy) id: RuleId,
    pub(in crate::policy) tier: Tier,
    /// Whether its policy only records.
    pub(in crate::policy) audit: bool,
    pub(in crate::policy) kind: Option<Kind>,
    pub(in crate::policy) names: Vec<ToolName>,
    pub(in crate::policy) action: ToolAction,
    pub(in crate::policy) condition: Option<Condition>,
    /// Empty where nothing is written.
    pub(in crate::policy) reason: String,
}

impl CallRule {
    /// The rule's decision where it holds.
    pub(super) fn ruling(&self) -> Decision {
        let (verdict, default) = match self.action {
            ToolAction::Deny => (Verdict::Deny, "A rule denies this tool call"),
            ToolAction::Audit => (Verdict::Audit, "A rule records this tool call"),
            ToolAction::Allow => (Verdict::Allow, ""),
        };
        let has_reason = self.action != ToolAction::Allow && !self.reason.is_empty();
        let reason = if has_reason { self.reason.as_str() } else { default };
        Decision::by(self.id.clone(), verdict, reason.to_owned()).under(Enforcement::of(self.audit))
    }
}

/// All rules about tool calls, and how to find those about one tool.
#[derive(Debug, Default)]
pub(in crate::policy) struct Tools {
    rules: Vec<CallRule>,
    /// By wildcards over folded names: rules that deny or record.
    folded: NameIndex,
    /// By the spellings of names: the same rules.
    spelled: NameIndex,
    /// By names as they are written: rules that allow.
    exact: NameIndex,
    /// In the order of [`Kind`].
    kinds: [Vec<usize>; 4],
}

/// A rule that is about a tool.
#[derive(Debug, Clone, Copy)]
pub(super) struct MatchedRule<'a> {
    pub(super) rule: &'a CallRule,
    /// Whether the rule is about every call of the tool: by the tool's name, its only kind, or a certain kind.
    pub(super) certain: bool,
    /// By a kind that is inferred alone. An Allow rule that names the tool takes it out of those.
    pub(super) inferred: bool,
    /// Whether it is an Allow rule that takes a tool out of inferred kinds: it has the tool's whole name, and no
    /// condition.
    exempts: bool,
}

impl MatchedRule<'_> {
    /// Whether the rule holds whatever the input is.
    pub(super) fn is_unconditional(&self) -> bool {
        self.certain && self.rule.condition.is_none()
    }
}

impl Tools {
    /// The rules in the order of their policies.
    pub(in crate::policy) fn new(rules: Vec<CallRule>) -> Self {
        let names = |allowing: bool| {
            let numbered = rules
                .iter()
                .enumerate()
                .filter(move |(_, rule)| (rule.action == ToolAction::Allow) == allowing);
            numbered.flat_map(|(number, rule)| rule.names.iter().map(move |name| (name, number)))
        };
        // An exact name is found by its spellings.
        let wildcards = names(false).filter(|(name, _)| matches!(name.pattern(), NamePattern::Wildcard(_)));
        let folded = NameIndex::new(wildcards.map(|(name, number)| (name.pattern().clone(), number)));
        let spelled =
            names(false).flat_map(|(name, number)| name.spellings().iter().map(move |one| (one, number)));
        let spelled = NameIndex::new(spelled.map(|(pattern, number)| (pattern.clone(), number)));
        let exact = NameIndex::new(names(true).map(|(name, number)| (name.pattern().clone(), number)));
        let mut kinds = [const { Vec::new() }; 4];
        for (number, rule) in rules.iter().enumerate() {
            if let Some(all) = rule.kind.and_then(|kind| kinds.get_mut(place(kind))) {
                all.push(number);
            }
        }
        Self { rules, folded, spelled, exact, kinds }
    }

    /// Every rule, in the order of the policies.
    pub(in crate::policy) fn all(&self) -> &[CallRule] {
        &self.rules
    }

    /// Whether an Enforce policy has a rule that denies.
    pub(super) fn deny(&self) -> bool {
        self.rules.iter().any(|rule| rule.action == ToolAction::Deny && !rule.audit)
    }

    /// The rules about a tool, in their order.
    pub(super) fn meet(&self, tool: &Tool<'_>) -> Vec<MatchedRule<'_>> {
        let called = Called::of(tool);
        let mut named = Vec::new();
        called.folded.iter().for_each(|name| self.folded.find(name, &mut named));
        called.spellings.iter().for_each(|name| self.spelled.find(name, &mut named));
        self.exact.find(&called.exact, &mut named);
        let kinds = tool.kinds.iter().filter_map(|kind| self.kinds.get(place(*kind))).flatten();
        let mut matches: Vec<(usize, MatchedBy)> =
            named.into_iter().map(|number| (number, MatchedBy::Name)).collect();
        matches.extend(kinds.map(|number| (*number, MatchedBy::Kind)));
        // A rule that is met by name and by kind is met by its name.
        matches.sort_unstable();
        matches.dedup_by_key(|(number, _)| *number);
        let met = matches.into_iter().filter_map(|(number, by)| {
            let rule = self.rules.get(number)?;
            // Only the catalogue's whole names make a kind that may be relied on.
            let serves =
                by == MatchedBy::Name || rule.action != ToolAction::Allow || tool.by == KindsBy::Catalogue;
            serves.then(|| met(rule, by, tool, &called))
        });
        met.collect()
    }
}

/// By what a rule is about a tool; the earlier counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum MatchedBy {
    Name,
    Kind,
}

fn met<'a>(rule: &'a CallRule, by: MatchedBy, tool: &Tool<'_>, called: &Called) -> MatchedRule<'a> {
    let inferred = tool.is_inferred();
    let exempts = inferred
        && rule.action == ToolAction::Allow
        && rule.condition.is_none()
        && rule.names.iter().any(|name| name.is(&called.exact));
    MatchedRule {
        rule,
        certain: by == MatchedBy::Name || tool.is_certain(),
        inferred: by == MatchedBy::Kind && inferred,
        exempts,
    }
}

/// The rules of a scope in `met` with this action, without those met by an inferred kind that an Allow rule takes the
/// tool out of.
pub(super) fn visible<'a>(
    met: &'a [MatchedRule<'a>],
    scope: PolicyScope,
    action: ToolAction,
) -> impl Iterator<Item = &'a MatchedRule<'a>> + Clone {
    shown(met, scope).filter(move |one| {
        one.rule.action == action && !(one.inferred && is_exempt(met, scope, one.rule.tier))
    })
}

/// Whether an Allow rule of this tier, or a higher one, takes the tool out of its inferred kinds.
pub(super) fn is_exempt(met: &[MatchedRule<'_>], scope: PolicyScope, tier: Tier) -> bool {
    shown(met, scope).any(|one| one.exempts && one.rule.tier <= tier)
}

fn shown<'a>(
    met: &'a [MatchedRule<'a>],
    scope: PolicyScope,
) -> impl Iterator<Item = &'a MatchedRule<'a>> + Clone {
    met.iter().filter(move |met| scope.shows(met.rule.audit))
}

fn place(kind: Kind) -> usize {
    match kind {
        Kind::Shell => 0,
        Kind::Read => 1,
        Kind::Write => 2,
        Kind::Fetch => 3,
    }
}
