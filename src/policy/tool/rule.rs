//! One tool rule, compiled, and the index over them.

use crate::call::name::Called;
use crate::call::{Kind, KindsBy, Tool};
use crate::decision::{Decision, Enforcement, RuleId, Verdict};
use crate::policy::condition::Condition;

use crate::policy::destination::Sight;
use crate::policy::document::tool::Action;

use super::names::{Name, Names, Pattern};
use crate::policy::rule::Tier;

/// A rule with everything a decision needs.
#[derive(Debug)]
pub(in crate::policy) struct Rule {
    pub(in crate::policy) id: RuleId,
    pub(in crate::policy) tier: Tier,
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
    pub(super) fn ruling(&self) -> Decision {
        let (verdict, default) = match self.action {
            Action::Deny => (Verdict::Deny, "A rule denies this tool call"),
            Action::Audit => (Verdict::Audit, "A rule records this tool call"),
            Action::Allow => (Verdict::Allow, ""),
        };
        let own = self.action != Action::Allow && !self.reason.is_empty();
        let reason = if own { self.reason.as_str() } else { default };
        Decision::by(self.id.clone(), verdict, reason.to_owned()).under(Enforcement::of(self.audit))
    }
}

/// All rules about tool calls, and how to find those about one tool.
#[derive(Debug, Default)]
pub(in crate::policy) struct Rules {
    rules: Vec<Rule>,
    /// By wildcards over folded names: rules that deny or record.
    folded: Names,
    /// By the spellings of names: the same rules.
    spelled: Names,
    /// By names as they are written: rules that allow.
    exact: Names,
    /// In the order of [`Kind`].
    kinds: [Vec<usize>; 4],
}

/// A rule that is about a tool.
#[derive(Debug, Clone, Copy)]
pub(super) struct Met<'a> {
    pub(super) rule: &'a Rule,
    /// Whether it is about every call of the tool: by its name, by its only kind, or by one that it is for certain.
    pub(super) certain: bool,
    /// By a kind that is inferred alone. An Allow rule that names the tool takes it out of those.
    pub(super) inferred: bool,
    /// Whether it is an Allow rule that takes a tool out of inferred kinds: it has the tool's whole name, and no
    /// condition.
    exempts: bool,
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
        let names = |allowing: bool| {
            let numbered =
                rules.iter().enumerate().filter(move |(_, rule)| (rule.action == Action::Allow) == allowing);
            numbered.flat_map(|(number, rule)| rule.names.iter().map(move |name| (name, number)))
        };
        // An exact name is found by its spellings.
        let wildcards = names(false).filter(|(name, _)| matches!(name.pattern(), Pattern::Wildcard(_)));
        let folded = Names::new(wildcards.map(|(name, number)| (name.pattern().clone(), number)));
        let spelled =
            names(false).flat_map(|(name, number)| name.spellings().iter().map(move |one| (one, number)));
        let spelled = Names::new(spelled.map(|(pattern, number)| (pattern.clone(), number)));
        let exact = Names::new(names(true).map(|(name, number)| (name.pattern().clone(), number)));
        let mut kinds = [const { Vec::new() }; 4];
        for (number, rule) in rules.iter().enumerate() {
            if let Some(all) = rule.kind.and_then(|kind| kinds.get_mut(place(kind))) {
                all.push(number);
            }
        }
        Self { rules, folded, spelled, exact, kinds }
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
        let called = Called::of(tool);
        let mut named = Vec::new();
        called.folded.iter().for_each(|name| self.folded.find(name, &mut named));
        called.spellings.iter().for_each(|name| self.spelled.find(name, &mut named));
        self.exact.find(&called.exact, &mut named);
        let kinds = tool.kinds.iter().filter_map(|kind| self.kinds.get(place(*kind))).flatten();
        let mut found: Vec<(usize, By)> = named.into_iter().map(|number| (number, By::Name)).collect();
        found.extend(kinds.map(|number| (*number, By::Kind)));
        // A rule that is met by name and by kind is met by its name.
        found.sort_unstable();
        found.dedup_by_key(|(number, _)| *number);
        let met = found.into_iter().filter_map(|(number, by)| {
            let rule = self.rules.get(number)?;
            // Only the catalogue's whole names make a kind that may be relied on.
            let serves = by == By::Name || rule.action != Action::Allow || tool.by == KindsBy::Catalogue;
            serves.then(|| met(rule, by, tool, &called))
        });
        met.collect()
    }
}

/// By what a rule is about a tool; the earlier counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum By {
    Name,
    Kind,
}

fn met<'a>(rule: &'a Rule, by: By, tool: &Tool<'_>, called: &Called) -> Met<'a> {
    let inferred = tool.is_inferred();
    let exempts = inferred
        && rule.action == Action::Allow
        && rule.condition.is_none()
        && rule.names.iter().any(|name| name.is(&called.exact));
    Met { rule, certain: by == By::Name || tool.is_certain(), inferred: by == By::Kind && inferred, exempts }
}

/// Those of `met` that a sight shows and that do this, but for those that are met by an inferred kind out of which the
/// tool is taken.
pub(super) fn visible<'a>(
    met: &'a [Met<'a>],
    sight: Sight,
    action: Action,
) -> impl Iterator<Item = &'a Met<'a>> + Clone {
    shown(met, sight).filter(move |one| {
        one.rule.action == action && !(one.inferred && is_exempt(met, sight, one.rule.tier))
    })
}

/// Whether an Allow rule of this tier, or a higher one, takes the tool out of its inferred kinds.
pub(super) fn is_exempt(met: &[Met<'_>], sight: Sight, tier: Tier) -> bool {
    shown(met, sight).any(|one| one.exempts && one.rule.tier <= tier)
}

fn shown<'a>(met: &'a [Met<'a>], sight: Sight) -> impl Iterator<Item = &'a Met<'a>> + Clone {
    met.iter().filter(move |met| sight == Sight::All || !met.rule.audit)
}

fn place(kind: Kind) -> usize {
    match kind {
        Kind::Shell => 0,
        Kind::Read => 1,
        Kind::Write => 2,
        Kind::Fetch => 3,
    }
}
