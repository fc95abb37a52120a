//! A value that looks random, assigned to a name that ends in key, token, secret, password and the like.

use super::entropy::entropy;
use super::{Candidate, Judged, Validator};

/// The characters of a value.
const LENGTHS: std::ops::RangeInclusive<usize> = 16..=128;
/// In bits a byte, of hex and of other texts.
const LEAST_OF_HEX: f64 = 3.0;
const LEAST: f64 = 3.5;
/// How much may stand between name and value: quotes, brackets, spaces, a type.
const BETWEEN: usize = 24;
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
        let Candidate { text, anchor, .. } = candidate;
        let start = value_start(text, anchor.end)?;
        if is_public(name(text, anchor.end)) {
            return None;
        }
        let value = text.get(start..text.len().min(start + LENGTHS.end() + 1))?;
        let length = value.iter().take_while(|byte| is_value(**byte)).count();
        let value = value.get(..length)?;
        let goes_on = text
            .get(start + length)
            .is_some_and(|byte| matches!(byte, b'(' | b'[' | b'{' | b'<' | b'$' | b'%' | b'*'));
        (!goes_on && LENGTHS.contains(&length) && is_random(value))
            .then(|| Judged::found(start..start + length))
    }
}

/// The name that ends there.
fn name(text: &[u8], end: usize) -> &[u8] {
    let before = text.get(..end).unwrap_or_default();
    let length = before
        .iter()
        .rev()
        .take(64)
        .take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'))
        .count();
    &before[before.len() - length..]
}

fn is_public(name: &[u8]) -> bool {
    let name = name.to_ascii_lowercase();
    PUBLIC.iter().any(|word| memchr::memmem::find(&name, word).is_some())
}

/// Where the value begins that is assigned to a name which ends there.
fn value_start(text: &[u8], end: usize) -> Option<usize> {
    let between = text.get(end..text.len().min(end + BETWEEN))?;
    let mut is_assigned = false;
    for (number, byte) in between.iter().enumerate() {
        match byte {
            b'=' | b':' => is_assigned = true,
            b'"' | b'\'' | b'`' | b'\\' | b'>' | b'\t' | b' ' | b']' | b')' => {}
            _ if is_assigned && number > 0 => return Some(end + number),
            _ => return None,
        }
    }
    None
}

fn is_value(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(byte, b'_' | b'-' | b'+' | b'/' | b'=' | b'.' | b'~' | b'!' | b'@' | b'#' | b'^' | b'&')
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
