//! Which placeholder stands for which key, and where it may be swapped.

use std::path::PathBuf;

use crate::decision::RuleId;
use crate::name::host::DnsName;

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
