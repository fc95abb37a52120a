//! `destinations`: where pods may connect, and what is looked at on the way.

mod clash;
pub mod companion;
mod decide;
mod endpoints;
mod explain;
mod index;
mod listed;
mod lower;
mod naming;
mod ports;
mod pre_sniff;
mod reach;
mod rule;
pub mod vouched;
pub(in crate::policy) mod written;

use std::collections::BTreeSet;
use std::sync::Arc;

use super::page::Page;
use super::{Lowering, Owner, PolicySection};
use crate::name::host::DnsName;
use crate::policy::scope::{Mode, PolicyScope};
use index::Index;
use ports::Ports;

pub(in crate::policy) use clash::SpokenProviders;
pub use decide::{Action, Flow, FlowDecision, Protocol};
pub use endpoints::{EndpointQuery, EndpointRules};
pub use pre_sniff::PreSniffDecision;
pub(in crate::policy) use rule::DestinationRule;
pub use written::Reach;

/// The destination rules of all policies, and how to find those about one flow.
#[derive(Debug)]
pub(in crate::policy) struct Destinations {
    /// The cluster's first, each tier in the order of its policies' ids.
    rules: Vec<DestinationRule>,
    index: Index,
    ports: Ports,
    /// Hosts that no rule names and whose refusal is shown inside TLS all the same.
    companions: BTreeSet<DnsName>,
}

impl PolicySection for Destinations {
    type Written = Vec<written::Destination>;
    /// With the field each stands in.
    type Lowered = Vec<(String, DestinationRule)>;
    type Listed = listed::DestinationsListed;

    fn lower<'a>(written: &'a Self::Written, lowering: &mut Lowering<'a>) -> Self::Lowered {
        lower::lower(written, lowering)
    }

    fn unite(policies: Vec<(&Owner, Self::Lowered)>, mode: Mode) -> Self {
        let rules = policies.into_iter().flat_map(|(_, rules)| rules);
        let mut rules: Vec<DestinationRule> = rules.map(|(_, rule)| rule).collect();
        for rule in &mut rules {
            let inspection = |grant| Arc::new(EndpointRules::new(vec![vec![grant]], mode == Mode::AuditOnly));
            rule.alone = rule.grant.clone().map(inspection);
        }
        let (index, ports) = (Index::new(&rules), Ports::new(&rules));
        Self { rules, index, ports, companions: BTreeSet::new() }
    }

    fn list(&self, _: PolicyScope) -> Self::Listed {
        listed::list(&self.rules, &self.companions)
    }

    fn rows(listed: &Self::Listed, page: &mut Page) {
        listed::rows(listed, page);
    }
}
