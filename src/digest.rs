//! SHA-256 and bytes in hex, as events name what they do not repeat; a hash by which this process knows a text again.

use std::fmt;
use std::hash::{BuildHasher, Hash};

use aws_lc_rs::digest::{Context, SHA256, digest};
use foldhash::quality::RandomState;

/// SHA-256 of these bytes: 64 lower-case hex digits.
pub(crate) fn sha256_hex(bytes: &[u8]) -> String {
    hex(digest(&SHA256, bytes).as_ref())
}

/// SHA-256 of several pieces as of one text.
pub(crate) fn sha256_of(pieces: &[&[u8]]) -> [u8; 32] {
    let mut context = Context::new(&SHA256);
    pieces.iter().for_each(|piece| context.update(piece));
    let mut bytes = [0; 32];
    bytes.copy_from_slice(context.finish().as_ref());
    bytes
}

/// Names a content: `sha256:` and 128 bits of its digest as 32 hex digits. Two contents of one name cannot be searched for:
/// that takes 2^64 tries, where 64 bits took 2^32.
pub(crate) fn content_name(bytes: &[u8]) -> String {
    let mut hex = sha256_hex(bytes);
    hex.truncate(32);
    format!("sha256:{hex}")
}

/// Two lower-case hex digits a byte.
pub(crate) fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        for digit in [byte >> 4, byte & 0xf] {
            text.push(char::from(DIGITS[usize::from(digit)]));
        }
    }
    text
}

/// Reads exactly `N` bytes of two lower-case hex digits each; none of anything else.
pub(crate) fn unhex<const N: usize>(text: &[u8]) -> Option<[u8; N]> {
    let value = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    };
    let (pairs, []) = text.as_chunks::<2>() else { return None };
    if pairs.len() != N {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
        *byte = value(*high)? << 4 | value(*low)?;
    }
    Some(bytes)
}

/// A hash of 128 bits that nobody else can make: its seeds are random, and are never told. What is remembered under it is
/// taken for no other text.
#[derive(Default)]
pub(crate) struct SecretHash([RandomState; 2]);

impl SecretHash {
    /// The hash of a value.
    pub(crate) fn of(&self, value: impl Hash + Copy) -> u128 {
        let [high, low] = &self.0;
        u128::from(high.hash_one(value)) << 64 | u128::from(low.hash_one(value))
    }
}

impl fmt::Debug for SecretHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretHash")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_written_in_lower_case_hex() {
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(sha256_hex(b""), empty);
        assert_eq!(hex(&[0x00, 0x0f, 0xa5, 0xff]), "000fa5ff");
        assert_eq!(unhex(b"000fa5ff"), Some([0x00, 0x0f, 0xa5, 0xff]));
        for other in
            ["000fa5f", "000fa5ff0", "000fa5ff00", "000FA5FF", "000fa5fg", "000fa5\u{e9}", "+00fa5ff"]
        {
            assert_eq!(unhex::<4>(other.as_bytes()), None, "{other}");
        }
    }

    #[test]
    fn a_hash_is_the_same_for_one_process_and_another_for_the_next() {
        let [one, other] = [SecretHash::default(), SecretHash::default()];
        assert_eq!(one.of(("a", 1)), one.of(("a", 1)));
        assert_ne!(one.of(("a", 1)), one.of(("a", 2)));
        assert_ne!(one.of("a"), other.of("a"));
        assert_ne!(one.of("a") >> 64, one.of("a") & u128::from(u64::MAX), "two seeds");
    }

    #[test]
    fn a_name_has_128_bits_of_the_digest() {
        assert_eq!(content_name(b""), "sha256:e3b0c44298fc1c149afbf4c8996fb924");
    }
}
