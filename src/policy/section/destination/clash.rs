//! Finds rules that name different providers for one host.

use std::collections::HashMap;

use super::rule::{DestinationRule, RuleTarget};
use super::written::Provider;
use crate::decision::RuleId;
use crate::policy::pattern::Pattern;
use crate::policy::scope::Tier;

/// The providers that rules have named so far: equally specific rules of a tier decide together (design section 5.3).
#[derive(Debug, Default)]
pub(in crate::policy) struct SpokenProviders(HashMap<(Tier, Pattern, u16), (Provider, RuleId)>);

impl SpokenProviders {
    /// Notes the rule's provider, and returns a message where an earlier rule names another.
    pub(in crate::policy) fn clash(&mut self, rule: &DestinationRule) -> Option<String> {
        let provider = rule.grant.as_ref()?.provider?;
        let RuleTarget::Hosts(patterns) = &rule.subject else { return None };
        let mut clash = None;
        for pattern in patterns {
            for port in rule.sniffed_ports() {
                let key = (rule.tier, pattern.clone(), *port);
                let (other, by) = self.0.entry(key).or_insert_with(|| (provider, rule.id.clone()));
                if *other != provider {
                    clash.get_or_insert_with(|| {
                        format!("{by} says {other:?} of {pattern}; one host speaks one of them in a tier")
                    });
                }
            }
        }
        clash
    }
}
