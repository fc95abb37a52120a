//! Endpoints that hand out further credentials: a session token, an ephemeral key, a deploy key. An agent that
//! reached one with our key attached would then hold a real one.

mod catalogue;

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use foldhash::fast::FixedState;
use http::Method;

use crate::name::host::DnsName;
use crate::name::lenient;
use catalogue::{CATALOGUE, Calls};

/// The catalogue, its patterns taken apart once: every request with a credential is compared with all of it.
static ENDPOINTS: LazyLock<Endpoints> = LazyLock::new(Endpoints::new);

/// What the endpoint hands out, in words, if it is in the catalogue. `path` is as it stands on the wire: whatever
/// a host could read it as is compared, so that no spelling hides an endpoint.
pub fn mints(method: &Method, host: &DnsName, path: &str) -> Option<&'static str> {
    let readings = lenient::readings(path);
    let met = readings.iter().filter_map(|path| ENDPOINTS.first(method, host.as_str(), &segments(path)));
    met.min_by_key(|endpoint| endpoint.row).map(|endpoint| endpoint.what)
}

fn segments(path: &str) -> Vec<&str> {
    path.split('/').filter(|segment| !segment.is_empty()).collect()
}

/// All rows, by the last segment of their paths: nearly every row is out by it.
struct Endpoints {
    by_last: HashMap<&'static str, Vec<Endpoint>, FixedState>,
    /// Those that end in no word.
    others: Vec<Endpoint>,
}

/// One row of the catalogue.
struct Endpoint {
    /// Its place: of two that are met, the first is named.
    row: usize,
    hosts: Arc<[HostPattern]>,
    calls: Calls,
    path: Vec<SegmentPattern>,
    what: &'static str,
}

impl Endpoints {
    fn new() -> Self {
        let mut endpoints = Self { by_last: HashMap::default(), others: Vec::new() };
        let rows = CATALOGUE.iter().flat_map(|family| {
            let hosts: Arc<[HostPattern]> = family.hosts.iter().copied().map(HostPattern::of).collect();
            family.endpoints.iter().map(move |row| (Arc::clone(&hosts), *row))
        });
        for (row, (hosts, (calls, path, what))) in rows.enumerate() {
            let path: Vec<_> = segments(path).into_iter().map(SegmentPattern::of).collect();
            let alike = match path.last() {
                Some(SegmentPattern::Word(word)) => endpoints.by_last.entry(*word).or_default(),
                Some(SegmentPattern::Any | SegmentPattern::Ending(_)) | None => &mut endpoints.others,
            };
            alike.push(Endpoint { row, hosts, calls, path, what });
        }
        endpoints
    }

    /// The first row that a call meets.
    fn first(&self, method: &Method, host: &str, path: &[&str]) -> Option<&Endpoint> {
        let by_last = path.last().and_then(|last| self.by_last.get(*last));
        let rows = by_last.into_iter().flatten().chain(&self.others);
        rows.filter(|endpoint| endpoint.is_met(method, host, path)).min_by_key(|endpoint| endpoint.row)
    }
}

impl Endpoint {
    fn is_met(&self, method: &Method, host: &str, path: &[&str]) -> bool {
        let serves = self.hosts.is_empty() || self.hosts.iter().any(|pattern| pattern.matches(host));
        serves && self.calls.include(method) && matches_from(&self.path, path)
    }
}

enum HostPattern {
    Name(&'static str),
    /// What stands before a part of at least one character, and behind it.
    Around(&'static str, &'static str),
}

impl HostPattern {
    fn of(pattern: &'static str) -> Self {
        pattern.split_once('*').map_or(Self::Name(pattern), |(before, behind)| Self::Around(before, behind))
    }

    fn matches(&self, host: &str) -> bool {
        match self {
            Self::Name(name) => host == *name,
            Self::Around(before, behind) => host
                .strip_prefix(before)
                .is_some_and(|rest| rest.len() > behind.len() && rest.ends_with(behind)),
        }
    }
}

impl Calls {
    fn include(self, method: &Method) -> bool {
        match self {
            Self::All => true,
            Self::Writes => !matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS),
        }
    }
}

/// A segment of a path, or several.
#[derive(Clone, Copy)]
enum SegmentPattern {
    /// `**`: any number.
    Any,
    /// `*`, or `*:verb`: one that ends so.
    Ending(&'static str),
    Word(&'static str),
}

fn matches_from(pattern: &[SegmentPattern], path: &[&str]) -> bool {
    match (pattern, path) {
        ([], rest) => rest.is_empty(),
        ([SegmentPattern::Any, rest @ ..], path) => {
            (0..=path.len()).any(|skip| matches_from(rest, &path[skip..]))
        }
        ([first, pattern @ ..], [segment, path @ ..]) => first.fits(segment) && matches_from(pattern, path),
        ([_, ..], []) => false,
    }
}

impl SegmentPattern {
    fn of(segment: &'static str) -> Self {
        match segment.strip_prefix('*') {
            Some("*") => Self::Any,
            Some(ending) => Self::Ending(ending),
            None => Self::Word(segment),
        }
    }

    /// Whether it is one segment, and this one.
    fn fits(self, segment: &str) -> bool {
        match self {
            Self::Any => false,
            Self::Ending(ending) => segment.ends_with(ending),
            Self::Word(word) => segment == word,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mints_at(method: &str, host: &str, path: &str) -> bool {
        let host = DnsName::parse(host).unwrap();
        mints(&method.parse().unwrap(), &host, path).is_some()
    }

    #[test]
    fn the_endpoints_of_each_provider_are_known_and_their_neighbours_pass() {
        let table = [
            ("api.openai.com", "/v1/realtime/client_secrets", "/v1/responses"),
            ("us.api.openai.com", "/v1/realtime/sessions", "/v1/realtime"),
            ("api.openai.com", "/v1/chatkit/sessions", "/v1/chat/completions"),
            ("api.openai.com", "/v1/organization/admin_api_keys", "/v1/files"),
            ("res.openai.azure.com", "/openai/v1/realtime/client_secrets", "/openai/v1/responses"),
            ("api.anthropic.com", "/v1/organizations/invites", "/v1/messages"),
            ("api.anthropic.com", "/api/oauth/claude_cli/create_api_key", "/v1/messages/count_tokens"),
            ("generativelanguage.googleapis.com", "/v1alpha/auth_tokens", "/v1beta/models/m:generateContent"),
            (
                "iamcredentials.googleapis.com",
                "/v1/projects/-/serviceAccounts/a@b.iam.gserviceaccount.com:generateAccessToken",
                "/v1/projects/-/serviceAccounts/a@b.iam.gserviceaccount.com",
            ),
            ("sts.amazonaws.com", "/", ""),
            ("sts.eu-west-1.amazonaws.com", "/", ""),
            ("api.github.com", "/app/installations/42/access_tokens", "/repos/a/b/issues"),
            ("api.github.com", "/repos/a/b/keys", "/repos/a/b/pulls"),
            ("api.github.com", "/user/keys", "/user/repos"),
            ("api.github.com", "/repos/a/b/actions/runners/registration-token", "/repos/a/b/dispatches"),
            ("ghe.corp.example", "/api/v3/app/installations/42/access_tokens", "/api/v3/repos/a/b/issues"),
            (
                "gitlab.com",
                "/api/v4/projects/group%2Fname/access_tokens",
                "/api/v4/projects/group%2Fname/issues",
            ),
            ("gitlab.corp.example", "/api/v4/personal_access_tokens/self/rotate", "/api/v4/projects"),
            ("registry.npmjs.org", "/-/npm/v1/tokens", "/-/npm/v1/security/audits"),
            ("anything.example", "/oauth/token", "/oauth"),
        ];
        for (host, minting, neighbour) in table {
            assert!(mints_at("POST", host, minting), "{host}{minting}");
            assert!(neighbour.is_empty() || !mints_at("POST", host, neighbour), "{host}{neighbour}");
        }
    }

    #[test]
    fn no_spelling_hides_an_endpoint() {
        for path in [
            "/v1/realtime/client_secrets/",
            "//v1//realtime/client_secrets",
            "/v1/./realtime/client_secrets",
            "/v1/x/../realtime/client_secrets",
            "/v1/realtime%2Fclient_secrets",
            "/v1/realtime%252fclient_secrets",
            "/v1\\realtime%5Cclient_secrets",
            "/v1/realtime;a=1/client_secrets;b",
            "/v1/%72ealtime/CLIENT_SECRETS",
            "/v1/x;/%2e%2e/realtime/client_secrets%00",
            "/v1%c0%afrealtime/client_secrets.",
            "/v1／realtime/ｃlient_secrets",
        ] {
            assert!(mints_at("POST", "api.openai.com", path), "{path}");
        }
    }

    #[test]
    fn reading_a_list_of_keys_passes_where_it_shows_none() {
        assert!(!mints_at("GET", "api.github.com", "/user/keys"));
        assert!(mints_at("DELETE", "api.github.com", "/user/keys"));
        assert!(mints_at("GET", "api.github.com", "/copilot_internal/v2/token"));
    }

    #[test]
    fn what_one_host_means_by_a_path_says_nothing_of_another() {
        assert!(!mints_at("POST", "api.example.com", "/user/keys"));
        assert!(!mints_at("POST", "evil-sts.amazonaws.com.example", "/"));
    }

    #[test]
    fn every_row_is_well_formed() {
        for family in CATALOGUE {
            assert!(family.hosts.iter().all(|host| *host == host.to_ascii_lowercase()), "{:?}", family.hosts);
            for (_, pattern, what) in family.endpoints {
                assert!(pattern.starts_with('/') && !what.is_empty(), "{pattern}");
                assert_eq!(*pattern, pattern.to_ascii_lowercase(), "paths are compared in lower case");
            }
        }
    }
}
