//! What in a request can carry a key, and which of it carries another than the placeholder.

use std::borrow::Cow;

use http::request::Parts;
use http::{HeaderName, HeaderValue, header};

use super::authorization::{Authorization, SECURITY_TOKEN};
use super::carriers::{
    HARMLESS_COOKIES, HARMLESS_HEADERS, HARMLESS_PARAMETERS, HEADER_WORDS, HEADERS, PARAMETER_BEGINNINGS,
    PARAMETER_ENDINGS, PARAMETERS, SUBPROTOCOL_WORDS,
};
use super::shape;
use crate::wire::percent;

/// The headers, beside `authorization`, in which a placeholder is replaced.
pub(super) const KEY_HEADERS: [&str; 3] = ["x-api-key", "api-key", "x-goog-api-key"];

/// The query parameter in which a placeholder is replaced.
pub(super) const KEY_PARAMETER: &[u8] = b"key";

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

/// Whether a header value is the placeholder and nothing else.
pub(super) fn is_exactly(value: &HeaderValue, placeholder: &str) -> bool {
    value.as_bytes().trim_ascii() == placeholder.as_bytes()
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
    query.find_map(|it| it.foreign(accepted, breadth))
}

/// Where something in the shape of a known key stands that is no part of an `accepted` placeholder: in any header,
/// the path or the query, as it is, percent-encoded or inside Basic. The text names the place and whose key it looks
/// like, never the key.
pub(super) fn key_shaped(parts: &Parts, accepted: &[&str]) -> Option<String> {
    let found = |text: &[u8], place: &dyn Fn() -> String| {
        let owner = shape::find(text, accepted)?;
        Some(format!("what looks like a key of {owner} stands in {}", place()))
    };
    for (name, value) in &parts.headers {
        let in_name = found(name.as_str().as_bytes(), &|| "the name of a header".to_owned());
        let in_value = || found(value.as_bytes(), &|| in_words(name));
        let in_basic = || match Authorization::read(value.as_bytes()) {
            Authorization::Basic(pair) => found(&pair, &|| format!("{}, inside Basic", in_words(name))),
            Authorization::Signed(_) | Authorization::Token { .. } => None,
        };
        let found = in_name.or_else(in_value).or_else(in_basic);
        if found.is_some() {
            return found;
        }
    }
    let in_path = found(parts.uri.path().as_bytes(), &|| "the path".to_owned());
    in_path.or_else(|| found(parts.uri.query()?.as_bytes(), &|| "the query".to_owned()))
}

/// Where a value stands that looks random, and so could be a key of a shape that nobody knows. It is no evidence:
/// trace ids, idempotency keys and cursors look the same.
pub(super) fn random_looking(parts: &Parts, accepted: &[&str]) -> Option<String> {
    let is_judged = |name: &HeaderName| {
        name == header::AUTHORIZATION || name == header::COOKIE || KEY_HEADERS.contains(&name.as_str())
    };
    let is_odd = |value: &[u8]| {
        !accepted.iter().any(|placeholder| placeholder.as_bytes() == value) && shape::looks_random(value)
    };
    let mut headers = parts.headers.iter().filter(|(name, _)| !is_judged(name));
    if let Some((name, _)) = headers.find(|(_, value)| is_odd(value.as_bytes())) {
        return Some(format!("the header {:.64}", name.as_str()));
    }
    let mut query = parts.uri.query().unwrap_or_default().split(['&', ';']).map(Parameter::read);
    query.any(|parameter| is_odd(&parameter.value)).then(|| "the query".to_owned())
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
    let last = name.rsplit('-').next().unwrap_or(name);
    let is_harmless = || HARMLESS_HEADERS.iter().any(|ending| ends_in_words(name, ending));
    HEADERS.contains(&name) || (HEADER_WORDS.contains(&last) && !is_harmless())
}

/// Whether a header's name is these words, or ends in them behind a dash.
fn ends_in_words(name: &str, words: &str) -> bool {
    name.strip_suffix(words).is_some_and(|before| before.is_empty() || before.ends_with('-'))
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

    /// Where this carries a key that is no accepted placeholder: the parameter in words, as a refusal names it. They
    /// are those of the tables, never the agent's own.
    fn foreign(&self, accepted: &[&str], breadth: Breadth) -> Option<String> {
        if self.value.is_empty() || accepted.iter().any(|placeholder| self.holds(placeholder)) {
            return None;
        }
        match breadth {
            Breadth::Places => (*self.name == *KEY_PARAMETER).then(|| "the query parameter key".to_owned()),
            Breadth::All => {
                let name = self.canonical_name();
                if let Some(known) = PARAMETERS.iter().find(|known| **known == name) {
                    return Some(format!("the query parameter {known}"));
                }
                if let Some(known) = PARAMETER_BEGINNINGS.iter().find(|known| name.starts_with(**known)) {
                    return Some(format!("a query parameter that begins with {known}"));
                }
                let is_harmless = HARMLESS_PARAMETERS.iter().any(|ending| name.ends_with(ending));
                let known =
                    PARAMETER_ENDINGS.iter().find(|ending| name.ends_with(**ending) && !is_harmless)?;
                Some(format!("the query parameter {known}, or one that ends so"))
            }
        }
    }

    /// Letters and digits alone, in lower case, without an index (`token[]`): `API-Key` and `api_key` are `apikey`.
    pub(super) fn canonical_name(&self) -> String {
        let name = self.name.split(|&byte| byte == b'[').next().unwrap_or_default();
        let plain = percent::decode(name);
        plain
            .iter()
            .filter(|byte| byte.is_ascii_alphanumeric())
            .map(|b| char::from(b.to_ascii_lowercase()))
            .collect()
    }
}
