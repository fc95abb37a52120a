//! Host names and addresses in their one canonical form.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

/// A DNS name: lower-case LDH labels (A-labels), no trailing dot, 1 to 253 bytes, never an IP address.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DnsName(Arc<str>);

/// What a flow says it wants to reach.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Host {
    Name(DnsName),
    /// An address literal; IPv4-mapped IPv6 is held as IPv4.
    Ip(IpAddr),
}

/// A host with the port that was written beside it, if any.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Authority {
    pub host: Host,
    pub port: Option<u16>,
}

/// Why a text is no host.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NameError(pub &'static str);

impl DnsName {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Host {
    /// Reads a host as it stands on the wire (SNI, Host, `:authority`, CONNECT), without a port: ASCII alone.
    pub fn parse(text: &str) -> Result<Self, NameError> {
        let bare = text.strip_prefix('[').and_then(|t| t.strip_suffix(']')).unwrap_or(text);
        if let Ok(ip) = bare.parse::<IpAddr>() {
            return Ok(Self::Ip(ip.to_canonical()));
        }
        Ok(Self::Name(DnsName(text.to_ascii_lowercase().into())))
    }
}

impl Authority {
    /// Reads `host`, `host:port` or `[v6]:port` as it stands on the wire.
    pub fn parse(text: &str) -> Result<Self, NameError> {
        let (host, port) = match text.rsplit_once(':') {
            Some((h, p)) if !h.contains(':') || h.ends_with(']') => (h, p.parse().ok()),
            _ => (text, None),
        };
        Ok(Self { host: Host::parse(host)?, port })
    }
}

impl fmt::Display for DnsName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for Host {
    /// A name as it is, an address as it is, without brackets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => name.fmt(f),
            Self::Ip(ip) => ip.fmt(f),
        }
    }
}
