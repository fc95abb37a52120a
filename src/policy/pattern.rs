//! Host patterns: exact names, wildcards on label boundaries, address literals.

use std::fmt;
use std::net::IpAddr;

use crate::name::gateway;
use crate::name::host::{DnsName, Host, NameError};

/// What an entry of `hosts` stands for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Pattern {
    /// `api.example.com`
    Exact(DnsName),
    /// `*.example.com`: exactly one label before it.
    OneLabel(DnsName),
    /// `**.example.com`: one or more labels before it, never the apex.
    Labels(DnsName),
    /// `**`: every name, no address.
    Every,
    /// An address literal: the flow to exactly that address that has no name.
    Ip(IpAddr),
}

impl Pattern {
    /// Reads a pattern as a policy's author writes it; names may be internationalised.
    pub fn parse(text: &str) -> Result<Self, NameError> {
        if text == "**" {
            return Ok(Self::Every);
        }
        if let Some(suffix) = text.strip_prefix("**.") {
            return parse_suffix(suffix).map(Self::Labels);
        }
        if let Some(suffix) = text.strip_prefix("*.") {
            return parse_suffix(suffix).map(Self::OneLabel);
        }
        if text.contains('*') {
            return Err(NameError("a wildcard is `*.` or `**.` before a name, or `**` for every name"));
        }
        if text.is_ascii() {
            return match Host::parse(text)? {
                Host::Name(name) => gateway::refuse_own(name).map(Self::Exact),
                Host::Ip(ip) => Ok(Self::Ip(ip)),
            };
        }
        DnsName::parse_written(text).and_then(gateway::refuse_own).map(Self::Exact)
    }

    /// Whether the pattern covers this host.
    pub fn matches(&self, host: &Host) -> bool {
        match (self, host) {
            (Self::Ip(own), Host::Ip(ip)) => own == ip,
            (Self::Every, Host::Name(_)) => true,
            (Self::Exact(own), Host::Name(name)) => own == name,
            (Self::OneLabel(suffix), Host::Name(name)) => name.parent() == Some(suffix.as_str()),
            (Self::Labels(suffix), Host::Name(name)) => {
                let before = name.as_str().strip_suffix(suffix.as_str());
                before.is_some_and(|labels| labels.ends_with('.'))
            }
            (Self::Ip(_), Host::Name(_)) | (_, Host::Ip(_)) => false,
        }
    }
}

/// Reads what follows a wildcard: a name, never an address or a further wildcard.
fn parse_suffix(text: &str) -> Result<DnsName, NameError> {
    if text.contains('*') {
        return Err(NameError("only the first label may be a wildcard"));
    }
    DnsName::parse_written(text)
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact(name) => name.fmt(f),
            Self::OneLabel(suffix) => write!(f, "*.{suffix}"),
            Self::Labels(suffix) => write!(f, "**.{suffix}"),
            Self::Every => f.write_str("**"),
            Self::Ip(ip) => ip.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn covers(pattern: &str, host: &str) -> bool {
        Pattern::parse(pattern).unwrap().matches(&Host::parse(host).unwrap())
    }

    #[test]
    fn one_star_is_exactly_one_label() {
        assert!(covers("*.openai.com", "api.openai.com"));
        for host in ["openai.com", "a.b.openai.com", "evil-openai.com", "api.openai.com.evil.com"] {
            assert!(!covers("*.openai.com", host), "{host}");
        }
    }

    #[test]
    fn two_stars_are_one_label_or_more_but_not_the_apex() {
        assert!(covers("**.openai.com", "api.openai.com"));
        assert!(covers("**.openai.com", "a.b.openai.com"));
        for host in ["openai.com", "evilopenai.com", "a.openai.com.evil.com"] {
            assert!(!covers("**.openai.com", host), "{host}");
        }
    }

    #[test]
    fn the_gateways_own_name_cannot_be_written() {
        for text in ["postern.internal", "Postern.Internal.", "\u{ff30}ostern.internal"] {
            assert!(Pattern::parse(text).unwrap_err().0.contains("itself"), "{text}");
        }
        for text in ["*.internal", "**.internal", "**", "a.postern.internal", "*.postern.internal"] {
            Pattern::parse(text).unwrap();
        }
    }

    #[test]
    fn two_stars_alone_are_every_name_and_no_address() {
        assert!(covers("**", "localhost"));
        assert!(covers("**", "a.b.c"));
        assert!(!covers("**", "10.0.0.1"));
    }

    #[test]
    fn an_address_matches_itself_in_any_spelling() {
        assert!(covers("10.0.0.1", "[::ffff:10.0.0.1]"));
        assert!(covers("2001:DB8::1", "2001:db8:0::1"));
        assert!(covers("[2001:db8::1]", "2001:db8::1"));
        assert!(!covers("10.0.0.1", "10.0.0.2"));
    }

    #[test]
    fn both_sides_are_lower_case_and_a_labels() {
        assert!(covers("API.OpenAI.com", "api.openai.COM."));
        assert!(covers("*.bücher.example", "www.xn--bcher-kva.example"));
    }

    #[test]
    fn other_wildcards_are_refused() {
        for text in
            ["*", "a*.com", "*a.com", "a.*.com", "*.*.com", "**.*.com", "***", "**.", "*.10.0.0.1", "*."]
        {
            assert!(Pattern::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_pattern_prints_as_it_is_written() {
        for text in ["a.example", "*.a.example", "**.a.example", "**", "10.0.0.1", "::1"] {
            assert_eq!(Pattern::parse(text).unwrap().to_string(), text);
        }
    }
}
