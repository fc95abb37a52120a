//! Host names and addresses in their one canonical form.

use std::borrow::{Borrow, Cow};
use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use idna::uts46::{AsciiDenyList, DnsLength, Hyphens, Uts46};

/// The longest name, without a trailing dot (RFC 1035 section 2.3.4).
const MAX_NAME: usize = 253;
/// The longest label.
const MAX_LABEL: usize = 63;

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

/// Opening and closing quotes of typesetters and word processors.
pub(crate) const TYPOGRAPHIC: [char; 12] = ['“', '”', '„', '‟', '‘', '’', '‚', '‛', '«', '»', '‹', '›'];

/// What is wrong with a host that has one of them.
pub(crate) const QUOTED: &str =
    "has typographic quotes in it, which are letters of the text; write plain ones (\") around it, or none";

/// Why a text is no host.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NameError(pub &'static str);

impl DnsName {
    /// Reads a name as it stands on the wire: ASCII alone, any case, one trailing dot at most.
    /// What a resolver or another parser might take for an address is refused (threats B9).
    pub fn parse(text: &str) -> Result<Self, NameError> {
        let bare = text.strip_suffix('.').unwrap_or(text);
        if bare.is_empty() {
            return Err(NameError("the name is empty"));
        }
        if bare.len() > MAX_NAME {
            return Err(NameError("the name is longer than 253 bytes"));
        }
        let mut punycode = false;
        let mut last = "";
        for label in bare.split('.') {
            check_label(label)?;
            punycode |= label.get(..4).is_some_and(|prefix| prefix.eq_ignore_ascii_case("xn--"));
            last = label;
        }
        if is_numeric(last) {
            return Err(NameError("an address must be four decimal numbers or IPv6, with no name around it"));
        }
        let lower = if bare.bytes().any(|byte| byte.is_ascii_uppercase()) {
            Cow::Owned(bare.to_ascii_lowercase())
        } else {
            Cow::Borrowed(bare)
        };
        if punycode {
            check_punycode(&lower)?;
        }
        Ok(Self(Arc::from(lower.as_ref())))
    }

    /// Reads a name as a policy's author writes it: like [`DnsName::parse`], and internationalised names
    /// become their A-labels (UTS 46, non-transitional).
    pub fn parse_written(text: &str) -> Result<Self, NameError> {
        if text.is_ascii() {
            return Self::parse(text);
        }
        // IDNA 2008 has no such letter (RFC 5892, section 2); the mapping of UTS 46 does not refuse them.
        if text.contains(TYPOGRAPHIC) {
            return Err(NameError(QUOTED));
        }
        if text.contains(['\u{3002}', '\u{ff0e}', '\u{ff61}']) {
            return Err(NameError("write the dots of a name as `.`"));
        }
        let ascii = Uts46::new()
            .to_ascii(text.as_bytes(), AsciiDenyList::STD3, Hyphens::Allow, DnsLength::VerifyAllowRootDot)
            .map_err(|_| NameError("this is no valid internationalised name"))?;
        Self::parse(&ascii)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// What follows the first label; none for a single label.
    pub fn parent(&self) -> Option<&str> {
        self.0.split_once('.').map(|(_, parent)| parent)
    }
}

impl Host {
    /// Reads a host as it stands on the wire (SNI, Host, `:authority`, CONNECT), without a port: ASCII alone.
    /// IPv6 may stand in brackets or bare.
    pub fn parse(text: &str) -> Result<Self, NameError> {
        if let Some(inner) = text.strip_prefix('[') {
            let inner = inner.strip_suffix(']').ok_or(NameError("a bracket is not closed"))?;
            return parse_v6(inner);
        }
        if text.contains(':') {
            return parse_v6(text);
        }
        if let Ok(ip) = text.parse::<IpAddr>() {
            return Ok(Self::Ip(ip));
        }
        DnsName::parse(text).map(Self::Name)
    }

    /// The name, where it is one.
    pub fn name(&self) -> Option<&DnsName> {
        match self {
            Self::Name(name) => Some(name),
            Self::Ip(_) => None,
        }
    }

    /// The address, where it is one.
    pub fn ip(&self) -> Option<IpAddr> {
        match self {
            Self::Name(_) => None,
            Self::Ip(ip) => Some(*ip),
        }
    }
}

impl Authority {
    /// Reads `host`, `host:port` or `[v6]:port` as it stands on the wire (RFC 3986 section 3.2, no userinfo).
    pub fn parse(text: &str) -> Result<Self, NameError> {
        if text.contains('@') {
            return Err(NameError("a user name before the host is not accepted"));
        }
        let (host, port) = if text.starts_with('[') {
            let end = text.find(']').ok_or(NameError("a bracket is not closed"))?;
            text.split_at(end + 1)
        } else {
            text.split_at(text.find(':').unwrap_or(text.len()))
        };
        let port = match port.strip_prefix(':') {
            Some(digits) => Some(parse_port(digits)?),
            None if port.is_empty() => None,
            None => return Err(NameError("only a port may follow the bracket")),
        };
        Ok(Self { host: Host::parse(host)?, port })
    }
}

/// Judges one label of a name: LDH, 1 to 63 bytes, no hyphen at either end (RFC 5890 section 2.3.1).
fn check_label(label: &str) -> Result<(), NameError> {
    if label.is_empty() {
        return Err(NameError("the name has an empty label"));
    }
    if label.len() > MAX_LABEL {
        return Err(NameError("a label of the name is longer than 63 bytes"));
    }
    if !label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
        return Err(NameError("a name is made of letters, digits, hyphens and dots"));
    }
    if label.starts_with('-') || label.ends_with('-') {
        return Err(NameError("a label of the name begins or ends with a hyphen"));
    }
    Ok(())
}

/// Whether some parser takes a name that ends in this label for an IPv4 address (`1`, `0x7f`, `017`).
fn is_numeric(label: &str) -> bool {
    let hex = label.strip_prefix("0x").or_else(|| label.strip_prefix("0X"));
    label.bytes().all(|byte| byte.is_ascii_digit())
        || hex.is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// A name with punycode must be what its own Unicode form encodes to, else two parsers could differ on it.
fn check_punycode(lower: &str) -> Result<(), NameError> {
    let encoded =
        Uts46::new().to_ascii(lower.as_bytes(), AsciiDenyList::STD3, Hyphens::Allow, DnsLength::Verify);
    match encoded {
        Ok(same) if same == lower => Ok(()),
        Ok(_) | Err(_) => Err(NameError("a punycode label of the name is not valid")),
    }
}

/// Reads IPv6 without brackets or zone; IPv4-mapped addresses become IPv4.
fn parse_v6(text: &str) -> Result<Host, NameError> {
    if text.contains('%') {
        return Err(NameError("a zone id is not accepted in an address"));
    }
    text.parse::<Ipv6Addr>().map(|ip| Host::Ip(IpAddr::V6(ip).to_canonical())).map_err(|_| {
        NameError(
            "a host has a colon in IPv6 addresses alone, and this is none: no scheme or port belongs here",
        )
    })
}

/// Reads a port: 1 to 65535 in decimal digits, no leading zero.
fn parse_port(digits: &str) -> Result<u16, NameError> {
    let plain = digits.bytes().all(|byte| byte.is_ascii_digit()) && !digits.starts_with('0');
    digits.parse::<u16>().ok().filter(|_| plain).ok_or(NameError("the port is not a number from 1 to 65535"))
}

impl Borrow<str> for DnsName {
    fn borrow(&self) -> &str {
        &self.0
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

impl fmt::Display for Authority {
    /// As a URI has it: IPv6 in brackets, the port where there is one.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            Host::Ip(IpAddr::V6(ip)) => write!(f, "[{ip}]")?,
            Host::Ip(IpAddr::V4(_)) | Host::Name(_) => self.host.fmt(f)?,
        }
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn canonical(text: &str) -> Option<String> {
        Host::parse(text).ok().map(|host| host.to_string())
    }

    #[test]
    fn case_and_one_trailing_dot_do_not_matter() {
        for text in ["api.example.com", "API.Example.COM", "api.example.com.", "aPI.example.com."] {
            assert_eq!(canonical(text).as_deref(), Some("api.example.com"), "{text}");
        }
        assert_eq!(canonical("example.com.."), None);
        assert_eq!(canonical("."), None);
        assert_eq!(canonical(""), None);
    }

    #[test]
    fn real_names_are_accepted() {
        let names = [
            "localhost",
            "r3---sn-4g5e6nsz.googlevideo.com",
            "xn--bcher-kva.example",
            "1password.com",
            "3.example",
            "a1b2.0xyz",
        ];
        for name in names {
            assert_eq!(canonical(name).as_deref(), Some(name));
        }
        assert_eq!(canonical("XN--BCHER-KVA.example").as_deref(), Some("xn--bcher-kva.example"));
    }

    #[test]
    fn what_two_parsers_read_differently_is_refused() {
        let refused = [
            "evil.com\0.example.com",
            "example%2ecom",
            "example。com",
            "example\u{ff0e}com",
            "bücher.example",
            "user@example.com",
            "my_bucket.example.com",
            "exa mple.com",
            "example.com\t",
            " example.com",
            "example.com/",
            "example.com\\",
            "example.com#",
            "example.com?",
            "*.example.com",
            "-a.example.com",
            "a-.example.com",
            "a..example.com",
            ".example.com",
            "xn--a.example",
            "xn--.example",
            "xn--example-.com",
            "xn--n3h\u{301}.example",
        ];
        for text in refused {
            assert_eq!(canonical(text), None, "{text:?}");
        }
    }

    #[test]
    fn ipv4_has_one_form() {
        assert_eq!(canonical("127.0.0.1").as_deref(), Some("127.0.0.1"));
        let refused = [
            "127.1",
            "2130706433",
            "0x7f000001",
            "0x7f.0.0.1",
            "0177.0.0.1",
            "127.0.0.01",
            "127.0.0.0x1",
            "127.0.0.1.",
            "1.2.3",
            "1.2.3.4.5",
            "1.2.3.256",
            "a.1",
            "a.0x",
            "[127.0.0.1]",
        ];
        for text in refused {
            assert_eq!(canonical(text), None, "{text}");
        }
    }

    #[test]
    fn ipv6_is_read_with_and_without_brackets_but_never_with_a_zone() {
        assert_eq!(canonical("[::1]").as_deref(), Some("::1"));
        assert_eq!(canonical("2001:DB8:0:0::1").as_deref(), Some("2001:db8::1"));
        assert_eq!(canonical("[::ffff:10.0.0.1]").as_deref(), Some("10.0.0.1"));
        for text in ["[fe80::1%eth0]", "[fe80::1%25eth0]", "[::1", "::1]", "[v1.x]", "[example.com]", "[]"] {
            assert_eq!(canonical(text), None, "{text}");
        }
    }

    #[test]
    fn lengths_are_bounded() {
        let label = "a".repeat(63);
        assert!(Host::parse(&format!("{label}.com")).is_ok());
        assert!(Host::parse(&format!("{label}a.com")).is_err());
        let name = format!("{label}.{label}.{label}.{}", "a".repeat(61));
        assert_eq!(name.len(), 253);
        assert!(Host::parse(&name).is_ok());
        assert!(Host::parse(&format!("{name}.")).is_ok());
        assert!(Host::parse(&format!("{name}a")).is_err());
    }

    #[test]
    fn an_authority_has_a_plain_port_or_none() {
        let read = |text: &str| Authority::parse(text).ok().map(|a| (a.host.to_string(), a.port));
        assert_eq!(read("Example.com:443"), Some(("example.com".into(), Some(443))));
        assert_eq!(read("example.com"), Some(("example.com".into(), None)));
        assert_eq!(read("[::1]:8443"), Some(("::1".into(), Some(8443))));
        assert_eq!(read("[::1]"), Some(("::1".into(), None)));
        assert_eq!(read("10.0.0.1:80"), Some(("10.0.0.1".into(), Some(80))));
        let refused = [
            "example.com:",
            "example.com:0",
            "example.com:+443",
            "example.com:0443",
            "example.com:65536",
            "example.com:443:443",
            "example.com:https",
            "user@example.com:443",
            "user:pass@example.com",
            "::1",
            "::1:443",
            "[::1]443",
            ":443",
            "",
        ];
        for text in refused {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn a_written_name_may_be_internationalised() {
        let written = |text: &str| DnsName::parse_written(text).ok().map(|name| name.to_string());
        assert_eq!(written("Bücher.example").as_deref(), Some("xn--bcher-kva.example"));
        assert_eq!(written("faß.example").as_deref(), Some("xn--fa-hia.example"));
        assert_eq!(written("bücher。example"), None);
        assert_eq!(written("bü_cher.example"), None);
        assert_eq!(written("٠.example.١"), None);
    }

    #[test]
    fn an_authority_prints_what_it_reads() {
        for text in ["example.com:443", "[2001:db8::1]:443", "10.0.0.1", "[::1]"] {
            assert_eq!(Authority::parse(text).unwrap().to_string(), text);
        }
    }

    proptest! {
        #[test]
        fn canonicalising_twice_changes_nothing(text in "\\PC{0,80}|[a-zA-Z0-9.:\\[\\]%x-]{0,40}") {
            if let Ok(host) = Host::parse(&text) {
                prop_assert_eq!(Host::parse(&host.to_string()), Ok(host));
            }
            if let Ok(authority) = Authority::parse(&text) {
                prop_assert_eq!(Authority::parse(&authority.to_string()), Ok(authority));
            }
            if let Ok(name) = DnsName::parse_written(&text) {
                prop_assert_eq!(DnsName::parse(name.as_str()), Ok(name));
            }
        }
    }
}
