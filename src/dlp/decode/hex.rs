//! Hexadecimal digits, also with a colon or a space between the bytes.

use std::ops::Range;

use super::{Coding, Origin, Part, Room, Set, is_worth, runs, set};

/// The least digits of a run; with signs between the bytes it is longer.
const LEAST: usize = 32;
const LEAST_SEPARATED: usize = LEAST / 2 * 3 - 1;

const DIGITS: Set = set!(b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F');
const SEPARATED: Set = set!(b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F' | b':' | b' ');

pub(super) fn decode(text: &[u8], room: &Room, parts: &mut Vec<Part>) {
    for run in runs(text, LEAST, &DIGITS) {
        // A digit in front of it may be another word's.
        for skipped in 0..2 {
            let digits = text[run.start + skipped..run.end].iter().copied();
            add(digits, run.start + skipped..run.end, room, parts);
        }
    }
    for run in runs(text, LEAST_SEPARATED, &SEPARATED) {
        for run in separated(text, run) {
            let digits = text[run.clone()].iter().copied().filter(u8::is_ascii_hexdigit);
            add(digits, run, room, parts);
        }
    }
}

fn add(digits: impl Iterator<Item = u8>, run: Range<usize>, room: &Room, parts: &mut Vec<Part>) {
    if run.len() / 2 > room.bytes {
        return;
    }
    let values: Vec<u8> = digits
        .filter_map(|digit| char::from(digit).to_digit(16))
        .filter_map(|digit| u8::try_from(digit).ok())
        .collect();
    let bytes: Vec<u8> = values.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect();
    if is_worth(&bytes) {
        parts.push(Part { coding: Coding::Hex, bytes, origin: Origin::Run(run) });
    }
}

/// The parts of a run in which each two digits are followed by one and the same sign.
fn separated(text: &[u8], run: Range<usize>) -> Vec<Range<usize>> {
    let is_digit = |at: usize| text.get(at).is_some_and(u8::is_ascii_hexdigit);
    let (mut found, mut at) = (Vec::new(), run.start);
    while at + 2 < run.end {
        let separator = text[at + 2];
        let is_pair = |at: usize| is_digit(at) && is_digit(at + 1);
        let mut end = at;
        if is_pair(at) && matches!(separator, b':' | b' ') {
            end += 2;
            while end < run.end && text[end] == separator && is_pair(end + 1) {
                end += 3;
            }
        }
        if (end - at) / 3 * 2 + 2 >= LEAST {
            found.push(at..end);
        }
        at = end.max(at + 1);
    }
    found
}
