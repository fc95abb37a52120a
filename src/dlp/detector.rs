//! What one kind of secret looks like.

use std::fmt;
use std::ops::Range;

use regex::bytes::Regex;
use serde::Deserialize;

use super::Confidence;
use super::validator::{Candidate, Judged, Validator};

/// The most bytes behind an anchor that its shape is tried on.
const LONGEST: usize = 512;
/// How many beginnings in front of an anchor are tried.
const BEGINNINGS: usize = 16;

/// A detector.
pub struct Detector {
    /// Its name in policies and events.
    pub id: String,
    pub confidence: Confidence,
    /// 24 bits of its secrets are fixed and 80 are random: nobody guesses a value by its hash, and random data has no such
    /// text by chance.
    pub is_rigid: bool,
    /// Hosts at which such a secret carries authentication.
    pub home: Vec<String>,
    pub(super) anchors: Vec<String>,
    pub(super) form: Form,
}

/// Where a detector's secrets stand.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Place {
    /// In a run of the characters of tokens, with an anchor.
    #[default]
    Token,
    /// In such a run, which a name in front of it or words near it make a secret.
    Value,
    /// Anywhere, with an anchor.
    Text,
    /// Anywhere in a text that has an anchor, which need not be a part of the secret's beginning.
    #[serde(skip)]
    Anywhere,
}

/// The characters over which a secret goes on behind its shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum More {
    /// Letters and digits.
    An,
    /// And `_` and `-`, as in base64url.
    Url,
    /// And dots between these.
    Dots,
    /// Base64 of both alphabets, with its padding, that may be percent-encoded.
    B64,
}

impl More {
    fn has(self, byte: u8) -> bool {
        let is_url = byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        match self {
            Self::An => byte.is_ascii_alphanumeric(),
            Self::Url => is_url,
            Self::Dots => is_url || byte == b'.',
            Self::B64 => is_url || matches!(byte, b'+' | b'/' | b'=' | b'%'),
        }
    }

    /// How many bytes of the beginning of a text belong to the secret in front of it.
    fn length(self, text: &[u8]) -> usize {
        let length = text.iter().take_while(|byte| self.has(**byte)).count();
        let dots = text.get(..length).unwrap_or_default().iter().rev().take_while(|byte| **byte == b'.');
        length - dots.count()
    }
}

/// How a secret is found at an anchor.
#[derive(Default)]
pub(super) struct Form {
    pub(super) place: Place,
    /// How many bytes of the secret stand in front of its anchor; at most so many where it has a beginning.
    pub(super) before: usize,
    /// The literal that it begins with in front of its anchor.
    pub(super) begins: Option<String>,
    /// The secret does not begin inside of a word.
    pub(super) word: bool,
    /// The secret from its beginning on; none where the validator finds it.
    pub(super) shape: Option<Regex>,
    /// What it goes on over. A shape without an end would be tried on all that follows each anchor.
    pub(super) more: Option<More>,
    pub(super) validator: Option<&'static dyn Validator>,
    /// The secret, wherever it begins.
    pub(super) anywhere: Option<Regex>,
}

impl fmt::Debug for Detector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Detector").field(&self.id).finish()
    }
}

impl PartialEq for Detector {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl Eq for Detector {}

impl Detector {
    /// Returns the secret whose anchor stands there, if there is one.
    pub(super) fn at(&self, text: &[u8], anchor: Range<usize>) -> Option<Judged> {
        let Some(begins) = &self.form.begins else {
            let start = anchor.start.checked_sub(self.form.before)?;
            return self.from(text, start, anchor);
        };
        let first = anchor.start.saturating_sub(self.form.before);
        let before = text.get(first..anchor.start)?;
        memchr::memmem::find_iter(before, begins.as_bytes())
            .take(BEGINNINGS)
            .find_map(|start| self.from(text, first + start, anchor.clone()))
    }

    /// Returns the secret that begins there.
    fn from(&self, text: &[u8], start: usize, anchor: Range<usize>) -> Option<Judged> {
        if self.form.word && start.checked_sub(1).is_some_and(|before| is_word(text[before])) {
            return None;
        }
        let length_of_anchor = anchor.len();
        let range = match &self.form.shape {
            Some(shape) => {
                if self.form.validator.is_some_and(|validator| !validator.may_follow(text, &anchor)) {
                    return None;
                }
                let found = shape.find(text.get(start..text.len().min(anchor.end + LONGEST))?)?;
                start..start + found.end()
            }
            None => anchor.clone(),
        };
        let mut judged = match self.form.validator {
            Some(validator) => validator.judge(&Candidate { text, anchor, range })?,
            None => Judged::found(range),
        };
        let length = self.form.more.map_or(0, |more| more.length(&text[judged.range.end..]));
        if length > 0 {
            judged.range.end += length;
            // A longer form has none, or another one.
            judged.checksum = None;
        }
        let value = text.get(judged.range.clone())?;
        let at_most = if is_drawn_by_nobody(value) {
            Confidence::Low
        } else if self.may_be_noise(&judged, length_of_anchor) && is_noise(text, &judged.range) {
            Confidence::Medium
        } else {
            Confidence::High
        };
        Some(Judged { at_most: at_most.min(judged.at_most), ..judged })
    }

    /// Whether random data holds such a secret now and then.
    fn may_be_noise(&self, judged: &Judged, anchor: usize) -> bool {
        let is_rare = match self.form.place {
            Place::Token => anchor >= RARE,
            Place::Value => false,
            Place::Text | Place::Anywhere => true,
        };
        !is_rare && judged.checksum != Some(true)
    }
}

pub(super) fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// An anchor of so many characters stands in no random data by chance.
const RARE: usize = 8;
/// How much in front of a secret is looked at.
const NOISE: usize = 64;
/// How many different characters random data of that length has in base64: 40 in the mean, with a deviation of 3.
const LEAST_NOISE: usize = 30;

/// Whether random data ends there, without a sign between: then a secret is more likely a part of it. Lines may be broken.
fn is_noise(text: &[u8], secret: &Range<usize>) -> bool {
    let is_break = |byte: &u8| matches!(byte, b'\r' | b'\n');
    let is_digit = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/-_".contains(byte);
    let before = text.get(..secret.start).unwrap_or_default();
    // A file may have a key in each line.
    if before.last().is_some_and(is_break) && !text.get(secret.end).is_some_and(is_digit) {
        return false;
    }
    let (mut seen, mut digits) = ([false; 256], 0);
    let data = before.iter().rev().filter(|byte| !is_break(byte)).take(NOISE);
    for byte in data.take_while(|byte| is_digit(byte)) {
        seen[usize::from(*byte)] = true;
        digits += 1;
    }
    digits == NOISE && seen.iter().filter(|seen| **seen).count() >= LEAST_NOISE
}

/// How many different bytes a value has that was drawn at random, at least.
const LEAST_DISTINCT: usize = 8;
/// So many equal bytes follow each other in no value that was drawn at random.
const LONGEST_EQUAL: usize = 6;

/// Whether a value is an example, or a placeholder in the shape of a secret.
fn is_drawn_by_nobody(value: &[u8]) -> bool {
    let mut seen = [false; 256];
    let (mut distinct, mut equal, mut last) = (0, 0, None);
    for byte in value {
        if !std::mem::replace(&mut seen[usize::from(*byte)], true) {
            distinct += 1;
        }
        equal = if last == Some(byte) && *byte != b'-' && *byte != b'=' { equal + 1 } else { 1 };
        if equal >= LONGEST_EQUAL {
            return true;
        }
        last = Some(byte);
    }
    distinct < LEAST_DISTINCT || memchr::memmem::find(value, b"EXAMPLE").is_some()
}
