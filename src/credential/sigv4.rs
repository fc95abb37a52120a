//! Signs requests for AWS: Signature Version 4, headers alone, the body by its hash.
//!
//! <https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html>

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::hmac;
use http::request::Parts;
use http::{HeaderName, HeaderValue, header};
use time::OffsetDateTime;
use time::macros::format_description;
use zeroize::Zeroizing;

use super::access_key::AccessKey;
use super::authorization::{ALGORITHM, SECURITY_TOKEN};
use super::carrier::Parameter;
use super::unattachable::Unattachable;
use crate::digest::hex;
use crate::policy::credential::SigV4;
use crate::wire::percent;

const DATE: HeaderName = HeaderName::from_static("x-amz-date");
const CONTENT_SHA256: HeaderName = HeaderName::from_static("x-amz-content-sha256");

/// What is signed beside the head.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// What the upstream reads as `host` (or `:authority`): with the port where it is not the scheme's own.
    pub authority: &'a str,
    /// SHA-256 of the body as it is sent.
    pub body_sha256: [u8; 32],
    pub now: OffsetDateTime,
}

impl Subject<'_> {
    /// SHA-256 of a body.
    pub fn hash(body: &[u8]) -> [u8; 32] {
        let mut hash = [0; 32];
        hash.copy_from_slice(digest(&SHA256, body).as_ref());
        hash
    }
}

/// Whether the agent signed the request itself, in the head or in the query: with an edited body it would be refused
/// by AWS, as a signature that does not match.
pub fn is_signed_by_agent(parts: &Parts) -> bool {
    let signed = |value: &HeaderValue| value.as_bytes().trim_ascii().starts_with(b"AWS4-");
    parts.headers.get_all(header::AUTHORIZATION).iter().any(signed) || is_presigned(parts)
}

/// Whether there is a signature in the query.
pub(super) fn is_presigned(parts: &Parts) -> bool {
    let names = parts.uri.query().unwrap_or_default().split(['&', ';']);
    names.map(|pair| Parameter::read(pair).canonical_name()).any(|name| name.starts_with("xamz"))
}

/// Whether the body holds signatures of its own chunks, or is framed for them.
pub(super) fn is_in_chunks(parts: &Parts) -> bool {
    let says = |name: HeaderName, word: &[u8]| {
        let mut values = parts.headers.get_all(name).iter();
        values.any(|value| value.as_bytes().to_ascii_lowercase().windows(word.len()).any(|part| part == word))
    };
    says(CONTENT_SHA256, b"streaming-") || says(header::CONTENT_ENCODING, b"aws-chunked")
}

/// Signs a request, in place of the signature that it has. Everything that is signed must stay as it is from here
/// on: method, path, query, `host`, `content-type` and every `x-amz-` header.
pub(super) fn sign(
    parts: &mut Parts,
    key: &AccessKey,
    scope: &SigV4,
    subject: &Subject<'_>,
) -> Result<(), Unattachable> {
    let at = subject.now.to_offset(time::UtcOffset::UTC);
    let stamp = at.format(format_description!("[year][month][day]T[hour][minute][second]Z"));
    let stamp = stamp.map_err(|_| Unattachable::Time)?;
    parts.headers.insert(DATE, plain(&stamp)?);
    parts.headers.insert(CONTENT_SHA256, plain(&hex(&subject.body_sha256))?);
    // A token of the agent's own belongs to another key; AWS refuses the pair.
    parts.headers.remove(SECURITY_TOKEN);
    if let Some(token) = &key.session_token {
        let mut token = HeaderValue::from_bytes(token.expose()).map_err(|_| Unattachable::TooLong)?;
        token.set_sensitive(true);
        parts.headers.insert(SECURITY_TOKEN, token);
    }
    let value = authorization(parts, key, scope, subject, &stamp)?;
    parts.headers.insert(header::AUTHORIZATION, value);
    Ok(())
}

/// Returns the value of `authorization` for the time `stamp`.
fn authorization(
    parts: &Parts,
    key: &AccessKey,
    scope: &SigV4,
    subject: &Subject<'_>,
    stamp: &str,
) -> Result<HeaderValue, Unattachable> {
    // The date alone: its first eight digits.
    let date = stamp.get(..8).unwrap_or_default();
    let (headers, names) = canonical_headers(parts, subject.authority);
    let request = [
        parts.method.as_str(),
        &canonical_path(parts.uri.path(), &scope.service),
        &canonical_query(parts.uri.query().unwrap_or_default()),
        &headers,
        &names,
        &hex(&subject.body_sha256),
    ]
    .join("\n");
    let credential = format!("{date}/{}/{}/aws4_request", scope.region, scope.service);
    let request = hex(digest(&SHA256, request.as_bytes()).as_ref());
    let text = format!("{ALGORITHM}\n{stamp}\n{credential}\n{request}");
    let signature = hex(hmac::sign(&signing_key(key, date, scope), text.as_bytes()).as_ref());
    let id = String::from_utf8_lossy(key.id.expose());
    let value =
        format!("{ALGORITHM} Credential={id}/{credential}, SignedHeaders={names}, Signature={signature}");
    let mut value = plain(&value)?;
    value.set_sensitive(true);
    Ok(value)
}

/// The key that is good for one day, region and service.
fn signing_key(key: &AccessKey, date: &str, scope: &SigV4) -> hmac::Key {
    let mut first = Zeroizing::new(Vec::with_capacity(key.secret.expose().len() + 4));
    first.extend_from_slice(b"AWS4");
    first.extend_from_slice(key.secret.expose());
    // Each step narrows the key: what is derived for one day, region and service signs for no other.
    let steps = [date, &scope.region, &scope.service, "aws4_request"];
    steps.iter().fold(hmac::Key::new(hmac::HMAC_SHA256, &first), |key, step| {
        hmac::Key::new(hmac::HMAC_SHA256, hmac::sign(&key, step.as_bytes()).as_ref())
    })
}

/// The headers that are signed, a line each, and their names: what AWS asks for, and no header that a proxy behind us
/// may change.
fn canonical_headers(parts: &Parts, authority: &str) -> (String, String) {
    let is_signed =
        |name: &&HeaderName| **name == header::CONTENT_TYPE || name.as_str().starts_with("x-amz-");
    let mut names: Vec<&str> = parts.headers.keys().filter(is_signed).map(HeaderName::as_str).collect();
    // HTTP/2 has no `host`: the upstream derives it from `:authority`, so it is signed in any case.
    names.push("host");
    names.sort_unstable();
    let mut lines = String::new();
    for name in &names {
        let values: Vec<String> = if *name == "host" {
            vec![authority.to_owned()]
        } else {
            parts.headers.get_all(*name).iter().map(|value| squeezed(value.as_bytes())).collect()
        };
        lines.push_str(&format!("{name}:{}\n", values.join(",")));
    }
    (lines, names.join(";"))
}

/// A value without spaces at its ends, and with one where there are several.
fn squeezed(value: &[u8]) -> String {
    let text = String::from_utf8_lossy(value);
    text.split([' ', '\t']).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

/// The path, normalised and encoded once more than it is sent; S3 alone takes it as it is.
fn canonical_path(path: &str, service: &str) -> String {
    let is_kept = |byte: u8| percent::is_unreserved(byte) || byte == b'/';
    let encoded =
        |path: &[u8]| String::from_utf8_lossy(&percent::encode(path, is_kept, percent::UPPER)).into_owned();
    // S3 signs the path as it is sent; every other service signs it encoded twice.
    if service == "s3" {
        return encoded(&percent::decode(path.as_bytes()));
    }
    let mut segments: Vec<&str> = Vec::new();
    for segment in path.split('/').filter(|segment| !segment.is_empty() && *segment != ".") {
        if segment == ".." {
            segments.pop();
        } else {
            segments.push(segment);
        }
    }
    let is_directory = path.ends_with('/') || path.ends_with("/.") || path.ends_with("/..");
    let end = if is_directory && !segments.is_empty() { "/" } else { "" };
    encoded(format!("/{}{end}", segments.join("/")).as_bytes())
}

/// The parameters, encoded in one way and in order.
fn canonical_query(query: &str) -> String {
    let encoded = |text: &str| {
        let text = percent::decode(text.as_bytes());
        String::from_utf8_lossy(&percent::encode(&text, percent::is_unreserved, percent::UPPER)).into_owned()
    };
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    let mut pairs: Vec<(String, String)> = pairs
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .map(|(name, value)| (encoded(name), encoded(value)))
        .collect();
    pairs.sort_unstable();
    pairs.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("&")
}

fn plain(text: &str) -> Result<HeaderValue, Unattachable> {
    HeaderValue::from_str(text).map_err(|_| Unattachable::TooLong)
}

#[cfg(test)]
#[path = "sigv4_tests.rs"]
mod tests;
