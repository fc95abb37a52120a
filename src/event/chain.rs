//! The chain of lines: each event names a digest of its line and of the chain before it, so that a change shows.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::digest::{hex, sha256_of, unhex};
use crate::id::Text;

/// SHA-256 over the chain before (32 bytes) and the line without its field `chain`; 64 lower-case hex digits as text.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Chain([u8; 32]);

/// The field as it stands at the end of a line, in front of the hex digits.
const FIELD: &[u8] = b",\"chain\":\"";
/// The end of the field and of the line.
const END: &[u8] = b"\"}";

impl Chain {
    /// The chain before the first event of a start.
    pub const BEGIN: Self = Self([0; 32]);

    /// The chain of a line, which has no field `chain` yet.
    #[must_use]
    pub fn after(self, line: &[u8]) -> Self {
        Self(sha256_of(&[&self.0, line]))
    }

    /// Puts the field at the end of a line, which is a JSON object with other fields.
    pub fn append_to(self, line: &mut Vec<u8>) {
        line.pop();
        line.extend_from_slice(FIELD);
        line.extend_from_slice(hex(&self.0).as_bytes());
        line.extend_from_slice(END);
    }

    /// Splits the field from the end of a line. Returns the chain that the line names, and the chain that the line has
    /// behind `before`; none where the line does not end in the field.
    pub fn of_line(line: &[u8], before: Self) -> Option<(Self, Self)> {
        let rest = line.strip_suffix(END)?;
        let (rest, digits) = rest.split_at_checked(rest.len().checked_sub(64)?)?;
        let named = Self::parse(std::str::from_utf8(digits).ok()?)?;
        let object = rest.strip_suffix(FIELD)?;
        Some((named, Self(sha256_of(&[&before.0, object, b"}"]))))
    }

    /// Reads 64 lower-case hex digits.
    pub fn parse(text: &str) -> Option<Self> {
        unhex(text.as_bytes()).map(Self)
    }

    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

impl fmt::Debug for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Chain {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Chain {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(Text(|text: &str| Self::parse(text).ok_or("64 hex digits")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_with_its_chain_gives_the_same_chain_back() {
        let bare = br#"{"id":"a"}"#;
        let chain = Chain::BEGIN.after(bare);
        let mut line = bare.to_vec();
        chain.append_to(&mut line);
        assert_eq!(line, format!(r#"{{"id":"a","chain":"{chain}"}}"#).into_bytes());
        assert_eq!(Chain::of_line(&line, Chain::BEGIN), Some((chain, chain)));
        let (named, found) = Chain::of_line(&line, chain).unwrap();
        assert!(named == chain && found != chain, "behind another chain the line has another");
    }

    #[test]
    fn every_changed_byte_shows() {
        let bare = br#"{"id":"a","n":1}"#;
        let chain = Chain::BEGIN.after(bare);
        let mut line = bare.to_vec();
        chain.append_to(&mut line);
        for at in 0..line.len() {
            let mut other = line.clone();
            other[at] ^= 1;
            let seen = Chain::of_line(&other, Chain::BEGIN);
            assert!(seen.is_none_or(|(named, found)| named != found), "byte {at}");
        }
    }

    #[test]
    fn a_line_without_the_field_has_no_chain() {
        for line in ["", "{}", r#"{"chain":"00"}"#, r#"{"a":1,"chain":"XY"}"#] {
            assert_eq!(Chain::of_line(line.as_bytes(), Chain::BEGIN), None, "{line}");
        }
    }
}
