//! A signed JSON Web Token: its header is JSON and names an algorithm (RFC 7519).

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde_json::Value;

use super::{Candidate, Judged, Validator};
use crate::dlp::detector::is_word;

/// The anchor is the dot in front of the claims, and the beginning of an object in base64, as the header has it too.
const OBJECT: &[u8] = b"eyJ";
/// The characters of headers, and the least of claims and of a signature.
const HEADER: std::ops::RangeInclusive<usize> = 17..=1024;
const LEAST_CLAIMS: usize = 17;
const LEAST_SIGNATURE: usize = 20;
/// How many beginnings of a header are tried.
const BEGINNINGS: usize = 4;

pub(super) struct Jwt;

impl Validator for Jwt {
    fn judge(&self, candidate: &Candidate<'_>) -> Option<Judged> {
        let Candidate { text, anchor, .. } = candidate;
        let claims = anchor.start + 1;
        let signature = claims + digits(text.get(claims..)?.iter());
        let end = signature + 1 + digits(text.get(signature + 1..)?.iter());
        let has_both = signature - claims >= LEAST_CLAIMS && end - signature > LEAST_SIGNATURE;
        if !has_both || text.get(signature) != Some(&b'.') {
            return None;
        }
        let before = text.get(..anchor.start)?.iter().rev().take(*HEADER.end());
        let first = anchor.start - digits(before);
        let header = text.get(first..anchor.start)?;
        memchr::memmem::find_iter(header, OBJECT)
            .filter(|start| start.checked_sub(1).is_none_or(|before| !is_word(header[before])))
            .take(BEGINNINGS)
            .find(|start| header.get(*start..).is_some_and(is_header))
            .map(|start| Judged::found(first + start..end))
    }
}

fn digits<'a>(bytes: impl Iterator<Item = &'a u8>) -> usize {
    bytes.take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')).count()
}

fn is_header(coded: &[u8]) -> bool {
    let read =
        || -> Option<Value> { serde_json::from_slice(&BASE64_URL_SAFE_NO_PAD.decode(coded).ok()?).ok() };
    let is_signed = |header: Value| {
        header.get("alg").and_then(Value::as_str).is_some_and(|name| !name.eq_ignore_ascii_case("none"))
    };
    HEADER.contains(&coded.len()) && read().is_some_and(is_signed)
}
