//! A value that looks random, assigned to a name that ends in key, token, secret, password and the like.

use super::entropy::entropy;
use super::named::name_of;
use super::{Candidate, Judged, Validator};

/// The characters of a value.
const LENGTHS: std::ops::RangeInclusive<usize> = 16..=128;
/// In bits a byte, of hex and of other texts.
const LEAST_OF_HEX: f64 = 3.0;
const LEAST: f64 = 3.5;
/// What the names of secrets end in.
const NAMES: &[&[u8]] =
    &[b"key", b"token", b"secret", b"password", b"passwd", b"pwd", b"credential", b"auth"];
/// Names that end so and keep no secret.
const PUBLIC: &[&[u8]] = &[
    b"public",
    b"pub",
    b"primary",
    b"foreign",
    b"sort",
    b"partition",
    b"cache",
    b"sha",
    b"md5",
    b"hash",
    b"digest",
    b"checksum",
    b"integrity",
    b"fingerprint",
    b"next",
    b"page",
    b"continuation",
    b"csrf",
    b"idempotency",
    b"object",
    b"bucket",
    b"s3",
    b"map",
    b"host",
    b"known",
    b"dedup",
];

pub(super) struct Assigned;

impl Validator for Assigned {
    fn judge(&self, candidate: &Candidate<'_>) -> Option<Judged> {
        let Candidate { text, range, .. } = candidate;
        if !LENGTHS.contains(&range.len()) {
            return None;
        }
        let name = name_of(text, range.start)?;
        let is_secret = NAMES.iter().any(|word| ends_with(name, word));
        let goes_on = text
            .get(range.end)
            .is_some_and(|byte| matches!(byte, b'(' | b'[' | b'{' | b'<' | b'$' | b'%' | b'*'));
        if !is_secret || goes_on || is_public(name) || !is_random(candidate.value()) {
            return None;
        }
        let padding = text.get(range.end..)?.iter().take(2).take_while(|byte| **byte == b'=').count();
        Some(Judged::found(range.start..range.end + padding))
    }
}

fn ends_with(name: &[u8], word: &[u8]) -> bool {
    name.len()
        .checked_sub(word.len())
        .and_then(|start| name.get(start..))
        .is_some_and(|end| end.eq_ignore_ascii_case(word))
}

fn is_public(name: &[u8]) -> bool {
    let name = name.to_ascii_lowercase();
    PUBLIC.iter().any(|word| memchr::memmem::find(&name, word).is_some())
}

fn is_random(value: &[u8]) -> bool {
    let has = |is: fn(&u8) -> bool| value.iter().any(is);
    if !has(u8::is_ascii_alphabetic) || !has(u8::is_ascii_digit) {
        return false;
    }
    let is_hex = value.iter().all(u8::is_ascii_hexdigit);
    let least = if is_hex { LEAST_OF_HEX } else { LEAST };
    entropy(value) >= least && !is_uuid(value) && !is_path(value) && !is_words(value) && !is_sequence(value)
}

fn is_uuid(value: &[u8]) -> bool {
    value.len() == 36 && [8, 13, 18, 23].iter().all(|at| value[*at] == b'-')
}

/// Paths, domain names and URLs.
fn is_path(value: &[u8]) -> bool {
    let count = |sign| value.iter().filter(|byte| **byte == sign).count();
    value.starts_with(b"/")
        || value.starts_with(b"./")
        || value.starts_with(b"http")
        || count(b'/') > 3
        || count(b'.') > 1
}

/// Words that are joined: every part between signs, or every hump, is a word without a digit in it.
fn is_words(value: &[u8]) -> bool {
    let parts = value.split(|byte| !byte.is_ascii_alphanumeric());
    let digits = |part: &[u8]| part.iter().filter(|byte| byte.is_ascii_digit()).count();
    let mut has_random = false;
    for part in parts {
        let digits = digits(part);
        let is_number = digits == part.len();
        let ends_in_number =
            part.iter().skip_while(|byte| byte.is_ascii_alphabetic()).all(u8::is_ascii_digit);
        has_random |= !is_number && digits > 1 && !ends_in_number;
        has_random |= digits >= 2 && part.len() >= 16;
    }
    !has_random
}

/// An alphabet, or digits in their order.
fn is_sequence(value: &[u8]) -> bool {
    let follows = |one: u32, next: u32| next == one + 1;
    let signs = value.windows(2).filter(|pair| follows(pair[0].into(), pair[1].into())).count();
    let byte =
        |pair: &[u8]| std::str::from_utf8(pair).ok().and_then(|pair| u32::from_str_radix(pair, 16).ok());
    let bytes: Vec<Option<u32>> = value.chunks_exact(2).map(byte).collect();
    let counted =
        bytes.windows(2).filter(|pair| pair[0].zip(pair[1]).is_some_and(|(one, next)| follows(one, next)));
    signs * 2 > value.len() || counted.count() * 2 > bytes.len()
}
