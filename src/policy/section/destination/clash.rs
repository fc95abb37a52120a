//! What two rules must not say of one host.

use std::collections::HashMap;

use super::rule::{Rule, Subject};
use super::written::Provider;
use crate::decision::RuleId;
use crate::policy::pattern::Pattern;
use crate::policy::scope::Tier;

/// What rules have said is spoken where: equally specific rules of a tier decide together (design section 5.3).
#[derive(Debug, Default)]
pub(in crate::policy) struct SpokenProviders(HashMap<(Tier, Pattern, u16), (Provider, RuleId)>);

impl SpokenProviders {
    /// Notes what the rule says, and tells where it disagrees with one before it.
    pub(in crate::policy) fn clash(&mut self, rule: &Rule) -> Option<String> {
        let own = rule.grant.as_ref()?.provider?;
        let Subject::Hosts(patterns) = &rule.subject else { return None };
        let mut clash = None;
        for pattern in patterns {
            for port in rule.sniffed_ports() {
                let key = (rule.tier, pattern.clone(), *port);
                let (said, by) = self.0.entry(key).or_insert_with(|| (own, rule.id.clone()));
                if *said != own {
                    clash.get_or_insert_with(|| {
                        format!("{by} says {said:?} of {pattern}; one host speaks one of them in a tier")
                    });
                }
            }
        }
        clash
    }
}
