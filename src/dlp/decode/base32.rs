//! Base32 (RFC 4648).

use super::coded::runs_of;
use super::{BoundReached, Coding, Origin, Parts, Source, is_like_text, is_worth};
use crate::dlp::runs::{Set, set};

/// The least characters of a run.
const LEAST: usize = 24;
const ALIGNMENTS: usize = 8;
/// The digits of a sample.
const SAMPLE: usize = 16;
const SET: Set = set!(b'A'..=b'Z' | b'2'..=b'7');

pub(super) fn decode(source: &Source<'_>, parts: &mut Parts<'_>) -> Result<(), BoundReached> {
    for coded in runs_of(source, LEAST, &SET) {
        for skipped in 0..ALIGNMENTS {
            let digits = coded.digits.get(skipped..).unwrap_or_default();
            if !looks_coded(digits) {
                continue;
            }
            parts.has_room(digits.len() / 8 * 5)?;
            let bytes = undo(digits);
            if is_worth(&bytes) {
                let origin = Origin::Run(coded.range(source.text, skipped, 6));
                parts.add(Coding::Base32, bytes, origin)?;
            }
        }
    }
    Ok(())
}

/// Whether the beginning, the middle or the end holds text.
fn looks_coded(digits: &[u8]) -> bool {
    let last = digits.len().saturating_sub(SAMPLE) / 8 * 8;
    let is_text = |start: usize| {
        let sample = digits.get(start..digits.len().min(start + SAMPLE)).unwrap_or_default();
        is_like_text(&undo(sample))
    };
    is_text(0) || last > 0 && (is_text(last) || is_text(last / 2 / 8 * 8))
}

fn value(byte: u8) -> u8 {
    if byte.is_ascii_uppercase() { byte - b'A' } else { byte.wrapping_sub(b'2').wrapping_add(26) & 31 }
}

fn undo(digits: &[u8]) -> Vec<u8> {
    let (mut bytes, mut bits, mut count) = (Vec::with_capacity(digits.len() * 5 / 8), 0_u32, 0);
    for digit in digits {
        bits = (bits << 5 | u32::from(value(*digit))) & 0xffff;
        count += 5;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count & 0xff) as u8);
        }
    }
    bytes
}
