//! What in a request can carry a key, and which of it carries another than the placeholder.

use std::borrow::Cow;

use http::request::Parts;
use http::{HeaderName, HeaderValue, header};

use super::authorization::Authorization;
use super::percent;
use super::sigv4::SECURITY_TOKEN;

/// The headers, beside `authorization`, in which a placeholder is replaced.
pub(super) const KEY_HEADERS: [&str; 3] = ["x-api-key", "api-key", "x-goog-api-key"];

/// The query parameter in which a placeholder is replaced.
pub(super) const KEY_PARAMETER: &[u8] = b"key";

/// Headers that carry keys of one host or another, which no ending below shows.
const OTHER_HEADERS: &[&str] = &[
    "authentication",
    "cookie2",
    "github-bearer",
    "job-token",
    "private-token",
    "x-auth-key",
    "x-goog-iap-jwt-assertion",
    "x-jwt-assertion",
    "x-ms-client-principal",
    "x-token",
];

/// Endings of the names of headers that carry keys (`x-amz-security-token`, `xi-api-key`, `proxy-authorization`,
/// `x-goog-iam-authorization-token`, `ocp-apim-subscription-key`, …).
const HEADER_ENDINGS: &[&str] = &[
    "access-token",
    "api-key",
    "apikey",
    "auth-token",
    "authorization",
    "authorization-token",
    "bearer-token",
    "client-secret",
    "deploy-token",
    "id-token",
    "refresh-token",
    "secret-key",
    "security-token",
    "session-token",
    "subscription-key",
    "vault-token",
];

/// Query parameters that carry keys or signatures made with one: lower case, `_` for `-`.
const PARAMETERS: &[&str] = &[
    "access_key",
    "access_token",
    "api_key",
    "apikey",
    "auth",
    "auth_token",
    "authorization",
    "authuser_token",
    "awsaccesskeyid",
    "bearer",
    "bearer_token",
    "client_secret",
    "googleaccessid",
    "id_token",
    "jwt",
    "key",
    "oauth_token",
    "personal_access_token",
    "private_token",
    "refresh_token",
    "secret",
    "session_token",
    "sig",
    "signature",
    "subscription_key",
    "token",
    "x_api_key",
    "x_goog_api_key",
];

/// Beginnings of the parameters of presigned URLs (AWS, Google Cloud Storage).
const PARAMETER_BEGINNINGS: &[&str] = &["x_amz_", "x_goog_"];

/// Words in a WebSocket subprotocol that carries a key (`openai-insecure-api-key.…`, `base64url.bearer.…`).
const SUBPROTOCOL_WORDS: &[&str] = &["api-key", "apikey", "auth", "bearer", "ephemeral", "secret", "token"];

/// Cookies that hosts' load balancers and bot filters set and SDKs send back (openai-python does); they name no
/// account.
const HARMLESS_COOKIES: &[&str] = &[
    "ARRAffinity",
    "ARRAffinitySameSite",
    "AWSALB",
    "AWSALBCORS",
    "AWSALBTG",
    "AWSALBTGCORS",
    "GCLB",
    "__cf_bm",
    "__cflb",
    "__cfruid",
    "_cfuvid",
    "cf_clearance",
];

/// Which carriers are looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Breadth {
    /// Those in which a placeholder is replaced.
    Places,
    /// All that are known to carry keys.
    All,
}

/// A header in the words of a reason. One name is never written: Claude Code takes every refusal that has it for a
/// bad key of its own, and shows that instead.
pub(super) fn in_words(name: &HeaderName) -> String {
    if name == "x-api-key" { "the API key header".to_owned() } else { format!("the header {name}") }
}

/// The first carrier of a key that is none of the `accepted` placeholders; the text names the carrier only.
pub(super) fn foreign_key(parts: &Parts, accepted: &[&str], breadth: Breadth) -> Option<String> {
    let header = parts.headers.iter().find(|(name, value)| is_foreign_header(name, value, accepted, breadth));
    if let Some((name, _)) = header {
        return Some(in_words(name));
    }
    if breadth == Breadth::All && parts.uri.authority().is_some_and(|it| it.as_str().contains('@')) {
        return Some("the user of the URL".to_owned());
    }
    // Some servers split at semicolons too.
    let mut query = parts.uri.query().unwrap_or_default().split(['&', ';']).map(Parameter::read);
    query.find(|it| it.is_foreign(accepted, breadth)).map(|it| it.label())
}

fn is_foreign_header(name: &HeaderName, value: &HeaderValue, accepted: &[&str], breadth: Breadth) -> bool {
    let text = value.as_bytes().trim_ascii();
    if text.is_empty() {
        return false;
    }
    if name == header::AUTHORIZATION {
        let found = Authorization::read(text);
        let fits = |placeholder: &&str| match breadth {
            _ if found.is_signed_by(placeholder) => true,
            Breadth::Places => found.holds(placeholder),
            Breadth::All => found.holds_only(placeholder),
        };
        return !found.is_blank() && !accepted.iter().any(fits);
    }
    if KEY_HEADERS.contains(&name.as_str()) {
        return !accepted.iter().any(|placeholder| placeholder.as_bytes() == text);
    }
    // Where an agent signs with a placeholder, its session token is one too.
    let is_placeholder = || accepted.iter().any(|placeholder| placeholder.as_bytes() == text);
    breadth == Breadth::All && carries_key(name, text) && !(name == SECURITY_TOKEN && is_placeholder())
}

fn carries_key(name: &HeaderName, value: &[u8]) -> bool {
    if name == header::COOKIE {
        let mut cookies = value.split(|&byte| byte == b';').map(<[u8]>::trim_ascii);
        return cookies.any(|cookie| !cookie.is_empty() && !is_harmless_cookie(cookie));
    }
    if name == header::SEC_WEBSOCKET_PROTOCOL {
        let offered = String::from_utf8_lossy(value).to_ascii_lowercase();
        return SUBPROTOCOL_WORDS.iter().any(|word| offered.contains(word));
    }
    let name = name.as_str();
    OTHER_HEADERS.contains(&name) || HEADER_ENDINGS.iter().any(|ending| name.ends_with(ending))
}

fn is_harmless_cookie(cookie: &[u8]) -> bool {
    let name = cookie.split(|&byte| byte == b'=').next().unwrap_or_default();
    HARMLESS_COOKIES.iter().any(|harmless| harmless.as_bytes() == name)
}

/// A query parameter, decoded once.
pub(super) struct Parameter<'a> {
    pub(super) name: Cow<'a, [u8]>,
    pub(super) value: Cow<'a, [u8]>,
}

impl<'a> Parameter<'a> {
    pub(super) fn read(pair: &'a str) -> Self {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        Self { name: percent::decode(name.as_bytes()), value: percent::decode(value.as_bytes()) }
    }

    /// Whether this is the parameter in which a placeholder is replaced, and it stands here.
    pub(super) fn holds(&self, placeholder: &str) -> bool {
        *self.name == *KEY_PARAMETER && *self.value == *placeholder.as_bytes()
    }

    fn is_foreign(&self, accepted: &[&str], breadth: Breadth) -> bool {
        if self.value.is_empty() || accepted.iter().any(|placeholder| self.holds(placeholder)) {
            return false;
        }
        match breadth {
            Breadth::Places => *self.name == *KEY_PARAMETER,
            Breadth::All => {
                let name = self.canonical_name();
                PARAMETERS.contains(&name.as_str())
                    || PARAMETER_BEGINNINGS.iter().any(|beginning| name.starts_with(beginning))
            }
        }
    }

    pub(super) fn canonical_name(&self) -> String {
        String::from_utf8_lossy(&self.name).trim().to_ascii_lowercase().replace('-', "_")
    }

    /// The parameter as a refusal names it: only ever a name of the tables above.
    fn label(&self) -> String {
        format!("the query parameter {}", self.canonical_name().chars().take(64).collect::<String>())
    }
}
