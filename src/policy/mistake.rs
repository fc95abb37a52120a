//! Explains why a text is no host: it is a URL, a range, a list, or has typographic quotes.

use ipnet::IpNet;

use crate::name::host::{NameError, QUOTED, TYPOGRAPHIC};

/// Which fields stand beside the host, for what belongs to them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Beside {
    /// `ports`, `endpoints` and `cidrs` of a destination.
    Destination,
    /// `ports` of a credential.
    Credential,
    /// Nothing: the values of `HostIn`.
    Nothing,
}

/// Whether a text begins or ends with a typographic quote, which YAML takes for a letter.
pub fn is_quoted(text: &str) -> bool {
    let is_quote = |c: char| TYPOGRAPHIC.contains(&c);
    text.starts_with(is_quote) || text.ends_with(is_quote)
}

/// Says what is wrong with a text that is no host and what to write instead; else returns the parser's error.
pub(super) fn of_host(text: &str, error: &NameError, beside: Beside) -> String {
    if text.contains(TYPOGRAPHIC) {
        return QUOTED.to_owned();
    }
    if text.contains(['"', '\'']) {
        return "has quotes inside the text; write them around it, or none".to_owned();
    }
    if text.parse::<IpNet>().is_ok() {
        let remedy = match beside {
            Beside::Destination => "it belongs to `cidrs`, in a rule without `hosts`",
            Beside::Credential | Beside::Nothing => "only hosts can stand here",
        };
        return format!("is a range of addresses; {remedy}");
    }
    if text.trim() != text {
        return format!("has white space before or behind it; write {}", text.trim());
    }
    if text.contains([',', ' ']) {
        return "is no host; each host is an item of the list".to_owned();
    }
    if let Some(name) = text.strip_prefix('.') {
        return format!(
            "begins with a dot; write *.{name} for one label before the name, **.{name} for any number"
        );
    }
    of_url(text, beside).unwrap_or_else(|| error.to_string())
}

/// Explains a host with a scheme, a user, a port or a path; none where the text has none of them.
fn of_url(text: &str, beside: Beside) -> Option<String> {
    let (scheme, rest) = text.split_once("://").map_or((None, text), |(scheme, rest)| (Some(scheme), rest));
    let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let (user, address) =
        authority.rsplit_once('@').map_or((None, authority), |(user, host)| (Some(user), host));
    let (host, port) = match address.rsplit_once(':') {
        Some((host, port)) if !host.contains(':') || host.ends_with(']') => (host, Some(port)),
        _ => (address, None),
    };
    let mut parts = Vec::new();
    parts.extend(scheme.map(|_| "a scheme"));
    parts.extend(user.map(|_| "a user"));
    parts.extend(port.map(|_| "a port"));
    parts.extend((!path.is_empty()).then_some("a path"));
    let (last, others) = parts.split_last()?;
    let parts =
        if others.is_empty() { (*last).to_owned() } else { format!("{} and {last}", others.join(", ")) };
    let host = host.trim_matches(['[', ']']);
    let mut remedy =
        if host.is_empty() { "write the host alone".to_owned() } else { format!("write {host} alone") };
    if let Some(port) = port.filter(|_| beside != Beside::Nothing) {
        remedy += &format!(", and `ports: [{port}]` in the rule where it is not the usual one");
    }
    if path.len() > 1 && beside == Beside::Destination {
        remedy += ", and the path in `endpoints` (with action Inspect)";
    }
    Some(format!("has {parts} beside the host; {remedy}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::pattern::Pattern;

    fn said(text: &str) -> String {
        of_host(text, &Pattern::parse(text).unwrap_err(), Beside::Destination)
    }

    #[test]
    fn what_stands_beside_a_host_is_named_and_where_it_belongs() {
        for (text, expected) in [
            ("https://api.example.com", "has a scheme beside the host; write api.example.com alone"),
            (
                "https://api.example.com/",
                "has a scheme and a path beside the host; write api.example.com alone",
            ),
            (
                "api.example.com:8443",
                "has a port beside the host; write api.example.com alone, and `ports: [8443]` in the rule where it is \
                 not the usual one",
            ),
            (
                "api.example.com/v1/*",
                "has a path beside the host; write api.example.com alone, and the path in `endpoints` (with action \
                 Inspect)",
            ),
            (
                "http://me:word@*.example.com",
                "has a scheme and a user beside the host; write *.example.com alone",
            ),
            (
                "[2001:db8::1]:443",
                "has a port beside the host; write 2001:db8::1 alone, and `ports: [443]` in the",
            ),
            ("10.0.0.0/8", "is a range of addresses; it belongs to `cidrs`"),
            (".example.com", "begins with a dot; write *.example.com for one label"),
            ("api.example.com ", "has white space before or behind it; write api.example.com"),
            ("\t*.example.com", "has white space before or behind it; write *.example.com"),
            ("a.example, b.example", "is no host; each host is an item of the list"),
            ("“api.example.com”", "has typographic quotes in it"),
            ("*.example.com’", "has typographic quotes in it"),
            ("'api.example.com'", "has quotes inside the text"),
            ("fe80::1%eth0", "a zone id is not accepted"),
            ("2001:db8:::1", "a host has a colon"),
        ] {
            assert!(said(text).starts_with(expected), "{text}: {}", said(text));
        }
    }

    #[test]
    fn quotes_around_a_text_are_told_from_those_inside() {
        assert!(is_quoted("“rm -rf”") && is_quoted("app”") && is_quoted("‘x"));
        assert!(!is_quoted("it’s done") && !is_quoted("\"x\"") && !is_quoted(""));
    }
}
