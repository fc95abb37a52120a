//! Hexadecimal digits, also with a colon or a space between the bytes.

use std::ops::Range;

use super::coded::runs_of;
use super::like::Like;
use super::{BoundReached, Coding, Origin, Parts, Source, is_worth, packed};
use crate::dlp::runs::{Set, set};

/// The least digits of a run; with signs between the bytes it is longer.
const LEAST: usize = 32;
const LEAST_SEPARATED: usize = LEAST / 2 * 3 - 1;
/// The digits of a sample.
const SAMPLE: usize = 32;

const DIGITS: Set = set!(b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F');
const SEPARATED: Set = set!(b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F' | b':' | b' ');

pub(super) fn decode(source: &Source<'_>, parts: &mut Parts<'_>) -> Result<(), BoundReached> {
    let text = source.text;
    for coded in runs_of(source, LEAST, &DIGITS) {
        // A digit in front of it may be another word's.
        for skipped in 0..2 {
            let digits = coded.digits.get(skipped..).unwrap_or_default();
            add(digits, coded.range(text, skipped, 0), parts)?;
        }
    }
    for run in separated_runs(text) {
        for run in separated(text, run) {
            let digits: Vec<u8> = text
                .get(run.clone())
                .unwrap_or_default()
                .iter()
                .copied()
                .filter(u8::is_ascii_hexdigit)
                .collect();
            add(&digits, run, parts)?;
        }
    }
    Ok(())
}

fn add(digits: &[u8], run: Range<usize>, parts: &mut Parts<'_>) -> Result<(), BoundReached> {
    if !looks_coded(digits) {
        return Ok(());
    }
    parts.has_room(digits.len() / 2)?;
    let bytes = undo(digits);
    if is_worth(&bytes) {
        parts.add(Coding::Hex, bytes, Origin::Run(run))?;
    }
    Ok(())
}

/// Whether the beginning, the middle or the end holds text, or the beginning packed data: most runs are digests.
fn looks_coded(digits: &[u8]) -> bool {
    let last = digits.len().saturating_sub(SAMPLE) / 2 * 2;
    let is_text = |start: usize| digits.get(start..).is_none_or(is_text);
    is_text(0)
        || last > 0 && (is_text(last) || is_text(last / 4 * 2))
        || digits.first_chunk().is_some_and(|[a, b, c, d, e, f, g, h]: &[u8; 8]| {
            packed::magic(&[[*a, *b], [*c, *d], [*e, *f], [*g, *h]].map(|pair| undo_pair(&pair))).is_some()
        })
}

/// Whether text may begin there.
fn is_text(digits: &[u8]) -> bool {
    let sample = digits.get(..SAMPLE).unwrap_or(digits);
    let (sixes, rest) = sample.as_chunks::<6>();
    let mut like = Like::default();
    for six in sixes {
        like = like.then(six.iter().fold(0, |bits, digit| bits << 4 | u32::from(value(*digit))));
        if !like.is_text() {
            return false;
        }
    }
    rest.as_chunks::<2>().0.iter().fold(like, |like, pair| like.then_one(undo_pair(pair))).is_text()
}

/// The value of a digit: those of letters are nine more than their lowest bits.
fn value(digit: u8) -> u8 {
    (digit & 0xf) + 9 * (digit >> 6)
}

fn undo_pair([high, low]: &[u8; 2]) -> u8 {
    value(*high) << 4 | value(*low)
}

fn undo(digits: &[u8]) -> Vec<u8> {
    digits.as_chunks::<2>().0.iter().map(undo_pair).collect()
}

/// The runs of pairs and signs that may have parts in which each two digits are followed by one sign: of three bytes of such
/// a part one is a sign, wherever they stand.
fn separated_runs(text: &[u8]) -> impl Iterator<Item = Range<usize>> + '_ {
    let is_part = |three: &[u8; 3]| {
        let [one, two, three] = three.map(|byte| (DIGITS[usize::from(byte)], SEPARATED[usize::from(byte)]));
        (one.1 & two.1 & three.1) && u8::from(one.0) + u8::from(two.0) + u8::from(three.0) == 2
    };
    let is_in = |byte: &&u8| SEPARATED[usize::from(**byte)];
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            let rest = text.get(at..)?;
            if !is_part(rest.first_chunk()?) {
                at += LEAST_SEPARATED - 2;
                continue;
            }
            let before = text.get(..at).unwrap_or_default();
            let run = at - before.iter().rev().take_while(is_in).count()
                ..at + rest.iter().take_while(is_in).count();
            at = run.end;
            if run.len() >= LEAST_SEPARATED {
                return Some(run);
            }
        }
    })
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::dlp::runs::runs;

    fn parts(text: &[u8], runs: impl Iterator<Item = Range<usize>>) -> Vec<Range<usize>> {
        runs.flat_map(|run| separated(text, run)).collect()
    }

    proptest! {
        #[test]
        fn separated_parts_are_those_of_all_runs(text in "([ :.1a]{0,60}|(1a:){10,20}|(1a ){10,20}){0,8}") {
            let text = text.as_bytes();
            let expected = parts(text, runs(text, 0..text.len(), LEAST_SEPARATED, &SEPARATED));
            prop_assert_eq!(parts(text, separated_runs(text)), expected);
        }
    }
}
