//! Compares the rules in force with a plan, and names what differs.

use std::collections::BTreeSet;

use super::compile;
use super::expression::Expression;
use super::message::hook_number;
use super::ruleset::{self, Ruleset, TableName};
use crate::redirect::chains::TABLE;
use crate::redirect::nft;
use crate::redirect::plan::Plan;
use crate::redirect::rule::{Chain, TableFamily};

/// Everything in which our tables differ from a plan, in a sentence each; nothing where they are the plan.
pub(super) fn differences(plan: &Plan, found: &Ruleset) -> Vec<String> {
    let chains = plan.chains();
    let mut said = Vec::new();
    for family in TableFamily::ALL {
        let expected: Vec<&Chain> = chains.iter().filter(|chain| chain.table == family).collect();
        said.extend(table(family, &expected, found));
    }
    said
}

/// Whether a table of ours is there.
pub(super) fn is_programmed(found: &Ruleset) -> bool {
    TableFamily::ALL.into_iter().any(|family| found.tables.iter().any(|table| table.name == name(family)))
}

/// Whether our tables are those of a kernel that cannot redirect IPv6.
pub(super) fn is_without_ipv6(found: &Ruleset) -> bool {
    found.tables.iter().any(|table| table.name == name(TableFamily::Ip))
}

fn table(family: TableFamily, expected: &[&Chain], found: &Ruleset) -> Vec<String> {
    let shown = format!("table {} {TABLE}", family.word());
    let name = name(family);
    let Some(table) = found.tables.iter().find(|table| table.name == name) else {
        return if expected.is_empty() { Vec::new() } else { vec![format!("{shown} is missing")] };
    };
    if expected.is_empty() {
        return vec![format!("{shown} is not of the plan")];
    }
    let mut said = Vec::new();
    if table.dormant {
        said.push(format!("{shown} is dormant: the kernel asks none of its chains"));
    }
    let here: Vec<_> = found.chains.iter().filter(|chain| chain.table == name).collect();
    for chain in &here {
        if !expected.iter().any(|one| one.name == chain.name) {
            said.push(format!("chain {} of {shown} is not of the plan", chain.name));
        }
    }
    for chain in expected {
        match here.iter().find(|one| one.name == chain.name) {
            None => said.push(format!("chain {} of {shown} is missing", chain.name)),
            Some(one) => {
                said.extend(base(chain, one));
                let rules = found.rules.iter().filter(|rule| rule.table == name && rule.chain == chain.name);
                said.extend(rules_of(chain, &rules.map(|rule| &rule.steps).collect::<Vec<_>>()));
            }
        }
    }
    said
}

/// How a chain is called otherwise than planned.
fn base(expected: &Chain, found: &ruleset::Chain) -> Option<String> {
    let Chain { name, kind, hook, priority, .. } = expected;
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

/// Which rules are missing or not of the plan; where none is, whether they stand in another order.
fn rules_of(chain: &Chain, found: &[&Vec<Expression>]) -> Vec<String> {
    let expected: Vec<_> = chain.rules.iter().map(|rule| compile::expressions(rule, chain.table)).collect();
    let mut paired = BTreeSet::new();
    let mut said = Vec::new();
    let mut in_order = true;
    for (at, steps) in expected.iter().enumerate() {
        let unpaired = |one: &usize| !paired.contains(one) && found.get(*one) == Some(&steps);
        match (0..found.len()).find(unpaired) {
            Some(one) => {
                in_order &= paired.last().is_none_or(|last| *last < one);
                paired.insert(one);
            }
            None => {
                let text = chain.rules.get(at).map(nft::rule).unwrap_or_default();
                said.push(format!("rule {} of chain {} is missing: {text}", at + 1, chain.name));
            }
        }
    }
    let foreign = (0..found.len()).filter(|one| !paired.contains(one));
    said.extend(foreign.map(|one| format!("rule {} in chain {} is not of the plan", one + 1, chain.name)));
    if said.is_empty() && !in_order {
        said.push(format!("the rules of chain {} stand in another order", chain.name));
    }
    said
}

fn name(family: TableFamily) -> TableName {
    TableName { family: family.number(), name: TABLE.to_owned() }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::redirect::netlink::ruleset::{Base, Rule, Table};
    use crate::redirect::plan::{Ipv6, Ports};

    fn plan() -> Plan {
        Plan::new(61_234, Ports::default(), &[8080]).unwrap()
    }

    /// What the kernel lists where a plan is in force.
    pub(in super::super) fn in_force(plan: &Plan) -> Ruleset {
        let mut ruleset = Ruleset::default();
        for chain in plan.chains() {
            let table = name(chain.table);
            if !ruleset.tables.iter().any(|one| one.name == table) {
                ruleset.tables.push(Table { name: table.clone(), dormant: false });
            }
            let base = Base {
                kind: chain.kind.word().to_owned(),
                hook: hook_number(chain.hook),
                priority: chain.priority,
                accepts: true,
            };
            let found =
                ruleset::Chain { table: table.clone(), name: chain.name.to_owned(), base: Some(base) };
            ruleset.chains.push(found);
            ruleset.rules.extend(chain.rules.iter().map(|rule| Rule {
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
            let steps = vec![Expression::Other("log".to_owned())];
            let rule = Rule { steps, ..found.rules[0].clone() };
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
            said(|found| found.tables.push(Table { name: name(TableFamily::Ip), dormant: false }));
        assert_eq!(additional, ["table ip postern is not of the plan"]);
    }
}
