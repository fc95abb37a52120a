//! Tables, chains and rules as the kernel lists them.

use std::collections::BTreeSet;

use super::attribute::Attributes;
use super::expression::NftExpression;

/// One object that the kernel lists: a table, a chain, a rule or a set's elements.
#[derive(Debug)]
pub(super) struct ListedObject {
    /// NFPROTO of its table.
    pub(super) family: u8,
    pub(super) attributes: Vec<u8>,
}

/// Every table of the namespace with its chains and rules.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Ruleset {
    pub(super) tables: Vec<KernelTable>,
    pub(super) chains: Vec<KernelChain>,
    pub(super) rules: Vec<KernelRule>,
}

/// A table's name, which is unique in its family.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TableName {
    /// NFPROTO.
    pub(super) family: u8,
    pub(super) name: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct KernelTable {
    pub(super) name: TableName,
    /// Whether the kernel skips its chains.
    pub(super) dormant: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct KernelChain {
    pub(super) table: TableName,
    pub(super) name: String,
    /// Where the kernel calls it; none for a chain that is only jumped to.
    pub(super) base: Option<Base>,
}

/// How the kernel calls a chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Base {
    pub(super) kind: String,
    pub(super) hook: u32,
    pub(super) priority: i32,
    /// Whether the policy is to accept.
    pub(super) accepts: bool,
}

/// A rule; rules of one chain come in their order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct KernelRule {
    pub(super) table: TableName,
    pub(super) chain: String,
    pub(super) steps: Vec<NftExpression>,
}

/// Reads a table.
pub(super) fn table(answer: &ListedObject) -> Option<KernelTable> {
    /// NFT_TABLE_F_DORMANT.
    const DORMANT: u32 = 1;
    let attributes = Attributes::new(&answer.attributes);
    // NFTA_TABLE_FLAGS.
    let dormant = attributes.number(2).unwrap_or(0) & DORMANT != 0;
    Some(KernelTable { name: name(answer)?, dormant })
}

/// Reads a chain.
pub(super) fn chain(answer: &ListedObject) -> Option<KernelChain> {
    /// NF_ACCEPT.
    const ACCEPT: u32 = 1;
    let attributes = Attributes::new(&answer.attributes);
    // NFTA_CHAIN_NAME 3, _HOOK 4, _POLICY 5 and _TYPE 7; NFTA_HOOK_HOOKNUM 1 and _PRIORITY 2. Only base chains have a hook.
    let base = attributes.nest(4).and_then(|hook| {
        Some(Base {
            kind: attributes.text(7)?.to_owned(),
            hook: hook.number(1)?,
            priority: hook.number(2)?.cast_signed(),
            accepts: attributes.number(5) == Some(ACCEPT),
        })
    });
    Some(KernelChain { table: name(answer)?, name: attributes.text(3)?.to_owned(), base })
}

/// Reads a rule.
pub(super) fn rule(answer: &ListedObject) -> Option<KernelRule> {
    let attributes = Attributes::new(&answer.attributes);
    // NFTA_RULE_CHAIN 2 and _EXPRESSIONS 4.
    let list = attributes.nest(4).into_iter().flatten();
    let steps = list.map(|(_, element)| NftExpression::read(Attributes::new(element))).collect();
    Some(KernelRule { table: name(answer)?, chain: attributes.text(2)?.to_owned(), steps })
}

/// Reads the elements of a set.
pub(super) fn elements(answer: &ListedObject) -> BTreeSet<Vec<u8>> {
    // NFTA_SET_ELEM_LIST_ELEMENTS, NFTA_SET_ELEM_KEY, NFTA_DATA_VALUE.
    let list = Attributes::new(&answer.attributes).nest(3);
    let key = |(_, element)| Attributes::new(element).nest(1)?.bytes(1).map(<[u8]>::to_vec);
    list.into_iter().flatten().filter_map(key).collect()
}

/// The table of an object: the first attribute of tables, chains and rules alike.
fn name(answer: &ListedObject) -> Option<TableName> {
    let name = Attributes::new(&answer.attributes).text(1)?.to_owned();
    Some(TableName { family: answer.family, name })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::redirect::netlink::attribute::AttributeWriter;

    fn answer(fill: impl FnOnce(&mut AttributeWriter)) -> ListedObject {
        let mut attributes = AttributeWriter::default();
        fill(&mut attributes);
        ListedObject { family: 1, attributes: attributes.as_bytes().to_vec() }
    }

    #[test]
    fn a_table_says_whether_it_is_dormant() {
        let dormant = |flags| {
            let told = answer(|attributes| _ = attributes.text(1, "postern").number(2, flags));
            table(&told).unwrap().dormant
        };
        assert_eq!([0, 1, 2, 3].map(dormant), [false, true, false, true]);
    }

    #[test]
    fn a_chain_with_a_hook_is_a_base_chain() {
        let told = answer(|attributes| {
            attributes.text(1, "postern").text(3, "nat_output").number(5, 1).text(7, "nat");
            attributes.nest(4, |hook| _ = hook.number(1, 3).number(2, (-100i32).cast_unsigned()));
        });
        let base = Base { kind: "nat".to_owned(), hook: 3, priority: -100, accepts: true };
        assert_eq!(chain(&told).unwrap().base, Some(base));
        let plain = answer(|attributes| _ = attributes.text(1, "postern").text(3, "x"));
        assert_eq!(chain(&plain).unwrap().base, None);
    }

    #[test]
    fn a_set_tells_its_elements() {
        let told = answer(|attributes| {
            attributes.nest(3, |list| {
                for port in [53u16, 80] {
                    list.nest(1, |element| {
                        element.nest(1, |key| _ = key.bytes(1, &port.to_be_bytes()));
                    });
                }
            });
        });
        assert_eq!(elements(&told), [vec![0, 53], vec![0, 80]].into());
    }
}
