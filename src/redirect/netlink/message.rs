//! Messages of nf_tables: one batch that replaces our tables, and the requests that read rules back.
//!
//! Numbers and names are those of `linux/netlink.h`, `linux/netfilter/nfnetlink.h` and `nf_tables.h`.

use std::collections::BTreeSet;

use super::attribute::AttributeWriter;
use super::compile;
use super::expression::{ANONYMOUS, NftExpression, Set};
use crate::redirect::chains::TABLE;
use crate::redirect::plan::RedirectPlan;
use crate::redirect::rule::{Hook, PlannedChain, PlannedRule, TableFamily};

/// `struct nlmsghdr` and `struct nfgenmsg`.
pub(super) const HEADER: usize = 16;
pub(super) const FAMILY_HEADER: usize = 4;

/// NLM_F_REQUEST, NLM_F_ACK, NLM_F_DUMP, NLM_F_CREATE, NLM_F_APPEND.
const REQUEST: u16 = 0x1;
const ACKNOWLEDGE: u16 = 0x4;
const DUMP: u16 = 0x300;
const CREATE: u16 = 0x400;
const APPEND: u16 = 0x800;

/// NFNL_SUBSYS_NFTABLES, NFNL_MSG_BATCH_BEGIN and _END.
const SUBSYSTEM: u16 = 10;
const BATCH_BEGIN: u16 = 0x10;
const BATCH_END: u16 = 0x11;

/// A request to nf_tables (`enum nf_tables_msg_types`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NftOperation {
    NewTable = 0,
    ListTables = 1,
    DeleteTable = 2,
    NewChain = 3,
    ListChains = 4,
    NewRule = 6,
    ListRules = 7,
    NewSet = 9,
    NewElements = 12,
    ListElements = 13,
}

/// Messages that the kernel carries out together or not at all.
#[derive(Debug, Default)]
pub(super) struct Batch {
    bytes: Vec<u8>,
    /// A name for each message, by its number: the error of a refused one says it.
    labels: Vec<String>,
    /// Where in the bytes the last message begins.
    last_at: usize,
    sets: u32,
}

impl Batch {
    /// Replaces our tables by a plan.
    pub(super) fn program(plan: &RedirectPlan) -> Self {
        let mut batch = Self::removal();
        let chains = plan.chains();
        for family in TableFamily::ALL {
            let here: Vec<&PlannedChain> = chains.iter().filter(|chain| chain.table == family).collect();
            if !here.is_empty() {
                batch.new_table(family);
            }
            here.iter().for_each(|chain| batch.new_chain(chain));
        }
        chains.iter().for_each(|chain| batch.rules(chain));
        batch.end()
    }

    /// Removes our tables, if they exist.
    pub(super) fn remove() -> Self {
        Self::removal().end()
    }

    /// The whole batch, which is sent at once.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The number of the message whose acknowledgement means that the whole batch was applied.
    pub(super) fn last(&self) -> u32 {
        // The last content message is the one before the end of the batch.
        u32::try_from(self.labels.len().saturating_sub(2)).unwrap_or(u32::MAX)
    }

    /// The name of a message.
    pub(super) fn label(&self, number: u32) -> &str {
        usize::try_from(number).ok().and_then(|at| self.labels.get(at)).map_or("the batch", String::as_str)
    }

    /// Begins a batch that deletes our tables. Each is added first, so that deleting cannot fail.
    fn removal() -> Self {
        let mut batch = Self::default();
        batch.boundary(BATCH_BEGIN, "the batch");
        for family in TableFamily::ALL {
            batch.new_table(family);
            let label = format!("the removal of table {} {TABLE}", family.word());
            batch.operation(NftOperation::DeleteTable, family, label, |attributes| {
                attributes.text(1, TABLE);
            });
        }
        batch
    }

    fn end(mut self) -> Self {
        // Only the last content message asks for an acknowledgement; errors are sent unasked, and earlier.
        self.acknowledge_last();
        self.boundary(BATCH_END, "the end of the batch");
        self
    }

    fn boundary(&mut self, kind: u16, label: &str) {
        self.push(MessageHead { kind, flags: 0, family: 0, resource: SUBSYSTEM }, label.to_owned(), |_| ());
    }

    fn new_table(&mut self, family: TableFamily) {
        let label = format!("table {} {TABLE}", family.word());
        self.operation(NftOperation::NewTable, family, label, |attributes| {
            // NFTA_TABLE_NAME.
            attributes.text(1, TABLE);
        });
    }

    fn new_chain(&mut self, chain: &PlannedChain) {
        /// NF_ACCEPT, the policy.
        const ACCEPT: u32 = 1;
        let label = format!("chain {} ({} at hook {})", chain.name, chain.kind.word(), chain.hook.word());
        self.operation(NftOperation::NewChain, chain.table, label, |attributes| {
            // NFTA_CHAIN_TABLE, _NAME, _HOOK (NFTA_HOOK_HOOKNUM and _PRIORITY), _POLICY and _TYPE.
            attributes.text(1, TABLE).text(3, chain.name);
            attributes.nest(4, |hook| {
                hook.number(1, hook_number(chain.hook)).number(2, chain.priority.cast_unsigned());
            });
            attributes.number(5, ACCEPT).text(7, chain.kind.word());
        });
    }

    fn rules(&mut self, chain: &PlannedChain) {
        for (rule, number) in chain.rules.iter().zip(1..) {
            self.rule(chain, rule, number);
        }
    }

    fn rule(&mut self, chain: &PlannedChain, rule: &PlannedRule, number: usize) {
        let label = format!("rule {number} of chain {}", chain.name);
        let steps = compile::expressions(rule, chain.table);
        let sets: Vec<u32> = steps.iter().map(|step| self.set(step, chain.table, &label)).collect();
        self.operation(NftOperation::NewRule, chain.table, label, |attributes| {
            // NFTA_RULE_TABLE, _CHAIN and _EXPRESSIONS.
            attributes.text(1, TABLE).text(2, chain.name);
            attributes.nest(4, |list| {
                steps.iter().zip(&sets).for_each(|(step, set)| step.write(*set, list));
            });
        });
    }

    /// Creates the set of a lookup and returns its number; 0 for any other expression.
    fn set(&mut self, step: &NftExpression, family: TableFamily, label: &str) -> u32 {
        /// NFT_SET_ANONYMOUS and NFT_SET_CONSTANT.
        const FLAGS: u32 = 0b11;
        let NftExpression::Lookup(Set::Elements(elements)) = step else { return 0 };
        self.sets += 1;
        let id = self.sets;
        let length = elements.first().map_or(0, Vec::len);
        let label = format!("the set in {label}");
        self.operation(NftOperation::NewSet, family, label.clone(), |attributes| {
            // NFTA_SET_TABLE, _NAME, _FLAGS, _KEY_TYPE, _KEY_LEN, _ID and _DESC (NFTA_SET_DESC_SIZE).
            attributes.text(1, TABLE).text(2, ANONYMOUS).number(3, FLAGS);
            attributes.number(4, key_type(length)).number(5, u32::try_from(length).unwrap_or_default());
            attributes.number(10, id);
            attributes.nest(9, |description| {
                description.number(1, u32::try_from(elements.len()).unwrap_or_default());
            });
        });
        self.operation(NftOperation::NewElements, family, label, |attributes| {
            // NFTA_SET_ELEM_LIST_TABLE, _SET, _SET_ID and _ELEMENTS.
            attributes.text(1, TABLE).text(2, ANONYMOUS).number(4, id);
            attributes.nest(3, |list| write_elements(elements, list));
        });
        id
    }

    fn operation(
        &mut self,
        operation: NftOperation,
        family: TableFamily,
        label: String,
        fill: impl FnOnce(&mut AttributeWriter),
    ) {
        let flags = match operation {
            NftOperation::NewRule => CREATE | APPEND,
            NftOperation::NewTable
            | NftOperation::NewChain
            | NftOperation::NewSet
            | NftOperation::NewElements => CREATE,
            NftOperation::DeleteTable
            | NftOperation::ListTables
            | NftOperation::ListChains
            | NftOperation::ListRules
            | NftOperation::ListElements => 0,
        };
        let head = MessageHead { kind: operation.kind(), flags, family: family.number(), resource: 0 };
        self.push(head, label, fill);
    }

    fn push(&mut self, head: MessageHead, label: String, fill: impl FnOnce(&mut AttributeWriter)) {
        let number = u32::try_from(self.labels.len()).unwrap_or(u32::MAX);
        self.last_at = self.bytes.len();
        self.bytes.extend(head.message(number, fill));
        self.labels.push(label);
    }

    /// Asks for an acknowledgement of the message that was added last.
    fn acknowledge_last(&mut self) {
        // The flags follow length and kind; the bit is in the byte that the machine's order puts it in.
        let at = self.last_at + 6;
        let flags = self.bytes.get_mut(at..at + 2).into_iter().flatten();
        flags.zip(ACKNOWLEDGE.to_ne_bytes()).for_each(|(byte, bit)| *byte |= bit);
    }
}

/// A request that lists all objects of a kind, narrowed by the attributes that `fill` writes.
pub(super) fn dump(operation: NftOperation, family: u8, fill: impl FnOnce(&mut AttributeWriter)) -> Vec<u8> {
    MessageHead { kind: operation.kind(), flags: DUMP, family, resource: 0 }.message(0, fill)
}

/// The headers of a message.
#[derive(Debug, Clone, Copy)]
struct MessageHead {
    kind: u16,
    flags: u16,
    family: u8,
    /// The subsystem, of a batch.
    resource: u16,
}

impl MessageHead {
    fn message(self, number: u32, fill: impl FnOnce(&mut AttributeWriter)) -> Vec<u8> {
        let mut attributes = AttributeWriter::default();
        fill(&mut attributes);
        let attributes = attributes.as_bytes();
        let length = u32::try_from(HEADER + FAMILY_HEADER + attributes.len()).unwrap_or(u32::MAX);
        let mut message = Vec::new();
        message.extend(length.to_ne_bytes());
        message.extend(self.kind.to_ne_bytes());
        message.extend((self.flags | REQUEST).to_ne_bytes());
        message.extend(number.to_ne_bytes());
        // The port that asks: the kernel knows it.
        message.extend([0; 4]);
        // NFNETLINK_V0.
        message.extend([self.family, 0]);
        message.extend(self.resource.to_be_bytes());
        message.extend(attributes);
        message
    }
}

impl NftOperation {
    fn kind(self) -> u16 {
        SUBSYSTEM << 8 | self as u16
    }
}

fn write_elements(elements: &BTreeSet<Vec<u8>>, list: &mut AttributeWriter) {
    for element in elements {
        // NFTA_LIST_ELEM, NFTA_SET_ELEM_KEY, NFTA_DATA_VALUE.
        list.nest(1, |entry| {
            entry.nest(1, |key| {
                key.bytes(1, element);
            });
        });
    }
}

/// The type by which `nft` shows a set's elements: ports have two bytes, types of ICMPv6 one.
fn key_type(length: usize) -> u32 {
    /// TYPE_INET_SERVICE and TYPE_ICMP6_TYPE.
    const PORT: u32 = 13;
    const ICMPV6_TYPE: u32 = 29;
    if length == 2 { PORT } else { ICMPV6_TYPE }
}

/// The number of a hook (`enum nf_inet_hooks`).
pub(super) fn hook_number(hook: Hook) -> u32 {
    match hook {
        Hook::Input => 1,
        Hook::Output => 3,
        Hook::Postrouting => 4,
    }
}

impl TableFamily {
    /// Its number (`enum` of NFPROTO).
    pub(super) fn number(self) -> u8 {
        match self {
            Self::Inet => 1,
            Self::Ip => 2,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::redirect::plan::GatewayPorts;

    /// Kind, flags and number of each message.
    fn messages(batch: &Batch) -> Vec<(u16, u16, u32)> {
        let mut rest = batch.bytes();
        let mut found = Vec::new();
        while let Some((head, _)) = rest.split_first_chunk::<HEADER>() {
            let number = |at: usize| u32::from_ne_bytes(head[at..at + 4].try_into().unwrap());
            let half = |at: usize| u16::from_ne_bytes(head[at..at + 2].try_into().unwrap());
            found.push((half(4), half(6), number(8)));
            rest = &rest[usize::try_from(number(0)).unwrap()..];
        }
        found
    }

    #[test]
    fn a_batch_adds_each_table_before_it_deletes_it_and_asks_for_one_answer() {
        let batch = Batch::remove();
        let kinds: Vec<u16> = messages(&batch).iter().map(|(kind, ..)| *kind).collect();
        assert_eq!(kinds, [0x10, 0xa00, 0xa02, 0xa00, 0xa02, 0x11]);
        let answered: Vec<u32> = messages(&batch)
            .iter()
            .filter(|(_, flags, _)| flags & ACKNOWLEDGE != 0)
            .map(|(.., number)| *number)
            .collect();
        assert_eq!(answered, [batch.last()]);
        assert_eq!(batch.label(2), "the removal of table inet postern");
    }

    #[test]
    fn a_set_is_made_before_the_rule_that_looks_into_it() {
        let plan = RedirectPlan::new(7, GatewayPorts::default(), &[8080]).unwrap();
        let batch = Batch::program(&plan);
        let at = |label: &str| batch.labels.iter().position(|found| found == label).unwrap();
        assert!(at("the set in rule 1 of chain filter_output") < at("rule 1 of chain filter_output"));
        assert_eq!(batch.labels.len(), messages(&batch).len());
        assert!(batch.bytes().len() < 32 * 1024, "{}", batch.bytes().len());
    }
}
