//! AWS's access keys: the id, and the secret that stands near it or behind its name.

use std::ops::{Range, RangeInclusive};
use std::sync::LazyLock;

use memchr::memmem::Finder;

use super::entropy::{Classes, entropy};
use super::{Candidate, Judged, Validator};
use crate::dlp::runs::{Set, runs, set};

pub(super) struct AccessKeyId;

impl Validator for AccessKeyId {
    fn judge(&self, candidate: &Candidate<'_>) -> Option<Judged> {
        let text = candidate.text;
        let goes_on = text.get(candidate.range.end).is_some_and(u8::is_ascii_alphanumeric);
        (!goes_on).then(|| Judged::found(candidate.range.clone()))
    }
}

/// The characters of a secret.
const SECRET: usize = 40;
/// How near it stands, in bytes.
const NEAR: usize = 200;
/// In bits a byte; less is no random base64 of that length.
const LEAST_ENTROPY: f64 = 4.3;

const SET: Set = set!(b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'+' | b'/');
/// What stands near a secret: the beginnings of key ids, and names without the signs between their words.
const IDS: &[&[u8]] = &[b"AKIA", b"ASIA"];
const NAMES: &[&[u8]] = &[b"awssecret", b"secretaccess", b"accesskey"];
/// Both, made ready once.
static FINDERS: LazyLock<(Vec<Finder<'_>>, Vec<Finder<'_>>)> = LazyLock::new(|| {
    let finders = |words: &[&'static [u8]]| words.iter().map(|word| Finder::new(*word)).collect();
    (finders(IDS), finders(NAMES))
});

/// Letters and digits, letters in lower case; zero for all others.
const LETTERS: [u8; 256] = letters();

const fn letters() -> [u8; 256] {
    let mut letters = [0; 256];
    let mut byte = 0_u8;
    while byte < 128 {
        if byte.is_ascii_alphanumeric() {
            letters[byte as usize] = byte.to_ascii_lowercase();
        }
        byte += 1;
    }
    letters
}

pub(super) struct SecretAccessKey;

impl Validator for SecretAccessKey {
    fn lengths(&self) -> RangeInclusive<usize> {
        SECRET..=usize::MAX
    }

    fn judge(&self, candidate: &Candidate<'_>) -> Option<Judged> {
        let text = candidate.text;
        runs(text, candidate.range.clone(), SECRET, &SET)
            .filter(|range| range.len() == SECRET && text.get(range.clone()).is_some_and(is_secret))
            .find(|range| is_named(text, range))
            .map(Judged::found)
    }
}

fn is_named(text: &[u8], secret: &Range<usize>) -> bool {
    let before = text.get(secret.start.saturating_sub(NEAR)..secret.start).unwrap_or_default();
    let after = text.get(secret.end..text.len().min(secret.end + NEAR)).unwrap_or_default();
    [before, after].iter().any(|near| {
        let (mut letters, mut count) = ([0; NEAR], 0);
        for byte in near.iter().map(|byte| LETTERS[usize::from(*byte)]) {
            letters[count.min(NEAR - 1)] = byte;
            count += usize::from(byte != 0);
        }
        let letters = letters.get(..count).unwrap_or_default();
        let has = |text: &[u8], words: &[Finder<'_>]| words.iter().any(|word| word.find(text).is_some());
        has(near, &FINDERS.0) || has(letters, &FINDERS.1)
    })
}

fn is_secret(run: &[u8]) -> bool {
    let Classes { upper, lower, digits } = Classes::of(run);
    upper >= 2 && lower >= 2 && digits >= 1 && entropy(run) >= LEAST_ENTROPY
}
