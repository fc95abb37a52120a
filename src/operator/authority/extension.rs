//! Name constraints in a certificate (RFC 5280 section 4.2.1.10), written and read back.

use std::net::IpAddr;

use ipnet::IpNet;
use rcgen::{CidrSubnet, GeneralSubtree, NameConstraints};
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::{GeneralName, GeneralSubtree as Read};

use super::constraints::CaConstraints;
use crate::tls::constraint::network;

/// The subtrees of one certificate, in their order.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Extension {
    permitted: Vec<NameSubtree>,
    excluded: Vec<NameSubtree>,
}

#[derive(Debug, PartialEq, Eq)]
enum NameSubtree {
    Name(String),
    Network(IpNet),
}

impl Extension {
    /// The extension that permits these names and addresses and nothing else. An address family without a permitted
    /// address is excluded whole: with names alone, five of eight clients would accept any address, and with addresses
    /// of one family, GnuTLS any of the other. A family with permitted addresses is not excluded: an exclusion would
    /// win.
    pub(super) fn of(constraints: &CaConstraints) -> Self {
        let names = constraints.names().into_iter().flatten().cloned().map(NameSubtree::Name);
        let addresses = constraints.addresses().iter().map(|ip| NameSubtree::Network(IpNet::from(*ip)));
        let excluded = [IpNet::from(ipnet::Ipv4Net::default()), IpNet::from(ipnet::Ipv6Net::default())];
        let is_bare = |family: &IpNet| !constraints.addresses().iter().any(|ip| family.contains(ip));
        Self {
            permitted: names.chain(addresses).collect(),
            excluded: excluded.into_iter().filter(is_bare).map(NameSubtree::Network).collect(),
        }
    }

    /// Reads the extension of a certificate; none if it has no critical one, or one with content that is never written
    /// here.
    pub(super) fn read(x509: &X509Certificate<'_>) -> Option<Self> {
        let extension = x509.name_constraints().ok()??;
        if !extension.critical {
            return None;
        }
        Some(Self {
            permitted: subtrees(extension.value.permitted_subtrees.as_deref())?,
            excluded: subtrees(extension.value.excluded_subtrees.as_deref())?,
        })
    }

    /// As rcgen writes it, critical.
    pub(super) fn to_params(&self) -> NameConstraints {
        let written = |subtrees: &[NameSubtree]| subtrees.iter().map(NameSubtree::to_params).collect();
        NameConstraints {
            permitted_subtrees: written(&self.permitted),
            excluded_subtrees: written(&self.excluded),
        }
    }
}

impl NameSubtree {
    fn to_params(&self) -> GeneralSubtree {
        match self {
            Self::Name(name) => GeneralSubtree::DnsName(name.clone()),
            Self::Network(network) => GeneralSubtree::IpAddress(match (network.addr(), network.netmask()) {
                (IpAddr::V4(address), IpAddr::V4(mask)) => CidrSubnet::V4(address.octets(), mask.octets()),
                (address, _) => CidrSubnet::from_addr_prefix(address, network.prefix_len()),
            }),
        }
    }
}

fn subtrees(of: Option<&[Read<'_>]>) -> Option<Vec<NameSubtree>> {
    of.unwrap_or_default()
        .iter()
        .map(|subtree| match &subtree.base {
            GeneralName::DNSName(name) => Some(NameSubtree::Name((*name).to_owned())),
            GeneralName::IPAddress(octets) => network(octets).map(NameSubtree::Network),
            GeneralName::OtherName(..)
            | GeneralName::RFC822Name(_)
            | GeneralName::X400Address(_)
            | GeneralName::DirectoryName(_)
            | GeneralName::EDIPartyName(_)
            | GeneralName::URI(_)
            | GeneralName::RegisteredID(_)
            | GeneralName::Invalid(..) => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair};
    use x509_parser::prelude::FromDer as _;

    use super::super::testing::inspecting;
    use super::*;

    fn excluded(hosts: &[&str]) -> Vec<String> {
        let extension = Extension::of(&CaConstraints::of(&inspecting(hosts)));
        let shown = |subtree: &NameSubtree| match subtree {
            NameSubtree::Name(name) => name.clone(),
            NameSubtree::Network(network) => network.to_string(),
        };
        extension.excluded.iter().map(shown).collect()
    }

    #[test]
    fn addresses_that_nobody_inspects_are_excluded_by_family() {
        assert_eq!(excluded(&["a.test"]), ["0.0.0.0/0", "::/0"]);
        assert_eq!(excluded(&["**"]), ["0.0.0.0/0", "::/0"]);
        assert_eq!(excluded(&["a.test", "192.0.2.1"]), ["::/0"]);
        assert_eq!(excluded(&["2001:db8::1"]), ["0.0.0.0/0"]);
        assert_eq!(excluded(&["192.0.2.1", "2001:db8::1"]), [""; 0]);
    }

    #[test]
    fn what_is_written_is_read_back() {
        for hosts in
            [&["a.test", "*.b.test", "192.0.2.1", "2001:db8::1"][..], &["**"], &["**", "192.0.2.1"], &[]]
        {
            let extension = Extension::of(&CaConstraints::of(&inspecting(hosts)));
            let mut params = CertificateParams::default();
            params.name_constraints = Some(extension.to_params());
            let certificate = params.self_signed(&KeyPair::generate().unwrap()).unwrap();
            let (_, x509) = X509Certificate::from_der(certificate.der()).unwrap();
            assert_eq!(Extension::read(&x509), Some(extension), "{hosts:?}");
        }
    }

    #[test]
    fn a_certificate_without_constraints_has_none_to_read() {
        let certificate = CertificateParams::default().self_signed(&KeyPair::generate().unwrap()).unwrap();
        let (_, x509) = X509Certificate::from_der(certificate.der()).unwrap();
        assert_eq!(Extension::read(&x509), None);
    }
}
