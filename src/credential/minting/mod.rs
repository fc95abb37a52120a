//! Endpoints that hand out further credentials: a session token, an ephemeral key, a deploy key. An agent that
//! reached one with our key attached would then hold a real one.

mod catalogue;

use http::Method;

use crate::name::host::DnsName;
use crate::name::lenient;
use catalogue::{CATALOGUE, Calls};

/// What the endpoint hands out, in words, if it is in the catalogue. `path` is as it stands on the wire: whatever
/// a host could read it as is compared, so that no spelling hides an endpoint.
pub fn mints(method: &Method, host: &DnsName, path: &str) -> Option<&'static str> {
    let readings: Vec<Vec<String>> = lenient::readings(path).iter().map(|path| segments(path)).collect();
    let families = CATALOGUE.iter().filter(|family| family.serves(host.as_str()));
    families.flat_map(|family| family.endpoints).find_map(|(calls, pattern, what)| {
        let is_met = calls.include(method) && readings.iter().any(|segments| matches(pattern, segments));
        is_met.then_some(*what)
    })
}

fn segments(path: &str) -> Vec<String> {
    path.split('/').filter(|segment| !segment.is_empty()).map(str::to_owned).collect()
}

impl catalogue::Family {
    fn serves(&self, host: &str) -> bool {
        self.hosts.is_empty()
            || self.hosts.iter().any(|pattern| match pattern.split_once('*') {
                Some((beginning, ending)) => host
                    .strip_prefix(beginning)
                    .is_some_and(|rest| rest.len() > ending.len() && rest.ends_with(ending)),
                None => host == *pattern,
            })
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

fn matches(pattern: &str, path: &[String]) -> bool {
    // Nearly every row is out by its last segment.
    let last = pattern.rsplit('/').next().unwrap_or_default();
    let can_end = last == "**" || path.last().is_some_and(|segment| fits(last, segment));
    can_end && matches_from(pattern.strip_prefix('/'), path)
}

/// `*` is one segment or the beginning of one (`*:verb`), `**` any number. `None` is the pattern's end.
fn matches_from(pattern: Option<&str>, path: &[String]) -> bool {
    let Some(pattern) = pattern else { return path.is_empty() };
    let (first, rest) = pattern.split_once('/').map_or((pattern, None), |(first, rest)| (first, Some(rest)));
    if first == "**" {
        return (0..=path.len()).any(|skip| matches_from(rest, &path[skip..]));
    }
    match path {
        [segment, path @ ..] => fits(first, segment) && matches_from(rest, path),
        [] => false,
    }
}

fn fits(pattern: &str, segment: &str) -> bool {
    pattern.strip_prefix('*').map_or(segment == pattern, |ending| segment.ends_with(ending))
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
