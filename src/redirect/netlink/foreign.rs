//! Finds rules of other programs that match socket owners, and could let somebody past ours.

use super::expression::{Meta, NftExpression};
use super::message::hook_number;
use super::ruleset::{KernelChain, KernelRule, Ruleset};
use crate::redirect::chains::TABLE;
use crate::redirect::iptables::CHAIN_PREFIX;
use crate::redirect::owners::{ForeignOwner, Owned};
use crate::redirect::rule::Hook;

/// NFPROTO of the families whose chains see a pod's packets on their way out, with their words.
const FAMILIES: [(u8, &str); 3] = [(1, "inet"), (2, "ip"), (10, "ip6")];

/// The first rule of another program that matches socket owners, in a table that sees outgoing packets.
pub(super) fn owner(found: &Ruleset) -> Option<ForeignOwner> {
    found.rules.iter().find_map(|rule| {
        let (_, family) = FAMILIES.into_iter().find(|(number, _)| *number == rule.table.family)?;
        let ours = rule.table.name == TABLE || rule.chain.starts_with(CHAIN_PREFIX);
        let owned = owned(&rule.steps).filter(|_| !ours && sees_output(rule, &found.chains))?;
        let table = format!("{family} {}", rule.table.name);
        Some(ForeignOwner { table, chain: rule.chain.clone(), owned })
    })
}

/// Whether any chain of the rule's table is called for outgoing packets. Jumps between its chains are not followed.
fn sees_output(rule: &KernelRule, chains: &[KernelChain]) -> bool {
    let output = hook_number(Hook::Output);
    chains
        .iter()
        .filter(|chain| chain.table == rule.table)
        .any(|chain| chain.base.as_ref().is_some_and(|base| base.hook == output))
}

/// The socket owner that a rule matches, if it does.
fn owned(steps: &[NftExpression]) -> Option<Owned> {
    steps.iter().enumerate().find_map(|(at, step)| match step {
        NftExpression::Meta(Meta::SocketUid) => match steps.get(at + 1) {
            Some(NftExpression::Compare { equal: true, with }) => {
                let uid = with.as_slice().try_into().ok().map(u32::from_ne_bytes);
                Some(uid.map_or(Owned::Somebody, Owned::Uid))
            }
            _ => Some(Owned::Somebody),
        },
        NftExpression::Meta(Meta::SocketGid) => Some(Owned::Somebody),
        NftExpression::OwnerMatch { uids: Some((from, to)) } if from == to => Some(Owned::Uid(*from)),
        NftExpression::OwnerMatch { .. } => Some(Owned::Somebody),
        NftExpression::Meta(_)
        | NftExpression::Tracking(_)
        | NftExpression::AddressType(_)
        | NftExpression::Payload { .. }
        | NftExpression::Mask(_)
        | NftExpression::Compare { .. }
        | NftExpression::Lookup(_)
        | NftExpression::Counter
        | NftExpression::Load(_)
        | NftExpression::TrackInZone
        | NftExpression::Redirect
        | NftExpression::Reject { .. }
        | NftExpression::Verdict(_)
        | NftExpression::Other(_) => None,
    })
}

#[cfg(test)]
mod tests {
    use super::super::comparison::tests::in_force;
    use super::super::ruleset::{Base, TableName};
    use super::*;
    use crate::redirect::plan::{GatewayPorts, RedirectPlan};

    fn plan_beside(table: &str, chain: &str, hook: u32, steps: Vec<NftExpression>) -> Option<ForeignOwner> {
        let mut found = in_force(&RedirectPlan::new(61_234, GatewayPorts::default(), &[]).unwrap());
        let table = TableName { family: 2, name: table.to_owned() };
        let base = Base { kind: "nat".to_owned(), hook, priority: -100, accepts: true };
        found.chains.push(KernelChain { table: table.clone(), name: "OUTPUT".to_owned(), base: Some(base) });
        found.rules.push(KernelRule { table, chain: chain.to_owned(), steps });
        owner(&found)
    }

    fn istio() -> Vec<NftExpression> {
        vec![NftExpression::OwnerMatch { uids: Some((1337, 1337)) }]
    }

    #[test]
    fn our_own_rules_are_nobody_elses() {
        assert_eq!(plan_beside("nat", "OUTPUT", 3, vec![NftExpression::Counter]), None);
        assert_eq!(plan_beside("nat", "POSTERN_OUTPUT", 3, istio()), None);
    }

    #[test]
    fn a_sidecar_that_exempts_its_uid_is_found_in_a_chain_behind_output() {
        let found = plan_beside("nat", "ISTIO_OUTPUT", 3, istio()).unwrap();
        assert_eq!(found.table, "ip nat");
        assert_eq!((found.chain.as_str(), found.owned), ("ISTIO_OUTPUT", Owned::Uid(1337)));
    }

    #[test]
    fn a_native_match_of_uid_or_gid_is_found() {
        let uid = NftExpression::Compare { equal: true, with: 1337u32.to_ne_bytes().to_vec() };
        let native = vec![NftExpression::Meta(Meta::SocketUid), uid];
        assert_eq!(plan_beside("x", "y", 3, native).unwrap().owned, Owned::Uid(1337));
        let group = vec![NftExpression::Meta(Meta::SocketGid)];
        assert_eq!(plan_beside("x", "y", 3, group).unwrap().owned, Owned::Somebody);
    }

    #[test]
    fn a_table_that_sees_no_outgoing_packet_is_left_alone() {
        assert_eq!(plan_beside("nat", "x", 1, istio()), None);
    }
}
