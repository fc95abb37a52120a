//! Base64 of both alphabets (RFC 4648), at every alignment, since what stands in front of it may look like a part of it.

use super::coded::runs_of;
use super::like::Like;
use super::{BoundReached, Coding, Origin, Parts, Source, is_worth, packed};
use crate::dlp::runs::{LEAST, Set, set};

const ALIGNMENTS: usize = 4;
/// The digits of a sample, four and four.
const SAMPLE: usize = 6;
const SET: Set = set!(b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'+' | b'/' | b'-' | b'_');

const VALUES: [u8; 256] = values();

const fn values() -> [u8; 256] {
    let mut values = super::values(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/");
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
    let quads = digits.as_chunks::<4>().0;
    let last = quads.len().saturating_sub(SAMPLE);
    is_text(quads)
        || last > 0
            && (is_text(quads.get(last..).unwrap_or_default())
                || is_text(quads.get(last / 2..).unwrap_or_default()))
        || quads.first_chunk().is_some_and(|[first, second]| {
            let [[_, a, b, c], [_, d, ..]] = [undo_quad(first), undo_quad(second)].map(u32::to_be_bytes);
            packed::magic(&[a, b, c, d]).is_some()
        })
}

/// Whether text may begin there.
fn is_text(quads: &[[u8; 4]]) -> bool {
    let mut like = Like::default();
    for quad in quads.iter().take(SAMPLE) {
        like = like.then(undo_quad(quad));
        if !like.is_text() {
            return false;
        }
    }
    true
}

/// The three bytes of four digits, in the lowest bits.
fn undo_quad(quad: &[u8; 4]) -> u32 {
    quad.iter().fold(0, |bits, digit| bits << 6 | u32::from(VALUES[usize::from(*digit)]))
}

fn undo(digits: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; digits.len() / 4 * 3];
    let value = |byte: u8| u32::from(VALUES[usize::from(byte)]);
    let (quads, rest) = digits.as_chunks::<4>();
    for (quad, three) in quads.iter().zip(bytes.as_chunks_mut::<3>().0) {
        let [_, a, b, c] = undo_quad(quad).to_be_bytes();
        *three = [a, b, c];
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
