//! Compares the rules in force with a plan, and names what differs.

use std::collections::BTreeSet;

use super::compile;
use super::expression::NftExpression;
use super::message::hook_number;
use super::ruleset::{self, Ruleset, TableName};
use crate::redirect::chains::TABLE;
use crate::redirect::nft;
use crate::redirect::plan::RedirectPlan;
use crate::redirect::rule::{PlannedChain, TableFamily};

/// Every difference between our tables and a plan, a sentence each; none where they match it.
pub(super) fn differences(plan: &RedirectPlan, found: &Ruleset) -> Vec<String> {
    let chains = plan.chains();
    let mut differences = Vec::new();
    for family in TableFamily::ALL {
        let expected: Vec<&PlannedChain> = chains.iter().filter(|chain| chain.table == family).collect();
        differences.extend(table(family, &expected, found));
    }
    differences
}

/// Whether one of our tables exists.
pub(super) fn is_programmed(found: &Ruleset) -> bool {
    TableFamily::ALL.into_iter().any(|family| found.tables.iter().any(|table| table.name == name(family)))
}

/// Whether our tables are those of a kernel that cannot redirect IPv6.
pub(super) fn is_without_ipv6(found: &Ruleset) -> bool {
    found.tables.iter().any(|table| table.name == name(TableFamily::Ip))
}

fn table(family: TableFamily, expected: &[&PlannedChain], found: &Ruleset) -> Vec<String> {
    let shown = format!("table {} {TABLE}", family.word());
    let name = name(family);
    let Some(table) = found.tables.iter().find(|table| table.name == name) else {
        return if expected.is_empty() { Vec::new() } else { vec![format!("{shown} is missing")] };
    };
    if expected.is_empty() {
        return vec![format!("{shown} is not of the plan")];
    }
    let mut differences = Vec::new();
    if table.dormant {
        differences.push(format!("{shown} is dormant: the kernel asks none of its chains"));
    }
    let here: Vec<_> = found.chains.iter().filter(|chain| chain.table == name).collect();
    for chain in &here {
        if !expected.iter().any(|planned| planned.name == chain.name) {
            differences.push(format!("chain {} of {shown} is not of the plan", chain.name));
        }
    }
    for chain in expected {
        match here.iter().find(|actual| actual.name == chain.name) {
            None => differences.push(format!("chain {} of {shown} is missing", chain.name)),
            Some(actual) => {
                differences.extend(base(chain, actual));
                let rules = found.rules.iter().filter(|rule| rule.table == name && rule.chain == chain.name);
                differences.extend(rules_of(chain, &rules.map(|rule| &rule.steps).collect::<Vec<_>>()));
            }
        }
    }
    differences
}

/// Says so if the kernel calls a chain elsewhere than planned.
fn base(expected: &PlannedChain, found: &ruleset::KernelChain) -> Option<String> {
    let PlannedChain { name, kind, hook, priority, .. } = expected;
    let as_planned = ruleset::Base {
        kind: kind.word().to_owned(),
        hook: hook_number(*hook),
        priority: *priority,
        accepts: true,
    };
    (found.base.as_ref() != Some(&as_planned)).then(|| {
        let (kind, hook) = (kind.word(), hook.word());
        format!(
            "chain {name} is not a {kind} chain at hook {hook} with priority {priority} and policy accept"
        )
    })
}

/// Names the rules that are missing or not of the plan; where there are none, a change of their order.
fn rules_of(chain: &PlannedChain, found: &[&Vec<NftExpression>]) -> Vec<String> {
    let expected: Vec<_> = chain.rules.iter().map(|rule| compile::expressions(rule, chain.table)).collect();
    // Indexes of actual rules that match a planned one: equal rules are paired one by one.
    let mut paired = BTreeSet::new();
    let mut differences = Vec::new();
    let mut in_order = true;
    for (at, steps) in expected.iter().enumerate() {
        let unpaired = |index: &usize| !paired.contains(index) && found.get(*index) == Some(&steps);
        match (0..found.len()).find(unpaired) {
            Some(index) => {
                in_order &= paired.last().is_none_or(|last| *last < index);
                paired.insert(index);
            }
            None => {
                let text = chain.rules.get(at).map(nft::rule).unwrap_or_default();
                differences.push(format!("rule {} of chain {} is missing: {text}", at + 1, chain.name));
            }
        }
    }
    let foreign = (0..found.len()).filter(|index| !paired.contains(index));
    differences.extend(
        foreign.map(|index| format!("rule {} in chain {} is not of the plan", index + 1, chain.name)),
    );
    if differences.is_empty() && !in_order {
        differences.push(format!("the rules of chain {} stand in another order", chain.name));
    }
    differences
}

fn name(family: TableFamily) -> TableName {
    TableName { family: family.number(), name: TABLE.to_owned() }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::redirect::netlink::ruleset::{Base, KernelRule, KernelTable};
    use crate::redirect::plan::{GatewayPorts, Ipv6};

    fn plan() -> RedirectPlan {
        RedirectPlan::new(61_234, GatewayPorts::default(), &[8080]).unwrap()
    }

    /// What the kernel lists where a plan is in force.
    pub(in super::super) fn in_force(plan: &RedirectPlan) -> Ruleset {
        let mut ruleset = Ruleset::default();
        for chain in plan.chains() {
            let table = name(chain.table);
            if !ruleset.tables.iter().any(|one| one.name == table) {
                ruleset.tables.push(KernelTable { name: table.clone(), dormant: false });
            }
            let base = Base {
                kind: chain.kind.word().to_owned(),
                hook: hook_number(chain.hook),
                priority: chain.priority,
                accepts: true,
            };
            let found =
                ruleset::KernelChain { table: table.clone(), name: chain.name.to_owned(), base: Some(base) };
            ruleset.chains.push(found);
            ruleset.rules.extend(chain.rules.iter().map(|rule| KernelRule {
                table: table.clone(),
                chain: chain.name.to_owned(),
                steps: compile::expressions(rule, chain.table),
            }));
        }
        ruleset
    }

    fn said(change: impl FnOnce(&mut Ruleset)) -> Vec<String> {
        let mut found = in_force(&plan());
        change(&mut found);
        differences(&plan(), &found)
    }

    #[test]
    fn a_plan_in_force_differs_in_nothing() {
        assert_eq!(said(|_| ()), Vec::<String>::new());
        let rejected = plan().with_ipv6(Ipv6::Rejected);
        assert_eq!(differences(&rejected, &in_force(&rejected)), Vec::<String>::new());
    }

    #[test]
    fn a_missing_rule_is_named_with_its_text() {
        let said = said(|found| {
            let last = found.rules.iter().rposition(|rule| rule.chain == "filter_output").unwrap();
            found.rules.remove(last);
        });
        assert_eq!(
            said,
            ["rule 17 of chain filter_output is missing: counter reject with icmpx port-unreachable"]
        );
    }

    #[test]
    fn a_rule_of_somebody_else_is_named_by_its_place() {
        let said = said(|found| {
            let steps = vec![NftExpression::Other("log".to_owned())];
            let rule = KernelRule { steps, ..found.rules[0].clone() };
            found.rules.insert(0, rule);
        });
        assert_eq!(said, ["rule 1 in chain raw_output is not of the plan"]);
    }

    #[test]
    fn another_order_is_seen() {
        let said = said(|found| found.rules.swap(4, 6));
        assert_eq!(said, ["the rules of chain nat_output stand in another order"]);
    }

    #[test]
    fn a_chain_that_is_missing_additional_or_called_elsewhere_is_named() {
        let said = said(|found| {
            found.chains[1].base.as_mut().unwrap().priority = -99;
            found.chains[2].name = "other".to_owned();
        });
        assert_eq!(
            said,
            [
                "chain other of table inet postern is not of the plan",
                "chain nat_output is not a nat chain at hook output with priority -100 and policy accept",
                "chain filter_output of table inet postern is missing",
            ]
        );
    }

    #[test]
    fn a_dormant_missing_or_additional_table_is_named() {
        assert_eq!(said(|found| found.tables.clear()), ["table inet postern is missing"]);
        let dormant = said(|found| found.tables[0].dormant = true);
        assert_eq!(dormant, ["table inet postern is dormant: the kernel asks none of its chains"]);
        let additional =
            said(|found| found.tables.push(KernelTable { name: name(TableFamily::Ip), dormant: false }));
        assert_eq!(additional, ["table ip postern is not of the plan"]);
    }
}
