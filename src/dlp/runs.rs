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

/// The runs in which tokens and coded parts stand.
pub(super) fn tokens(text: &[u8]) -> Vec<Range<usize>> {
    runs(text, 0..text.len(), LEAST, &TOKEN).collect()
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

    proptest! {
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
