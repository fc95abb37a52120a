//! The door on a listener that stands for one upstream: below a path that the upstream never has.

use std::borrow::Cow;

use http::request::Parts;
use http::{Version, header};

use crate::name::gateway;
use crate::name::host::{Authority, Host};
use crate::name::path::NormalPath;
use crate::wire::percent;

/// The path as the door knows it, of a request whose path is below the door's, or could be read so; empty where it can be
/// read in different ways.
pub(super) fn path(raw: &str) -> Option<Cow<'_, str>> {
    let normal = NormalPath::parse(raw);
    if normal.is_ambiguous() {
        return names_door(raw).then_some(Cow::Borrowed(""));
    }
    let below = format!("{}/", normal.as_str());
    let rest = below.strip_prefix(gateway::BELOW)?;
    Some(Cow::Owned(format!("/{}", rest.strip_suffix('/').unwrap_or_default())))
}

/// Whether some server could read the door's path in an ambiguous one.
fn names_door(raw: &str) -> bool {
    let decoded = percent::decode(raw.as_bytes());
    let own = gateway::BELOW.trim_matches('/').as_bytes();
    percent::decode(&decoded).split(|byte| matches!(byte, b'/' | b'\\' | b';')).any(|segment| segment == own)
}

/// Whether a request names its host by address, as `localhost` or as the gateway itself. Another name could be one that a
/// page in a browser had resolved to this machine, to read the answers as its own (DNS rebinding).
pub(super) fn is_called_directly(parts: &Parts) -> bool {
    let fields = parts.headers.get_all(header::HOST).iter().map(|field| field.to_str().ok());
    let mut named = parts.uri.authority().map(|authority| Some(authority.as_str())).into_iter().chain(fields);
    let is_direct = |text: Option<&str>| match text.and_then(|text| Authority::parse(text).ok()) {
        Some(Authority { host: Host::Ip(_), .. }) => true,
        Some(Authority { host: Host::Name(name), .. }) => {
            name.as_str() == "localhost" || gateway::is_own(&name)
        }
        None => false,
    };
    match named.next() {
        None => parts.version == Version::HTTP_10,
        Some(first) => is_direct(first) && named.all(is_direct),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(hosts: &[&str]) -> Parts {
        let request =
            hosts.iter().fold(http::Request::get("/x"), |request, host| request.header("host", *host));
        request.body(()).unwrap().into_parts().0
    }

    #[test]
    fn the_door_is_below_one_path_in_every_spelling_of_it() {
        for (raw, path_of_door) in [
            ("/.postern/why/x", Some("/why/x")),
            ("/.postern/", Some("/")),
            ("/.postern", Some("/")),
            ("/.postern/%6dcp", Some("/mcp")),
            ("/.postern/evidence/a/", Some("/evidence/a/")),
            ("/%2epostern/mcp", Some("")),
            ("//.postern/x", Some("")),
            ("/a/../.postern/x", Some("")),
            ("/.postern%2fx", Some("")),
            ("/.postern%252fx/..", Some("")),
            ("/.postern;x/../y", Some("")),
            ("/.posternal", None),
            ("/a/.postern/x", None),
            ("/v1/messages", None),
            ("/a/../b", None),
            ("/", None),
            ("", None),
        ] {
            assert_eq!(path(raw).as_deref(), path_of_door, "{raw}");
        }
    }

    #[test]
    fn a_name_that_a_page_could_have_chosen_is_not_answered() {
        for hosts in
            [&["127.0.0.1:15003"], &["[::1]:15003"], &["localhost"], &["LOCALHOST:1"], &["postern.internal"]]
        {
            assert!(is_called_directly(&parts(hosts)), "{hosts:?}");
        }
        for hosts in [
            &["evil.example:15003"][..],
            &["localhost.evil.example"],
            &["127.0.0.1", "evil.example"],
            &["a b"],
            &[],
        ] {
            assert!(!is_called_directly(&parts(hosts)), "{hosts:?}");
        }
    }
}
