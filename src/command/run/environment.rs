//! What the command of a run finds in its environment: the way through the gateway, whom to trust, and placeholders
//! instead of keys.

use std::ffi::OsString;
use std::path::Path;

use crate::policy::credential::{Credential, Source};

/// Set in a run, so that one is not started inside another.
pub(in crate::command) const MARK: &str = "POSTERN_RUN";

const PROXIES: [&str; 6] =
    ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"];

pub(in crate::command) use crate::clients::{ADDED_ROOTS, WHOLE_ROOTS as BUNDLES};

/// Like [`BUNDLES`], of fewer clients: replaced where they are set, since they would win.
const RARE_BUNDLES: &[&str] =
    &["NIX_SSL_CERT_FILE", "HTTPLIB2_CA_CERTS", "CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE", "npm_config_cafile"];

/// The loopback stays the command's own, as it does behind the redirect of Kubernetes. Nothing else is excepted: an
/// entry here is a way around the gateway.
const NO_PROXY: &str = "localhost,127.0.0.1,::1";

/// Where the command is to go and whom to trust.
pub(super) struct Way<'a> {
    /// With the password.
    pub(super) proxy: &'a str,
    pub(super) bundle: &'a Path,
    pub(super) added_roots: &'a Path,
}

/// The variables to set for the command, over those that the user has.
pub(super) fn of(
    way: &Way<'_>,
    credentials: &[&Credential],
    users: &[(OsString, OsString)],
) -> Vec<(OsString, OsString)> {
    let is_set = |name: &&&str| users.iter().any(|(key, _)| key == **name);
    let proxies = PROXIES.iter().map(|name| (name, OsString::from(way.proxy)));
    let exceptions = ["NO_PROXY", "no_proxy"].map(|name| (name, OsString::from(NO_PROXY)));
    let switches = [("NODE_USE_ENV_PROXY", OsString::from("1")), (MARK, OsString::from("1"))];
    let bundles = BUNDLES.iter().chain(RARE_BUNDLES.iter().filter(is_set));
    let bundles = bundles.map(|name| (name, way.bundle.as_os_str().to_owned()));
    let added = ADDED_ROOTS.iter().map(|name| (name, way.added_roots.as_os_str().to_owned()));
    let named = proxies.chain(bundles).chain(added).map(|(name, value)| (*name, value));
    named
        .chain(exceptions)
        .chain(switches)
        .map(|(name, value)| (OsString::from(name), value))
        .chain(placeholders(credentials, users))
        .collect()
}

/// A placeholder for every variable that holds a key which the gateway takes from the environment: the one that the
/// policy names, and any other with the same value.
fn placeholders<'a>(
    credentials: &'a [&Credential],
    users: &'a [(OsString, OsString)],
) -> impl Iterator<Item = (OsString, OsString)> + 'a {
    credentials.iter().flat_map(move |credential| {
        let Source::Env(variable) = &credential.source else { return Vec::new() };
        let Some((_, key)) = users.iter().find(|(name, _)| name == variable.as_str()) else {
            return Vec::new();
        };
        let holders = users.iter().filter(|(_, value)| value == key && !key.is_empty());
        holders.map(|(name, _)| (name.clone(), OsString::from(&credential.placeholder))).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decision::RuleId;

    fn variables(pairs: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
        pairs.iter().map(|(name, value)| (name.into(), value.into())).collect()
    }

    fn credential(source: Source) -> Credential {
        Credential {
            id: RuleId::new("a/b/credentials/c"),
            name: "c".into(),
            hosts: Vec::new(),
            ports: None,
            placeholder: "postern:c".into(),
            require: false,
            source,
            signing: None,
        }
    }

    fn set(credentials: &[&Credential], users: &[(&str, &str)]) -> impl Fn(&str) -> Option<String> + use<> {
        let way = Way {
            proxy: "http://postern:word@127.0.0.1:1",
            bundle: Path::new("/b.pem"),
            added_roots: Path::new("/a.pem"),
        };
        let all = of(&way, credentials, &variables(users));
        move |name| {
            let values: Vec<_> = all.iter().filter(|(key, _)| key == name).collect();
            assert!(values.len() < 2, "{name} is set twice");
            values.first().map(|(_, value)| value.to_str().unwrap().to_owned())
        }
    }

    #[test]
    fn every_client_finds_the_gateway_and_its_ca() {
        let set = set(&[], &[("NO_PROXY", "*"), ("NIX_SSL_CERT_FILE", "/x")]);
        for name in PROXIES {
            assert_eq!(set(name).unwrap(), "http://postern:word@127.0.0.1:1", "{name}");
        }
        for name in BUNDLES.iter().chain(&["NIX_SSL_CERT_FILE"]) {
            assert_eq!(set(name).unwrap(), "/b.pem", "{name}");
        }
        assert_eq!(set("NODE_EXTRA_CA_CERTS").unwrap(), "/a.pem");
        assert_eq!(set("NODE_USE_ENV_PROXY").unwrap(), "1");
        assert_eq!(set("HTTPLIB2_CA_CERTS"), None);
    }

    #[test]
    fn the_users_exceptions_are_no_way_around_the_gateway() {
        let set = set(&[], &[("NO_PROXY", "*"), ("no_proxy", "evil.example")]);
        assert_eq!((set("NO_PROXY").unwrap(), set("no_proxy").unwrap()), (NO_PROXY.into(), NO_PROXY.into()));
    }

    #[test]
    fn a_key_that_the_gateway_takes_from_the_environment_is_a_placeholder_in_the_commands() {
        let (from_env, from_file) =
            (credential(Source::Env("REAL_KEY".into())), credential(Source::File("/k".into())));
        let users = [("REAL_KEY", "sk-canary-1"), ("COPY", "sk-canary-1"), ("OTHER", "sk-other")];
        let set = set(&[&from_env, &from_file], &users);
        assert_eq!(
            (set("REAL_KEY").unwrap(), set("COPY").unwrap()),
            ("postern:c".into(), "postern:c".into())
        );
        assert_eq!(set("OTHER"), None);
    }
}
