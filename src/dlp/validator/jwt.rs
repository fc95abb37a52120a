//! A signed JSON Web Token: its header is JSON and names an algorithm (RFC 7519).

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde_json::Value;

use super::{Candidate, Judged, Validator};
use crate::dlp::detector::is_word;

/// The anchor is the dot in front of the claims, and the beginning of an object in base64, as the header has it too.
const OBJECT: &[u8] = b"eyJ";
/// The characters of headers, and the least of claims and of a signature.
const HEADER: std::ops::RangeInclusive<usize> = 17..=512;
const LEAST_CLAIMS: usize = 17;
const LEAST_SIGNATURE: usize = 20;
/// The digits of three bytes.
const QUAD: usize = 4;

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
        let start = header(text.get(first..anchor.start)?)?;
        Some(Judged::found(first + start..end))
    }
}

/// Where a header begins that ends with these digits. In front of it may stand what looks like the beginning of another.
fn header(coded: &[u8]) -> Option<usize> {
    // What begins at one alignment is decoded together.
    let mut decoded: [Option<(usize, Vec<u8>)>; QUAD] = Default::default();
    memchr::memmem::find_iter(coded, OBJECT)
        .filter(|start| start.checked_sub(1).is_none_or(|before| !is_word(coded[before])))
        .take_while(|start| coded.len() - start >= *HEADER.start())
        .find(|start| {
            let (first, bytes) = decoded[start % QUAD].get_or_insert_with(|| {
                (*start, BASE64_URL_SAFE_NO_PAD.decode(&coded[*start..]).unwrap_or_default())
            });
            bytes.get((start - *first) / QUAD * 3..).is_some_and(is_header)
        })
}

fn digits<'a>(bytes: impl Iterator<Item = &'a u8>) -> usize {
    bytes.take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')).count()
}

fn is_header(json: &[u8]) -> bool {
    let is_signed = |header: Value| {
        header.get("alg").and_then(Value::as_str).is_some_and(|name| !name.eq_ignore_ascii_case("none"))
    };
    serde_json::from_slice(json).is_ok_and(is_signed)
}
