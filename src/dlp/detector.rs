//! What one kind of secret looks like.

use std::fmt;
use std::ops::Range;

use regex::bytes::Regex;

use super::Confidence;
use super::validator::{Candidate, Judged, Validator};

/// The longest secret whose beginning alone is found, in bytes.
const LONGEST: usize = 16 << 10;

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

/// How a secret is found at an anchor.
pub(super) struct Form {
    /// How many bytes of the secret stand in front of its anchor at most.
    pub(super) before: usize,
    /// The secret does not begin inside of a word.
    pub(super) word: bool,
    /// The whole secret, tied to its beginning where that is its anchor; none where the validator finds it.
    pub(super) shape: Option<Regex>,
    pub(super) validator: Option<&'static dyn Validator>,
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
        let range = match &self.form.shape {
            Some(shape) if self.form.before == 0 => {
                let end = text.len().min(anchor.start + LONGEST);
                let found = shape.find(text.get(anchor.start..end)?)?;
                anchor.start..anchor.start + found.end()
            }
            Some(shape) => {
                let start = anchor.start.saturating_sub(self.form.before);
                let end = text.len().min(anchor.end + LONGEST);
                let window = text.get(start..end)?;
                let covers = |found: &Range<usize>| {
                    found.start + start <= anchor.start && found.end + start >= anchor.end
                };
                let found = shape
                    .find_iter(window)
                    .map(|found| found.range())
                    .take_while(|found| found.start + start <= anchor.start)
                    .find(covers)?;
                found.start + start..found.end + start
            }
            None => anchor.clone(),
        };
        if self.form.word && range.start.checked_sub(1).is_some_and(|before| is_word(text[before])) {
            return None;
        }
        let judged = match self.form.validator {
            Some(validator) => validator.judge(&Candidate { text, anchor, range })?,
            None => Judged::found(range),
        };
        let value = text.get(judged.range.clone())?;
        Some(Judged { is_low: judged.is_low || is_drawn_by_nobody(value), ..judged })
    }
}

pub(super) fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
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
