//! `credentials`: which placeholder stands for which key, and where it may be swapped.

mod claims;
mod lower;
pub(in crate::policy) mod written;

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;

use serde::Serialize;

use super::page::{Heading, Page};
use super::{Lowering, Owner, PolicySection};
use crate::decision::RuleId;
use crate::digest::sha256_of;
use crate::name::host::DnsName;
use crate::policy::Policy;
use crate::policy::scope::{Mode, PolicyScope};

pub(in crate::policy) use claims::CredentialClaims;
pub(super) use lower::{WrittenSource, source};

/// The port a credential serves where its rule names none.
const HTTPS: u16 = 443;

/// A credential rule, without the secret itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credential {
    /// `namespace/policy/credentials/NAME`
    pub id: RuleId,
    /// Usable as a file name: lower-case letters, digits, `-` and `.`, no dot first.
    pub name: String,
    /// Exact names alone.
    pub hosts: Vec<DnsName>,
    /// None stands for 443.
    pub ports: Option<Vec<u16>>,
    /// What the agent holds: 8 to 256 visible ASCII characters.
    pub placeholder: String,
    /// Whether any key but the placeholder is refused on these hosts.
    pub require: bool,
    pub source: Source,
    /// Where requests are signed with an access key of AWS, in the place of a key that is put into them.
    pub signing: Option<SigV4>,
}

/// What a signature (AWS, version 4) is good for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SigV4 {
    /// As AWS signs for it, such as `bedrock`.
    pub service: String,
    pub region: String,
}

/// Where the secret comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// `credentials.directory/NAME`
    Mounted,
    /// A variable of the gateway's environment.
    Env(String),
    File(PathBuf),
}

impl Credential {
    /// Whether the credential belongs to this host and port.
    pub fn serves(&self, host: &DnsName, port: u16) -> bool {
        self.ports().contains(&port) && self.hosts.contains(host)
    }

    /// The ports it serves.
    pub fn ports(&self) -> &[u16] {
        self.ports.as_deref().unwrap_or(&[HTTPS])
    }
}

/// The credentials of the policies that decide, the cluster's first.
#[derive(Debug)]
pub(in crate::policy) struct Credentials {
    all: Vec<Arc<Credential>>,
    /// The SHA-256 of each placeholder.
    placeholders: HashSet<[u8; 32]>,
}

#[derive(Serialize)]
pub(in crate::policy) struct CredentialsListed {
    credentials: Vec<CredentialListed>,
}

/// A credential, without what it stands for.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CredentialListed {
    name: String,
    rule: String,
    hosts: Vec<String>,
    ports: Vec<u16>,
    require: bool,
}

impl PolicySection for Credentials {
    type Written = Vec<written::Credential>;
    /// With the field each stands in.
    type Lowered = Vec<(String, Arc<Credential>)>;
    type Listed = CredentialsListed;

    fn lower<'a>(written: &'a Self::Written, lowering: &mut Lowering<'a>) -> Self::Lowered {
        lower::lower(written, lowering)
    }

    fn unite(policies: Vec<(&Owner, Self::Lowered)>, mode: Mode) -> Self {
        let deciding = policies.into_iter().filter(|(owner, _)| mode.heeds(owner.audit));
        let credentials = deciding.flat_map(|(_, credentials)| credentials);
        let all: Vec<_> = credentials.map(|(_, credential)| credential).collect();
        let placeholders =
            all.iter().map(|credential| sha256_of(&[credential.placeholder.as_bytes()])).collect();
        Self { all, placeholders }
    }

    fn list(&self, _: PolicyScope) -> Self::Listed {
        let credentials = self.all.iter().map(|credential| CredentialListed {
            name: credential.name.clone(),
            rule: credential.id.to_string(),
            hosts: credential.hosts.iter().map(ToString::to_string).collect(),
            ports: credential.ports().to_vec(),
            require: credential.require,
        });
        CredentialsListed { credentials: credentials.collect() }
    }

    fn rows(listed: &Self::Listed, page: &mut Page) {
        for credential in &listed.credentials {
            let hosts = credential.hosts.join(", ");
            let ports: Vec<String> = credential.ports.iter().map(u16::to_string).collect();
            let require = if credential.require { ", no other key" } else { "" };
            let right = format!("{hosts}, ports {}{require}  [{}]", ports.join(", "), credential.rule);
            page.add(Heading::Credentials, [credential.name.clone(), right]);
        }
    }
}

impl Credentials {
    /// Whether a value with this SHA-256 is a placeholder, which is no secret whatever it looks like.
    pub(in crate::policy) fn is_placeholder(&self, sha256: &[u8; 32]) -> bool {
        self.placeholders.contains(sha256)
    }
}

impl Policy {
    /// The credentials of the policies that decide, the cluster's first.
    pub fn credentials(&self) -> &[Arc<Credential>] {
        &self.sections.credentials.all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn credential(hosts: &[&str], ports: Option<&[u16]>) -> Credential {
        Credential {
            id: RuleId::new("a/b/credentials/c"),
            name: "c".into(),
            hosts: hosts.iter().map(|host| DnsName::parse(host).unwrap()).collect(),
            ports: ports.map(<[u16]>::to_vec),
            placeholder: "postern:c".into(),
            require: false,
            source: Source::Mounted,
            signing: None,
        }
    }

    #[test]
    fn a_credential_serves_its_hosts_on_443_alone_unless_it_names_ports() {
        let host = DnsName::parse("api.example.com").unwrap();
        assert!(credential(&["api.example.com"], None).serves(&host, 443));
        assert!(!credential(&["api.example.com"], None).serves(&host, 80));
        assert!(credential(&["api.example.com"], Some(&[8443])).serves(&host, 8443));
        assert!(!credential(&["api.example.com"], Some(&[8443])).serves(&host, 443));
        assert!(!credential(&["example.com"], None).serves(&host, 443));
    }
}
