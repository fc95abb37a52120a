//! Has the kernel list the rules that are in force.

use std::collections::BTreeSet;
use std::io;

use super::expression::{NftExpression, Set};
use super::message::{NftOperation, dump};
use super::ruleset::{self, KernelRule, Ruleset, TableName};
use super::socket;

/// Reads every table, chain and rule, and for tables of this name the elements of their sets.
///
/// # Errors
/// The kernel refuses to list it.
pub(super) fn read(own: &str) -> io::Result<Ruleset> {
    let list = |operation| socket::list(&dump(operation, 0, |_| ()));
    let tables = list(NftOperation::ListTables)?.iter().filter_map(ruleset::table).collect();
    let chains = list(NftOperation::ListChains)?.iter().filter_map(ruleset::chain).collect();
    let mut rules: Vec<KernelRule> =
        list(NftOperation::ListRules)?.iter().filter_map(ruleset::rule).collect();
    for rule in rules.iter_mut().filter(|rule| rule.table.name == own) {
        let table = rule.table.clone();
        for step in &mut rule.steps {
            if let NftExpression::Lookup(Set::Named(name)) = step {
                *step = NftExpression::Lookup(Set::Elements(elements(&table, name)?));
            }
        }
    }
    Ok(Ruleset { tables, chains, rules })
}

fn elements(table: &TableName, set: &str) -> io::Result<BTreeSet<Vec<u8>>> {
    let request = dump(NftOperation::ListElements, table.family, |attributes| {
        attributes.text(1, &table.name).text(2, set);
    });
    Ok(socket::list(&request)?.iter().flat_map(ruleset::elements).collect())
}
