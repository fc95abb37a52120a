//! A compiled credential rule: which placeholder stands for which value on which hosts.

use std::path::PathBuf;

use super::RuleId;
use super::name::DnsName;

/// A credential of a policy, without its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credential {
    /// `namespace/policy/credentials/NAME`.
    pub id: RuleId,
    pub name: String,
    pub hosts: Vec<DnsName>,
    /// `None` means 443.
    pub ports: Option<Vec<u16>>,
    /// What the agent holds instead of the value.
    pub placeholder: String,
    /// Whether any key but the placeholder is refused on the hosts.
    pub require: bool,
    pub source: Source,
}

/// Where a credential's value comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// The file `NAME` of the gateway's credentials directory.
    Mounted,
    Env(String),
    File(PathBuf),
}

impl Credential {
    /// Whether the credential may be used at this host and port.
    pub fn serves(&self, host: &DnsName, port: u16) -> bool {
        let port = self.ports.as_ref().map_or(port == 443, |ports| ports.contains(&port));
        port && self.hosts.contains(host)
    }
}
