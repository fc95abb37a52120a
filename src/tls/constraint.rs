//! X.509 name constraints: which hosts a CA may vouch for (RFC 5280 section 4.2.1.10).

use std::net::IpAddr;

use ipnet::IpNet;
use x509_parser::extensions::{GeneralName, GeneralSubtree, NameConstraints};

use crate::name::host::Host;

/// The constraints of one certificate that touch host names and addresses.
#[derive(Debug, Default)]
pub(super) struct Constraints {
    permitted: Vec<Subtree>,
    excluded: Vec<Subtree>,
}

/// One constraint, as clients read it.
#[derive(Debug)]
enum Subtree {
    /// `example.com` covers itself and what lies below, `.example.com` what lies below alone, the empty text all.
    Name(String),
    Network(IpNet),
}

impl Constraints {
    /// Reads the extension, or answers `None` where a name or address in it is malformed.
    pub(super) fn read(extension: &NameConstraints<'_>) -> Option<Self> {
        Some(Self {
            permitted: subtrees(extension.permitted_subtrees.as_deref())?,
            excluded: subtrees(extension.excluded_subtrees.as_deref())?,
        })
    }

    /// Whether a certificate for `host` may be issued: no exclusion covers it, and where constraints of its kind
    /// (names, addresses) exist, one permits it.
    pub(super) fn permit(&self, host: &Host) -> bool {
        let mut of_its_kind = self.permitted.iter().filter(|subtree| subtree.is_of_kind(host)).peekable();
        let permitted = of_its_kind.peek().is_none() || of_its_kind.any(|subtree| subtree.covers(host));
        permitted && !self.excluded.iter().any(|subtree| subtree.covers(host))
    }

    /// Whether some addresses are permitted.
    pub(super) fn permit_networks(&self) -> bool {
        self.permitted.iter().any(|subtree| matches!(subtree, Subtree::Network(_)))
    }

    /// Hosts that the permitted subtrees cover, one for each.
    pub(super) fn examples(&self) -> impl Iterator<Item = Host> {
        self.permitted.iter().filter_map(|subtree| match subtree {
            Subtree::Name(base) if base.is_empty() => None,
            Subtree::Name(base) if base.starts_with('.') => Host::parse(&format!("postern{base}")).ok(),
            Subtree::Name(base) => Host::parse(base).ok(),
            Subtree::Network(network) => Some(Host::Ip(network.addr())),
        })
    }
}

impl Subtree {
    fn is_of_kind(&self, host: &Host) -> bool {
        matches!((self, host), (Self::Name(_), Host::Name(_)) | (Self::Network(_), Host::Ip(_)))
    }

    fn covers(&self, host: &Host) -> bool {
        match (self, host) {
            (Self::Name(base), Host::Name(name)) => covers_name(base, name.as_str()),
            (Self::Network(network), Host::Ip(ip)) => network.contains(ip),
            (Self::Name(_), Host::Ip(_)) | (Self::Network(_), Host::Name(_)) => false,
        }
    }
}

fn covers_name(base: &str, name: &str) -> bool {
    let Some(above) = name.strip_suffix(base) else { return false };
    base.is_empty() || base.starts_with('.') || above.is_empty() || above.ends_with('.')
}

/// Forms other than names and addresses say nothing of hosts; what of them clients enforce shows in the self-check.
fn subtrees(of: Option<&[GeneralSubtree<'_>]>) -> Option<Vec<Subtree>> {
    let mut read = Vec::new();
    for subtree in of.unwrap_or_default() {
        match subtree.base {
            GeneralName::DNSName(base) => read.push(Subtree::Name(base.to_ascii_lowercase())),
            GeneralName::IPAddress(octets) => read.push(Subtree::Network(network(octets)?.trunc())),
            GeneralName::Invalid(..) => return None,
            GeneralName::OtherName(..)
            | GeneralName::RFC822Name(_)
            | GeneralName::X400Address(_)
            | GeneralName::DirectoryName(_)
            | GeneralName::EDIPartyName(_)
            | GeneralName::URI(_)
            | GeneralName::RegisteredID(_) => {}
        }
    }
    Some(read)
}

/// Reads an address and its mask: 4 and 4 octets, or 16 and 16.
pub(crate) fn network(octets: &[u8]) -> Option<IpNet> {
    let (address, mask) = octets.split_at_checked(octets.len() / 2)?;
    IpNet::with_netmask(ip(address)?, ip(mask)?).ok()
}

fn ip(octets: &[u8]) -> Option<IpAddr> {
    match octets.len() {
        4 => <[u8; 4]>::try_from(octets).ok().map(IpAddr::from),
        16 => <[u8; 16]>::try_from(octets).ok().map(IpAddr::from),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(text: &str) -> Host {
        Host::parse(text).unwrap()
    }

    fn names(permitted: &[&str], excluded: &[&str]) -> Constraints {
        let read = |bases: &[&str]| bases.iter().map(|base| Subtree::Name((*base).to_owned())).collect();
        Constraints { permitted: read(permitted), excluded: read(excluded) }
    }

    #[test]
    fn a_name_covers_itself_and_what_lies_below_but_no_longer_word() {
        let constraints = names(&["example.com"], &[]);
        assert!(constraints.permit(&host("example.com")));
        assert!(constraints.permit(&host("a.b.example.com")));
        assert!(!constraints.permit(&host("badexample.com")));
        assert!(!constraints.permit(&host("example.com.evil.test")));
    }

    #[test]
    fn a_leading_dot_covers_what_lies_below_alone() {
        let constraints = names(&[".example.com"], &[]);
        assert!(constraints.permit(&host("a.example.com")));
        assert!(!constraints.permit(&host("example.com")));
    }

    #[test]
    fn an_exclusion_wins_and_the_empty_name_covers_all() {
        let constraints = names(&["example.com"], &["secret.example.com"]);
        assert!(constraints.permit(&host("example.com")));
        assert!(!constraints.permit(&host("a.secret.example.com")));
        assert!(!names(&[], &[""]).permit(&host("example.com")));
        assert!(names(&[""], &[]).permit(&host("example.com")));
    }

    #[test]
    fn names_constrain_no_address_and_networks_no_name() {
        assert!(names(&["example.com"], &[]).permit(&host("192.0.2.1")));
        let constraints = Constraints {
            permitted: vec![Subtree::Network("192.0.2.0/24".parse().unwrap())],
            excluded: Vec::new(),
        };
        assert!(constraints.permit(&host("example.com")));
        assert!(constraints.permit(&host("192.0.2.7")));
        assert!(!constraints.permit(&host("198.51.100.7")));
        assert!(!constraints.permit(&host("2001:db8::1")));
    }

    #[test]
    fn an_address_that_is_no_network_is_malformed() {
        assert_eq!(network(&[192, 0, 2, 0, 255, 255, 255, 0]), "192.0.2.0/24".parse().ok());
        assert_eq!(network(&[0; 32]), "::/0".parse().ok());
        assert!(network(&[192, 0, 2, 0]).is_none());
        assert!(network(&[192, 0, 2, 0, 255, 0, 255, 0]).is_none());
    }
}
