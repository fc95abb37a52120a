//! A private key in PEM: behind its first line there is key material, and not only the line.

use super::{Candidate, Confidence, Judged, Validator};

/// How much of the key must be there, in characters of base64.
const LEAST: usize = 64;
/// How far a key may reach.
const LONGEST: usize = 16 << 10;

pub(super) struct PrivateKey;

impl Validator for PrivateKey {
    fn judge(&self, candidate: &Candidate<'_>) -> Option<Judged> {
        let begin = candidate.range.end;
        let body = candidate.text.get(begin..candidate.text.len().min(begin + LONGEST))?;
        let (material, end) = material(body);
        let range = candidate.range.start..if material >= LEAST { begin + end } else { candidate.range.end };
        let at_most = if material < LEAST { Confidence::Low } else { Confidence::High };
        Some(Judged { at_most, ..Judged::found(range) })
    }
}

/// How many characters of base64 follow, over line breaks and their escapes, and where they end, the last line included.
fn material(body: &[u8]) -> (usize, usize) {
    let (mut count, mut at, mut end) = (0, 0, 0);
    while let Some(byte) = body.get(at) {
        match byte {
            b'\\' if matches!(body.get(at + 1), Some(b'n' | b'r')) => at += 2,
            b' ' | b'\t' | b'\r' | b'\n' | b'"' | b'\'' | b',' | b'+' if count == 0 || *byte != b'+' => {
                at += 1
            }
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'+' | b'/' | b'=' => {
                (count, at) = (count + 1, at + 1);
                end = at;
            }
            b'-' if body[at..].starts_with(b"-----END") => {
                let rest = &body[at + 8..];
                let close = memchr::memmem::find(rest, b"-----").filter(|close| *close < 64);
                return (count, close.map_or(end, |close| at + 8 + close + 5));
            }
            _ => break,
        }
    }
    (count, end)
}
