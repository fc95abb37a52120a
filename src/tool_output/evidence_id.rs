//! The name of a kept text: the first 80 bits of its SHA-256, so that one text has one name, and no name leads out of a directory.

use std::fmt;

use crate::digest;

/// Bytes of the digest that are the name.
const BYTES: usize = 10;

/// The name of a text: 20 lower-case hex digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EvidenceId([u8; BYTES]);

impl EvidenceId {
    /// The name of this text.
    pub fn of(text: &str) -> Self {
        Self::of_digest(&digest::sha256_of(&[text.as_bytes()]))
    }

    /// The name of the text with this SHA-256.
    pub fn of_digest(digest: &[u8; 32]) -> Self {
        let mut id = [0; BYTES];
        id.iter_mut().zip(digest).for_each(|(to, from)| *to = *from);
        Self(id)
    }

    /// Reads a name; any other spelling of it is none.
    pub fn parse(text: &str) -> Option<Self> {
        let digits: &[u8; 2 * BYTES] = text.as_bytes().try_into().ok()?;
        let mut id = [0; BYTES];
        for (byte, pair) in id.iter_mut().zip(digits.chunks_exact(2)) {
            for digit in pair {
                let value = match digit {
                    b'0'..=b'9' => digit - b'0',
                    b'a'..=b'f' => digit - b'a' + 10,
                    _ => return None,
                };
                *byte = *byte << 4 | value;
            }
        }
        Some(Self(id))
    }
}

impl fmt::Display for EvidenceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&digest::hex(&self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_has_the_name_that_sha256sum_prints_first() {
        let id = EvidenceId::of("");
        assert_eq!(id.to_string(), "e3b0c44298fc1c149afb");
        assert_eq!(EvidenceId::parse("e3b0c44298fc1c149afb"), Some(id));
    }

    #[test]
    fn no_other_spelling_is_a_name() {
        for text in [
            "",
            "..",
            "e3b0c44298fc1c149af",
            "e3b0c44298fc1c149afb4",
            "E3B0C44298FC1C149AFB",
            "e3b0c44298fc1c149afg",
            "../../../etc/passwd0",
            "e3b0c44298fc1c149af\u{e9}",
            "e3b0c44298fc1c149/fb",
        ] {
            assert_eq!(EvidenceId::parse(text), None, "{text:?}");
        }
    }
}
