//! Base64 of both alphabets (RFC 4648), at every alignment, since what stands in front of it may look like a part of it.

use super::coded::runs_of;
use super::{BoundReached, Coding, Origin, Parts, Source, is_like_text, is_worth, packed};
use crate::dlp::runs::{LEAST, Set, set};

const ALIGNMENTS: usize = 4;
/// The digits of a sample.
const SAMPLE: usize = 24;
/// Those that are looked at first: most samples are seen to be no text by them.
const FIRST: usize = 8;
const SET: Set = set!(b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'+' | b'/' | b'-' | b'_');

const VALUES: [u8; 256] = values();

const fn values() -> [u8; 256] {
    let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut values = [0; 256];
    let mut at = 0;
    while at < alphabet.len() {
        values[alphabet[at] as usize] = at as u8;
        at += 1;
    }
    values[b'-' as usize] = 62;
    values[b'_' as usize] = 63;
    values
}

pub(super) fn decode(source: &Source<'_>, parts: &mut Parts<'_>) -> Result<(), BoundReached> {
    for coded in runs_of(source, LEAST, &SET) {
        for skipped in 0..ALIGNMENTS {
            let digits = coded.digits.get(skipped..).unwrap_or_default();
            if !looks_coded(digits) {
                continue;
            }
            parts.has_room(digits.len() / 4 * 3)?;
            let bytes = undo(digits);
            if is_worth(&bytes) {
                let origin = Origin::Run(coded.range(source.text, skipped, 2));
                parts.add(Coding::Base64, bytes, origin)?;
            }
        }
    }
    Ok(())
}

/// Whether the beginning, the middle or the end of a run holds text, or its beginning packed data: most runs are names of
/// programs.
fn looks_coded(digits: &[u8]) -> bool {
    let end = digits.len() / 4 * 4;
    let sample = |start: usize, length: usize| {
        let mut bytes = [0; SAMPLE / 4 * 3];
        let quads = digits.get(start..end.min(start + length)).unwrap_or_default().chunks_exact(4);
        let count = quads.len() * 3;
        for (quad, three) in quads.zip(bytes.chunks_exact_mut(3)) {
            three.copy_from_slice(&undo_quad(quad)[1..]);
        }
        (bytes, count)
    };
    let is_text = |start: usize| {
        [FIRST, SAMPLE].iter().all(|length| {
            let (bytes, count) = sample(start, *length);
            is_like_text(bytes.get(..count).unwrap_or_default())
        })
    };
    let last = end.saturating_sub(SAMPLE);
    is_text(0)
        || last > 0 && (is_text(last) || is_text(last / 2 / 4 * 4))
        || packed::magic(&sample(0, FIRST).0).is_some()
}

fn undo_quad(quad: &[u8]) -> [u8; 4] {
    let bits = quad.iter().fold(0, |bits, digit| bits << 6 | u32::from(VALUES[usize::from(*digit)]));
    bits.to_be_bytes()
}

fn undo(digits: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; digits.len() / 4 * 3];
    let value = |byte: u8| u32::from(VALUES[usize::from(byte)]);
    let quads = digits.chunks_exact(4);
    let rest = quads.remainder();
    for (quad, three) in quads.zip(bytes.chunks_exact_mut(3)) {
        three.copy_from_slice(&undo_quad(quad)[1..]);
    }
    match rest {
        [a, b] => bytes.push((value(*a) << 2 | value(*b) >> 4) as u8),
        [a, b, c] => {
            let bits = value(*a) << 12 | value(*b) << 6 | value(*c);
            bytes.extend([(bits >> 10) as u8, (bits >> 2) as u8]);
        }
        _ => {}
    }
    bytes
}
