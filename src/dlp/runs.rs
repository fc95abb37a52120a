//! Finds runs of characters: what is long enough to be a token, or a part in a coding.

use std::ops::Range;

/// A set of bytes.
pub(super) type Set = [bool; 256];

/// The set of the bytes for which a pattern holds.
macro_rules! set {
    ($byte:pat) => {{
        let mut set = [false; 256];
        let mut byte = 0_usize;
        while byte < 256 {
            set[byte] = matches!(byte as u8, $byte);
            byte += 1;
        }
        set
    }};
}
pub(super) use set;

/// The bytes of tokens, of the values that names are given, and of base64, base32 and hex.
pub(super) const TOKEN: Set = set!(
    b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' | b'+' | b'/' | b'=' | b'.' | b'~' | b'!' | b'@' | b'#' | b'^'
);
/// The shortest run that is looked at: no token and no coded part has fewer bytes.
pub(super) const LEAST: usize = 16;

/// So many bytes are looked at together: each run has as many at a multiple of that.
const WORD: usize = LEAST / 2;

/// Finds the runs in which tokens and coded parts stand. Most texts have few, so most words are passed over: one that is not
/// all in a run ends every run that stands in it.
pub(super) fn tokens(text: &[u8], found: &mut Vec<Range<usize>>) {
    found.clear();
    let (words, _) = text.as_chunks::<WORD>();
    let is_out = |byte: &u8| !TOKEN[usize::from(*byte)];
    let mut number = 0;
    while let Some(word) = words.get(number) {
        if !is_visible(*word) || word.iter().any(is_out) {
            number += 1;
            continue;
        }
        let at = number * WORD;
        let before = text.get(..at).unwrap_or_default();
        let start = before.iter().rposition(is_out).map_or(0, |out| out + 1);
        let behind = text.get(at + WORD..).unwrap_or_default();
        let end = behind.iter().position(is_out).map_or(text.len(), |length| at + WORD + length);
        if end - start >= LEAST {
            found.push(start..end);
        }
        // The byte that ends the run is in this word, or begins it.
        number = end / WORD + 1;
    }
}

/// Whether all bytes of a word are from the first sign behind the space to the end of ASCII, as all of [`TOKEN`] are.
fn is_visible(word: [u8; WORD]) -> bool {
    const ONES: u64 = u64::from_ne_bytes([1; WORD]);
    let word = u64::from_le_bytes(word);
    // Where no byte is lower, nothing is borrowed from the next one.
    (word.wrapping_sub(ONES * u64::from(b'!')) | word) & (ONES << 7) == 0
}

/// The runs of a part of a text whose bytes are all in a set and that have a least length. Of a text without any, one byte
/// in so many is looked at.
pub(super) fn runs<'a>(
    text: &'a [u8],
    within: Range<usize>,
    least: usize,
    set: &'a Set,
) -> impl Iterator<Item = Range<usize>> + 'a {
    let text = text.get(..within.end).unwrap_or(text);
    let is_out = move |byte: &u8| !set[usize::from(*byte)];
    let mut at = within.start;
    std::iter::from_fn(move || {
        // A run of that length that begins here has this byte.
        while let Some(window) = text.get(at..at + least) {
            if let Some(out) = window.iter().rposition(is_out) {
                at += out + 1;
                continue;
            }
            let start = at;
            let rest = text.get(start + least..).unwrap_or_default();
            let end = rest.iter().position(is_out).map_or(text.len(), |length| start + least + length);
            at = end + 1;
            return Some(start..end);
        }
        None
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LETTERS: Set = set!(b'a'..=b'c');

    #[test]
    fn a_word_is_visible_where_each_of_its_bytes_is_and_all_of_the_set_are() {
        for at in 0..WORD {
            for (byte, other) in (0..=u8::MAX).flat_map(|byte| [b'!', b'a', 0x7f].map(|other| (byte, other)))
            {
                let mut word = [other; WORD];
                word[at] = byte;
                assert_eq!(is_visible(word), (b'!'..=0x7f).contains(&byte), "{byte} {other}");
                assert!(is_visible(word) || !TOKEN[usize::from(byte)]);
            }
        }
    }

    proptest! {
        #[test]
        fn runs_of_tokens_are_those_of_the_set(
            parts in proptest::collection::vec((0_usize..90, "[ \\x00\"`ä\\x7f]{0,3}"), 0..8),
        ) {
            let text: String = parts.iter().map(|(length, out)| "a".repeat(*length) + out).collect();
            let expected: Vec<_> = runs(text.as_bytes(), 0..text.len(), LEAST, &TOKEN).collect();
            let mut found = Vec::new();
            tokens(text.as_bytes(), &mut found);
            prop_assert_eq!(found, expected);
        }

        #[test]
        fn runs_are_those_that_a_walk_over_every_byte_finds(text in "[abc.]{0,80}", least in 1_usize..6) {
            let mut expected = Vec::new();
            let mut at = 0;
            for part in text.split('.') {
                if part.len() >= least {
                    expected.push(at..at + part.len());
                }
                at += part.len() + 1;
            }
            let found: Vec<_> = runs(text.as_bytes(), 0..text.len(), least, &LETTERS).collect();
            prop_assert_eq!(found, expected);
        }
    }
}
