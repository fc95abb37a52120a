//! Has the kernel list the rules that are in force.

use std::collections::BTreeSet;
use std::io;

use super::expression::{Expression, Set};
use super::message::{Operation, dump};
use super::ruleset::{self, Rule, Ruleset, TableName};
use super::socket;

/// Reads everything; of the tables of this name also what is in their sets.
///
/// # Errors
/// The kernel refuses to list it.
pub(super) fn read(own: &str) -> io::Result<Ruleset> {
    let all = |operation| socket::list(&dump(operation, 0, |_| ()));
    let tables = all(Operation::ListTables)?.iter().filter_map(ruleset::table).collect();
    let chains = all(Operation::ListChains)?.iter().filter_map(ruleset::chain).collect();
    let mut rules: Vec<Rule> = all(Operation::ListRules)?.iter().filter_map(ruleset::rule).collect();
    for rule in rules.iter_mut().filter(|rule| rule.table.name == own) {
        let table = rule.table.clone();
        for step in &mut rule.steps {
            if let Expression::Lookup(Set::Named(name)) = step {
                *step = Expression::Lookup(Set::Elements(elements(&table, name)?));
            }
        }
    }
    Ok(Ruleset { tables, chains, rules })
}

fn elements(table: &TableName, set: &str) -> io::Result<BTreeSet<Vec<u8>>> {
    let request = dump(Operation::ListElements, table.family, |attributes| {
        attributes.text(1, &table.name).text(2, set);
    });
    Ok(socket::list(&request)?.iter().flat_map(ruleset::elements).collect())
}
