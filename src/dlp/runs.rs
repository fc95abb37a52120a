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

/// So many bytes are looked at together.
const BLOCK: usize = 64;
/// The logarithm of [`LEAST`].
const HALVINGS: u32 = LEAST.ilog2();

/// Finds the runs in which tokens and coded parts stand. Most texts have few, so whole blocks are passed over.
pub(super) fn tokens(text: &[u8], found: &mut Vec<Range<usize>>) {
    found.clear();
    if text.len() < LEAST {
        return;
    }
    let (blocks, last) = text.as_chunks::<BLOCK>();
    // Behind the text there are bytes that are in no token.
    let mut end = [0; BLOCK];
    end.iter_mut().zip(last).for_each(|(to, from)| *to = *from);
    // Where the bytes of tokens begin that stand in front of the block.
    let mut start = 0;
    for (number, block) in blocks.iter().chain([&end]).enumerate() {
        start = ended(tokens_of(block), number * BLOCK, start, found);
    }
}

/// Adds the runs that end in a block, which stands there and of which the bits say what bytes are in tokens. Returns where the
/// bytes begin that are in tokens up to its end.
fn ended(bits: u64, at: usize, start: usize, found: &mut Vec<Range<usize>>) -> usize {
    let first = bits.trailing_ones();
    if first == u64::BITS {
        return start;
    }
    if at + first as usize - start >= LEAST {
        found.push(start..at + first as usize);
    }
    // Each bit that remains is one behind which all bits of the shortest run are set. What goes on behind the block is no
    // run yet.
    let last = bits.leading_ones();
    let inside = bits & (u64::MAX >> last) & (u64::MAX << first);
    let mut starts = (0..HALVINGS).fold(inside, |starts, halving| starts & starts >> (1 << halving));
    while starts != 0 {
        let start = starts.trailing_zeros();
        let end = start + (inside >> start).trailing_ones();
        found.push(at + start as usize..at + end as usize);
        starts &= u64::MAX << end;
    }
    at + (u64::BITS - last) as usize
}

/// A bit for each byte of a block, the first one lowest: whether it is in [`TOKEN`]. It has no branches and no table, so that
/// compilers make it a few wide instructions.
fn tokens_of(block: &[u8; BLOCK]) -> u64 {
    /// Multiplied by this, the lowest bits of eight bytes stand together in the highest byte.
    const GATHER: u64 = 0x0102_0408_1020_4080;
    let is_in = |byte: u8| {
        let within = |from: u8, to: u8| u8::from(byte.wrapping_sub(from) <= to - from);
        let is = |sign: u8| u8::from(byte == sign);
        let letters_and_digits = within(b'-', b'9') | within(b'@', b'Z') | within(b'a', b'z');
        letters_and_digits | within(b'^', b'_') | is(b'!') | is(b'#') | is(b'+') | is(b'=') | is(b'~')
    };
    let gathered = |eight: &[u8; 8]| u64::from_le_bytes(*eight).wrapping_mul(GATHER) >> 56;
    block.as_chunks::<16>().0.iter().rev().fold(0, |mask, bytes| {
        let mut are_in = [0; 16];
        are_in.iter_mut().zip(bytes).for_each(|(to, byte)| *to = is_in(*byte));
        let (eights, _) = are_in.as_chunks::<8>();
        eights.iter().rev().fold(mask, |mask, eight| mask << 8 | gathered(eight))
    })
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
    fn the_bits_of_a_block_are_those_of_the_set() {
        for at in 0..BLOCK {
            for byte in 0..=u8::MAX {
                let mut block = [0; BLOCK];
                block[at] = byte;
                assert_eq!(tokens_of(&block), u64::from(TOKEN[usize::from(byte)]) << at, "{byte}");
            }
        }
    }

    proptest! {
        #[test]
        fn runs_of_tokens_are_those_of_the_set(parts in proptest::collection::vec((0_usize..90, 0_usize..3), 0..8)) {
            let text: String =
                parts.iter().map(|(length, out)| "a".repeat(*length) + &" ".repeat(*out)).collect();
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
