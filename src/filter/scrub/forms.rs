//! The forms in which a key may come back: as it is, and in each usual encoding.

use std::collections::BTreeSet;

use base64::Engine;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE};
use zeroize::Zeroize;

use crate::credential::percent;

const LOWER: &[u8; 16] = b"0123456789abcdef";

/// A form, twice where the case of its hex digits is open: byte by byte, either fits. Otherwise both are the same.
/// It is wiped on drop.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Form {
    upper: Vec<u8>,
    lower: Vec<u8>,
}

/// How a text compares with a form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fit {
    /// It begins with the whole form, of this many bytes.
    Whole(usize),
    /// It is shorter than the form, and the form begins with it.
    Begun,
    None,
}

/// Every form of a key, each once. A key of letters and digits has few: its percent and JSON forms are itself.
pub(super) fn forms(key: &[u8]) -> BTreeSet<Form> {
    let mut forms = BTreeSet::new();
    let texts: BTreeSet<Vec<u8>> = base64_forms(key).into_iter().chain([key.to_vec()]).collect();
    for text in texts {
        // Base64 has characters of its own that a URL or JSON may escape.
        let keeps: [fn(u8) -> bool; 4] =
            [percent::is_unreserved, is_kept_by_javascript, is_kept_in_paths, is_kept_in_forms];
        forms.extend(keeps.map(|keep| Form::of(&text, |digits| percent::encode(&text, keep, digits))));
        let escapes: [&[u8]; 3] = [b"", b"<>&", b"<>&'=\"+/`"];
        forms.extend(
            escapes.map(|set| Form::of(&text, |digits| json(&text, |b| set.contains(&b), b"", digits))),
        );
        forms.insert(Form::of(&text, |digits| json(&text, |_| false, b"/", digits)));
        forms.insert(Form { lower: text.clone(), upper: text });
    }
    forms.insert(Form::of(key, |digits| percent::encode(key, |_| false, digits)));
    forms.insert(Form::of(key, |digits| json(key, |_| true, b"", digits)));
    forms.insert(Form::of(key, |digits| hex(key, digits)));
    forms
}

impl Form {
    /// What `make` makes of a text with upper- and lower-case digits. An escape is longer than what it stands for.
    fn of(text: &[u8], make: impl Fn(&[u8; 16]) -> Vec<u8>) -> Self {
        let upper = make(percent::UPPER);
        let lower = if upper.len() == text.len() { upper.clone() } else { make(LOWER) };
        Self { upper, lower }
    }

    /// How many bytes it has; every case of it has as many.
    pub(super) fn length(&self) -> usize {
        self.upper.len()
    }

    /// The first byte, which no case changes: a visible ASCII character's hex begins with 2 to 7.
    pub(super) fn first(&self) -> Option<u8> {
        self.upper.first().copied()
    }

    pub(super) fn fit(&self, text: &[u8]) -> Fit {
        let is_equal = self
            .upper
            .iter()
            .zip(&self.lower)
            .zip(text)
            .all(|((upper, lower), byte)| byte == upper || byte == lower);
        match is_equal {
            true if text.len() >= self.upper.len() => Fit::Whole(self.upper.len()),
            true => Fit::Begun,
            false => Fit::None,
        }
    }

    /// The first `length` bytes of the form in every case of its hex digits, which are few.
    pub(super) fn prefixes(&self, length: usize) -> Vec<Vec<u8>> {
        let mut prefixes = vec![Vec::with_capacity(length)];
        for (&upper, &lower) in self.upper.iter().zip(&self.lower).take(length) {
            if upper != lower {
                prefixes.extend_from_within(..);
            }
            let half = prefixes.len() / 2;
            for (i, prefix) in prefixes.iter_mut().enumerate() {
                prefix.push(if i < half { lower } else { upper });
            }
        }
        prefixes
    }
}

impl Drop for Form {
    fn drop(&mut self) {
        self.upper.zeroize();
        self.lower.zeroize();
    }
}

/// What `encodeURIComponent` keeps (ECMA-262 section 19.2.6.4).
fn is_kept_by_javascript(byte: u8) -> bool {
    percent::is_unreserved(byte) || b"!'()*".contains(&byte)
}

/// What a path segment keeps (RFC 3986 section 3.3), and the slash.
fn is_kept_in_paths(byte: u8) -> bool {
    percent::is_unreserved(byte) || b"!$&'()*+,;=:@/".contains(&byte)
}

/// What `application/x-www-form-urlencoded` keeps (WHATWG URL section 5.2).
fn is_kept_in_forms(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"*-._".contains(&byte)
}

/// A JSON string's text: `\u00XX` for what `is_escaped` names, and a backslash before quotes, backslashes and `more`.
fn json(text: &[u8], is_escaped: impl Fn(u8) -> bool, more: &[u8], digits: &[u8; 16]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() * 6);
    for &byte in text {
        if is_escaped(byte) {
            out.extend_from_slice(b"\\u00");
            out.extend(hex(&[byte], digits));
            continue;
        }
        if matches!(byte, b'"' | b'\\') || more.contains(&byte) {
            out.push(b'\\');
        }
        out.push(byte);
    }
    out
}

fn hex(bytes: &[u8], digits: &[u8; 16]) -> Vec<u8> {
    bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]).map(|half| digits[usize::from(half)]).collect()
}

/// Base64 and base64url of the key wherever it stands in what is encoded (Basic puts a user before it): for each
/// of the three alignments the characters that depend on the key alone, and, where the key ends what is encoded,
/// also the last character and the padding.
fn base64_forms(key: &[u8]) -> Vec<Vec<u8>> {
    let mut forms = Vec::with_capacity(12);
    for before in 0..3 {
        let mut text = vec![0; before];
        text.extend_from_slice(key);
        // A character holds 6 bits: those that also hold bits of what stands before are left out.
        let first = (before * 8).div_ceil(6);
        let last = text.len() * 8 / 6;
        for encoded in [BASE64_STANDARD.encode(&text), BASE64_URL_SAFE.encode(&text)] {
            let encoded = encoded.into_bytes();
            forms.push(encoded[first..last].to_vec());
            let unpadded = (text.len() * 8).div_ceil(6);
            forms.push(encoded[first..unpadded].to_vec());
            forms.push(encoded[first..].to_vec());
        }
    }
    forms
}
