//! Base64 of both alphabets (RFC 4648), at every alignment, since what stands in front of it may look like a part of it.

use super::{Coding, Origin, Part, Room, Set, is_worth, packed, runs, set};

/// The least characters of a run.
const LEAST: usize = 16;
const ALIGNMENTS: usize = 4;
/// No digit of the alphabets.
const NONE: u8 = 0xff;

const VALUES: [u8; 256] = values();

const fn values() -> [u8; 256] {
    let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut values = [NONE; 256];
    let mut at = 0;
    while at < alphabet.len() {
        values[alphabet[at] as usize] = at as u8;
        at += 1;
    }
    values[b'-' as usize] = 62;
    values[b'_' as usize] = 63;
    values
}

const SET: Set = set!(b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'+' | b'/' | b'-' | b'_');
/// The characters of a sample, at the beginning of a run and at its end. What is text there is decoded whole.
const SAMPLE: usize = 24;

pub(super) fn decode(text: &[u8], room: &Room, parts: &mut Vec<Part>) {
    for run in runs(text, LEAST, &SET) {
        for skipped in 0..ALIGNMENTS {
            let start = run.start + skipped;
            if (run.end - start) / 4 * 3 > room.bytes {
                return;
            }
            let Some(coded) = text.get(start..run.end).filter(|coded| looks_coded(coded)) else { continue };
            let bytes = undo(coded);
            if bytes.len() >= LEAST / 4 * 3 - ALIGNMENTS && is_worth(&bytes) {
                let padding = text[run.end..].iter().take(2).take_while(|byte| **byte == b'=').count();
                parts.push(Part {
                    coding: Coding::Base64,
                    bytes,
                    origin: Origin::Run(start..run.end + padding),
                });
            }
        }
    }
}

/// Whether the beginning or the end of a run holds text or packed data: most runs are names of programs.
fn looks_coded(coded: &[u8]) -> bool {
    let end = coded.len() / 4 * 4;
    let is_text = |start: usize| {
        // In ASCII no byte has its first bit; of six quads one may be something else.
        let mut others = 0;
        coded[start..end.min(start + SAMPLE)].chunks_exact(4).all(|quad| {
            others += u32::from(u32::from_be_bytes(three(quad)) & 0x80_80_80 != 0);
            others <= 1
        })
    };
    is_text(0) || is_text(end.saturating_sub(SAMPLE)) || is_packed(coded)
}

/// Whether the first bytes are those of packed data.
fn is_packed(coded: &[u8]) -> bool {
    let Some(quad) = coded.get(..4) else { return false };
    let [_, first, second, third] = three(quad);
    packed::magic(&[first, second, third, 0xfd]).is_some()
}

fn three(quad: &[u8]) -> [u8; 4] {
    let bits = quad.iter().fold(0, |bits, digit| bits << 6 | u32::from(VALUES[usize::from(*digit)]));
    bits.to_be_bytes()
}

fn undo(run: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(run.len() / 4 * 3 + 2);
    let value = |byte: u8| u32::from(VALUES[usize::from(byte)]);
    let mut quads = run.chunks_exact(4);
    for quad in &mut quads {
        bytes.extend_from_slice(&three(quad)[1..]);
    }
    match quads.remainder() {
        [a, b] => bytes.push((value(*a) << 2 | value(*b) >> 4) as u8),
        [a, b, c] => {
            let bits = value(*a) << 12 | value(*b) << 6 | value(*c);
            bytes.extend([(bits >> 10) as u8, (bits >> 2) as u8]);
        }
        _ => {}
    }
    bytes
}
