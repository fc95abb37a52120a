//! What two credentials must not share, and what two rules must not say of one host.

use std::collections::HashMap;

use super::credential::Credential;
use super::pattern::Pattern;
use super::rule::{Rule, Subject, Tier};
use crate::decision::RuleId;
use crate::policy::document::Provider;

/// What credentials have claimed so far.
#[derive(Debug, Default)]
pub(super) struct Claims(HashMap<Claim, RuleId>);

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Claim {
    /// One file per name in `credentials.directory`.
    Name {
        namespace: Option<String>,
        name: String,
    },
    Placeholder(String),
    Host {
        tier: Tier,
        host: String,
        port: u16,
    },
}

impl Claims {
    /// Judges the credentials of one policy, one after the other.
    pub(super) fn within_policy(&mut self, credential: &Credential) -> Vec<String> {
        self.take_hosts(Tier::Namespace, credential)
            .into_iter()
            .chain(self.take_placeholder(credential))
            .collect()
    }

    /// Judges the credentials that a pod would have together.
    pub(super) fn within_pod(&mut self, tier: Tier, credential: &Credential) -> Vec<String> {
        let claim = Claim::Name { namespace: None, name: credential.name.clone() };
        let name = self.take(claim, credential).map(|other| {
            format!(
                "the name `{}` is taken by {other}; each credential is one file of that name",
                credential.name
            )
        });
        let placeholder = self.take_placeholder(credential);
        name.into_iter().chain(placeholder).chain(self.take_hosts(tier, credential)).collect()
    }

    /// Judges the credentials of one namespace, whatever pods they are for.
    pub(super) fn within_namespace(&mut self, namespace: &str, credential: &Credential) -> Option<String> {
        let claim = Claim::Name { namespace: Some(namespace.to_owned()), name: credential.name.clone() };
        self.take(claim, credential)
            .map(|other| format!("the name `{}` is taken by {other} in the same namespace", credential.name))
    }

    fn take_placeholder(&mut self, credential: &Credential) -> Option<String> {
        let other = self.take(Claim::Placeholder(credential.placeholder.clone()), credential)?;
        Some(format!("{other} has the same placeholder, so that it would not say which key is meant"))
    }

    /// One message for each other credential, however many hosts they share.
    fn take_hosts(&mut self, tier: Tier, credential: &Credential) -> Option<String> {
        let mut clash = None;
        for host in &credential.hosts {
            for port in credential.ports() {
                let claim = Claim::Host { tier, host: host.to_string(), port: *port };
                if let Some(other) = self.take(claim, credential) {
                    clash.get_or_insert((host, other));
                }
            }
        }
        let (host, other) = clash?;
        Some(format!("{host} already has a credential, {other}; a host has one per tier"))
    }

    /// Who has it already; nobody else's claim is the first one's.
    fn take(&mut self, claim: Claim, credential: &Credential) -> Option<RuleId> {
        let owner = self.0.entry(claim).or_insert_with(|| credential.id.clone());
        (*owner != credential.id).then(|| owner.clone())
    }
}

/// What rules have said is spoken where: equally specific rules of a tier decide together (design section 5.3).
#[derive(Debug, Default)]
pub(super) struct Spoken(HashMap<(Tier, Pattern, u16), (Provider, RuleId)>);

impl Spoken {
    /// Notes what the rule says, and tells where it disagrees with one before it.
    pub(super) fn clash(&mut self, rule: &Rule) -> Option<String> {
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
