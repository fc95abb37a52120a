//! AWS's access keys: the id, and the secret that stands near it or behind its name.

use super::entropy::{Classes, entropy};
use super::{Candidate, Judged, Validator};

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

pub(super) struct SecretAccessKey;

impl Validator for SecretAccessKey {
    fn judge(&self, candidate: &Candidate<'_>) -> Option<Judged> {
        let start = candidate.anchor.end;
        let window = candidate.text.get(start..candidate.text.len().min(start + NEAR))?;
        let mut at = 0;
        while at < window.len() {
            let length = window[at..].iter().take_while(|byte| is_base64(**byte)).count();
            let range = start + at..start + at + length;
            if length == SECRET && candidate.text.get(range.clone()).is_some_and(is_secret) {
                // A run that the window cuts is none of forty.
                let goes_on = candidate.text.get(range.end).is_some_and(|byte| is_base64(*byte));
                return (!goes_on).then(|| Judged::found(range));
            }
            at += length.max(1);
        }
        None
    }
}

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/')
}

fn is_secret(run: &[u8]) -> bool {
    let Classes { upper, lower, digits } = Classes::of(run);
    upper >= 2 && lower >= 2 && digits >= 1 && entropy(run) >= LEAST_ENTROPY
}
