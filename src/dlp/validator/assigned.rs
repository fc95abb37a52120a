//! A value that looks random, assigned to a name that ends in key, token, secret, password and the like.

use std::ops::RangeInclusive;
use std::sync::LazyLock;

use aho_corasick::AhoCorasick;

use super::entropy::entropy;
use super::named::name_of;
use super::{Candidate, Judged, Validator};

/// The characters of a value.
const LENGTHS: RangeInclusive<usize> = 16..=128;
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
    fn lengths(&self) -> RangeInclusive<usize> {
        LENGTHS
    }

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
    static WORDS: LazyLock<AhoCorasick> = LazyLock::new(public);
    WORDS.is_match(name)
}

#[expect(clippy::expect_used, reason = "the words are few and known")]
fn public() -> AhoCorasick {
    AhoCorasick::builder()
        .ascii_case_insensitive(true)
        .build(PUBLIC)
        .expect("a few words can be searched for")
}

fn is_random(value: &[u8]) -> bool {
    let has = |is: fn(&u8) -> bool| value.iter().any(is);
    if !has(u8::is_ascii_alphabetic) || !has(u8::is_ascii_digit) {
        return false;
    }
    if is_uuid(value) || is_path(value) || is_words(value) || is_sequence(value) {
        return false;
    }
    let is_hex = value.iter().all(u8::is_ascii_hexdigit);
    entropy(value) >= if is_hex { LEAST_OF_HEX } else { LEAST }
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
    let (pairs, _) = value.as_chunks::<2>();
    let counted = pairs.iter().zip(pairs.iter().skip(1));
    let counted = counted
        .filter(|(one, next)| number(one).zip(number(next)).is_some_and(|(one, next)| follows(one, next)));
    signs * 2 > value.len() || counted.count() * 2 > pairs.len()
}

/// The number that two hexadecimal digits are, or one with a sign.
fn number([high, low]: &[u8; 2]) -> Option<u32> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let high = if *high == b'+' { 0 } else { digit(*high)? };
    Some(high * 16 + digit(*low)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_digits_are_the_number_that_the_library_reads() {
        for high in 0..=u8::MAX {
            for low in 0..=u8::MAX {
                let pair = [high, low];
                let expected =
                    std::str::from_utf8(&pair).ok().and_then(|pair| u32::from_str_radix(pair, 16).ok());
                assert_eq!(number(&pair), expected, "{pair:?}");
            }
        }
    }
}
