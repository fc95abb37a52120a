//! Base32 (RFC 4648).

use super::{Coding, Origin, Part, Room, Set, is_worth, runs, set};

/// The least characters of a run.
const LEAST: usize = 24;
const ALIGNMENTS: usize = 8;
const SET: Set = set!(b'A'..=b'Z' | b'2'..=b'7');

pub(super) fn decode(text: &[u8], room: &Room, parts: &mut Vec<Part>) {
    for run in runs(text, LEAST, &SET) {
        if run.len() > room.bytes {
            return;
        }
        for skipped in 0..ALIGNMENTS {
            let start = run.start + skipped;
            let bytes = undo(&text[start..run.end]);
            if is_worth(&bytes) {
                let padding = text[run.end..].iter().take(6).take_while(|byte| **byte == b'=').count();
                parts.push(Part {
                    coding: Coding::Base32,
                    bytes,
                    origin: Origin::Run(start..run.end + padding),
                });
            }
        }
    }
}

fn value(byte: u8) -> Option<u8> {
    match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'2'..=b'7' => Some(byte - b'2' + 26),
        _ => None,
    }
}

fn undo(run: &[u8]) -> Vec<u8> {
    let (mut bytes, mut bits, mut count) = (Vec::with_capacity(run.len() * 5 / 8), 0_u32, 0);
    for digit in run.iter().filter_map(|byte| value(*byte)) {
        bits = (bits << 5 | u32::from(digit)) & 0xffff;
        count += 5;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count & 0xff) as u8);
        }
    }
    bytes
}
