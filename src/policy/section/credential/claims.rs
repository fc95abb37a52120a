//! Finds credentials that share a name, a placeholder or a host.

use std::collections::HashMap;

use super::Credential;
use crate::decision::RuleId;
use crate::policy::data_loss::NamedValue;
use crate::policy::scope::Tier;

/// What credentials have claimed so far.
#[derive(Debug, Default)]
pub(in crate::policy) struct CredentialClaims(HashMap<Claim, RuleId>);

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Claim {
    /// One file per name in `credentials.directory`.
    Name {
        namespace: Option<String>,
        name: String,
    },
    /// The same of a value that must not leave.
    Value {
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

impl CredentialClaims {
    /// Judges the credentials of one policy, one after the other.
    pub(super) fn within_policy(&mut self, credential: &Credential) -> Vec<String> {
        self.take_hosts(Tier::Namespace, credential)
            .into_iter()
            .chain(self.take_placeholder(credential))
            .collect()
    }

    /// Judges the credentials that a pod would have together.
    pub(in crate::policy) fn within_pod(&mut self, tier: Tier, credential: &Credential) -> Vec<String> {
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
    pub(in crate::policy) fn within_namespace(
        &mut self,
        namespace: &str,
        credential: &Credential,
    ) -> Option<String> {
        let claim = Claim::Name { namespace: Some(namespace.to_owned()), name: credential.name.clone() };
        self.take(claim, credential)
            .map(|other| format!("the name `{}` is taken by {other} in the same namespace", credential.name))
    }

    /// Judges a value that must not leave, of a pod and of a namespace: each is one file of its name.
    pub(in crate::policy) fn value(
        &mut self,
        namespace: &str,
        value: &NamedValue,
        is_of_pod: bool,
    ) -> Option<String> {
        let of_pod = is_of_pod.then_some(None).into_iter();
        let others = of_pod.chain([Some(namespace.to_owned())]).filter_map(|namespace| {
            let claim = Claim::Value { namespace, name: value.name.clone() };
            let owner = self.0.entry(claim).or_insert_with(|| value.rule.clone());
            (*owner != value.rule).then(|| owner.clone())
        });
        let other = others.collect::<Vec<_>>().into_iter().next()?;
        Some(format!(
            "the name `{}` is taken by a value of {other}; each value is one file of that name",
            value.name
        ))
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

    /// Returns another credential that has the claim already; the first one to claim has it.
    fn take(&mut self, claim: Claim, credential: &Credential) -> Option<RuleId> {
        let owner = self.0.entry(claim).or_insert_with(|| credential.id.clone());
        (*owner != credential.id).then(|| owner.clone())
    }
}
