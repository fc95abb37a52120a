//! Base32 (RFC 4648).

use super::coded::runs_of;
use super::like::Like;
use super::{BoundReached, Coding, Origin, Parts, Source, is_worth};
use crate::dlp::runs::{Set, set};

/// The least characters of a run.
const LEAST: usize = 24;
const ALIGNMENTS: usize = 8;
/// The digits of a sample, eight and eight.
const SAMPLE: usize = 2;
const SET: Set = set!(b'A'..=b'Z' | b'2'..=b'7');

const VALUES: [u8; 256] = super::values(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567");

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
    let eights = digits.as_chunks::<8>().0;
    let last = eights.len().saturating_sub(SAMPLE);
    let is_text = |start: usize| eights.get(start..).is_none_or(is_text);
    is_text(0) || last > 0 && (is_text(last) || is_text(last / 2))
}

/// Whether text may begin there.
fn is_text(eights: &[[u8; 8]]) -> bool {
    let Some([first, second]) =
        eights.first_chunk::<SAMPLE>().map(|sample| sample.each_ref().map(undo_eight))
    else {
        return true;
    };
    let like = Like::default().then((first >> 16) as u32);
    like.is_text()
        && like
            .then((first << 8 & 0xff_ff00 | second >> 32) as u32)
            .then((second >> 8 & 0xff_ffff) as u32)
            .then_one(second as u8)
            .is_text()
}

/// The five bytes of eight digits, in the lowest bits.
fn undo_eight(eight: &[u8; 8]) -> u64 {
    eight.iter().fold(0, |bits, digit| bits << 5 | u64::from(VALUES[usize::from(*digit)]))
}

fn undo(digits: &[u8]) -> Vec<u8> {
    let (eights, rest) = digits.as_chunks::<8>();
    let mut bytes = vec![0; eights.len() * 5];
    for (eight, five) in eights.iter().zip(bytes.as_chunks_mut::<5>().0) {
        let [_, _, _, a, b, c, d, e] = undo_eight(eight).to_be_bytes();
        *five = [a, b, c, d, e];
    }
    let mut last = [b'A'; 8];
    last.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
    let last = undo_eight(&last).to_be_bytes();
    bytes.extend(last.iter().skip(3).take(rest.len() * 5 / 8));
    bytes
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Digit by digit.
    fn undo_slowly(digits: &[u8]) -> Vec<u8> {
        let (mut bytes, mut bits, mut count) = (Vec::new(), 0_u32, 0);
        for digit in digits {
            let value = if digit.is_ascii_uppercase() { digit - b'A' } else { digit - b'2' + 26 };
            bits = (bits << 5 | u32::from(value)) & 0xffff;
            count += 5;
            if count >= 8 {
                count -= 8;
                bytes.push((bits >> count & 0xff) as u8);
            }
        }
        bytes
    }

    proptest! {
        #[test]
        fn digits_are_undone_as_one_by_one(digits in "[A-Z2-7]{0,40}") {
            prop_assert_eq!(undo(digits.as_bytes()), undo_slowly(digits.as_bytes()));
        }
    }
}
