//! `HostIn`: the host of a URL, by the patterns of `hosts`.

use serde_json::Value;

use crate::name::host::{Authority, DnsName, Host};
use crate::policy::mistake::{self, Beside};
use crate::policy::pattern::Pattern;
use crate::policy::section::tool::written::Scalar;

use super::{Compared, Comparing, Operator, ParamValue, Wrong, read};

/// Any of these hosts.
#[derive(Debug)]
pub(super) struct HostIn(Vec<Pattern>);

impl HostIn {
    pub(super) fn new(values: &[Scalar]) -> Result<Self, Wrong> {
        read(values, |value| match value {
            Scalar::Text(text) => {
                Pattern::parse(text).map_err(|error| mistake::of_host(text, &error, Beside::Nothing))
            }
            Scalar::Number(_) | Scalar::Bool(_) => Err("expected a host in quotes".to_owned()),
        })
        .map(Self)
    }
}

impl Operator for HostIn {
    fn compare(&self, element: &ParamValue<'_>, _: Comparing<'_>) -> Compared {
        let text = match element {
            ParamValue::Missing | ParamValue::Nothing | ParamValue::Unbound => return Compared::Missing,
            ParamValue::Text(text) => text,
            ParamValue::Json(Value::String(text)) => text.as_str(),
            ParamValue::Json(_) => return Compared::Unreadable,
        };
        let is_listed = |host: Host| self.0.iter().any(|pattern| pattern.matches(&host));
        host(text).map_or(Compared::Unreadable, |host| Compared::Is(is_listed(host)))
    }

    /// URLs do not become a URL by being joined.
    fn joins(&self) -> bool {
        false
    }
}

/// The host that every client would connect to. None where clients differ (the WHATWG's URL standard, RFC 3986, and
/// those that put `https://` before a text without a scheme): users, backslashes, white space, missing or further
/// slashes, escapes and odd spellings of addresses are not read.
fn host(text: &str) -> Option<Host> {
    if text.contains(char::is_control) || text.trim() != text {
        return None;
    }
    let (is_url, rest) = match text.split_once("://") {
        Some((scheme, rest)) if is_scheme(scheme) => (true, rest),
        Some(_) | None => (false, text),
    };
    // Some clients end the authority at a slash alone: a `@` behind `?` or `#` would then end a user.
    let widest = rest.split('/').next().unwrap_or_default();
    if widest.contains(['@', '\\']) || widest.contains(char::is_whitespace) {
        return None;
    }
    let authority = widest.split(['?', '#']).next().unwrap_or_default();
    let host = parse(authority)?;
    // `localhost:80` could be a scheme, and `https:80` is.
    let is_certain = is_url || host.name().is_none_or(|name| name.parent().is_some());
    Some(host).filter(|_| is_certain)
}

/// `https`, as RFC 3986, section 3.1, has it.
fn is_scheme(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
}

/// Reads an authority as names are read everywhere here; an internationalised name becomes its A-labels.
fn parse(authority: &str) -> Option<Host> {
    if authority.is_ascii() {
        // `example.com:` is its default port.
        let authority = authority.strip_suffix(':').unwrap_or(authority);
        return Authority::parse(authority).ok().map(|authority| authority.host);
    }
    let (name, port) = authority.split_once(':').unwrap_or((authority, ""));
    // IDNA 2003 and 2008 differ on these letters (UTS 46, section 6), and not every client leaves out what cannot be seen.
    let is_letter = |c: char| (c.is_alphanumeric() && !"ßẞςΣ".contains(c)) || "-.".contains(c);
    if !name.chars().all(is_letter) {
        return None;
    }
    let has_port = port.bytes().all(|byte| byte.is_ascii_digit());
    DnsName::parse_written(name).ok().filter(|_| has_port).map(Host::Name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<String> {
        host(text).map(|host| host.to_string())
    }

    #[test]
    fn the_host_of_a_url_is_read_in_its_one_form() {
        for (text, expected) in [
            ("https://docs.example.com/a?b#c", "docs.example.com"),
            ("HTTPS://Docs.Example.COM.:8443", "docs.example.com"),
            ("https://docs.example.com", "docs.example.com"),
            ("https://docs.example.com:/x", "docs.example.com"),
            ("https://docs.example.com?q=a/b@c", "docs.example.com"),
            ("https://docs.example.com/a b/@x\\y", "docs.example.com"),
            ("docs.example.com/a", "docs.example.com"),
            ("docs.example.com:8080", "docs.example.com"),
            ("https://bücher.example/", "xn--bcher-kva.example"),
            ("https://xn--bcher-kva.example/", "xn--bcher-kva.example"),
            ("http://10.0.0.1/", "10.0.0.1"),
            ("http://[::ffff:10.0.0.1]:80/", "10.0.0.1"),
            ("http://[2001:db8::1]/", "2001:db8::1"),
            ("http://localhost:3000/", "localhost"),
            ("wss://docs.example.com/", "docs.example.com"),
        ] {
            assert_eq!(read(text).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn what_clients_read_differently_is_not_read() {
        for text in [
            "",
            "/a/b",
            "//evil.test/",
            "https://",
            "https:///evil.test/",
            "https:/evil.test/",
            "https:evil.test",
            "https:80/evil.test",
            "http:\\\\evil.test",
            "https://docs.example.com\\@evil.test/",
            "https://docs.example.com\\.evil.test/",
            "https://docs.example.com@evil.test/",
            "https://docs.example.com:443@evil.test/",
            "https://evil.test#@docs.example.com/",
            "https://evil.test?@docs.example.com/",
            " https://docs.example.com/",
            "https://docs.example.com/\n",
            "https://docs.exa\tmple.com/",
            "https://docs.example.com /",
            "https://docs%2eexample.com/",
            "https://docs.example.com%00.evil.test/",
            "https://docs.example。com/",
            "https://faß.example/",
            "https://docs.example.com\u{ad}/",
            "https://docs.example.com\u{200b}/",
            "https://docs.example.com\u{2044}.evil.test/",
            "https://127.1/",
            "https://0x7f000001/",
            "https://2130706433/",
            "https://127.0.0.1./",
            "https://１２７.0.0.1/",
            "https://[fe80::1%eth0]/",
            "https://docs.example.com:99999/",
            "https://docs..example.com/",
            "view-source:https://docs.example.com/",
            "javascript:alert(1)",
            "data:text/html,x",
            "mailto:a@docs.example.com",
            "file:///etc/passwd",
            "localhost:3000",
        ] {
            assert_eq!(read(text), None, "{text:?}");
        }
    }
}
