//! Undoes codings: one file per decoder. A decoder finds the coded parts of a text and says what they hold.

mod assembly;
mod base32;
mod base64;
mod coded;
mod escapes;
mod fold;
mod hex;
mod like;
mod mirror;
mod packed;
mod percent;

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::budget::{BoundReached, Budget};

/// A coding that was undone, in the words of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Coding {
    /// Backslash escapes, as JSON strings have them.
    Json,
    Percent,
    Base64,
    Hex,
    Base32,
    Gzip,
    Zlib,
    Zstd,
    /// Look-alikes and invisible characters.
    Unicode,
    Reversed,
    Rot13,
    /// Letters in the other case.
    Case,
}

impl Coding {
    /// The word in events.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Percent => "percent",
            Self::Base64 => "base64",
            Self::Hex => "hex",
            Self::Base32 => "base32",
            Self::Gzip => "gzip",
            Self::Zlib => "zlib",
            Self::Zstd => "zstd",
            Self::Unicode => "unicode",
            Self::Reversed => "reversed",
            Self::Rot13 => "rot13",
            Self::Case => "case",
        }
    }
}

/// What a coded part holds.
pub(super) struct Part {
    pub(super) coding: Coding,
    pub(super) bytes: Vec<u8>,
    pub(super) origin: Origin,
}

/// Where the bytes of a part stand in the text that it was found in.
#[derive(Debug)]
pub(super) enum Origin {
    /// All of them in this run.
    Run(Range<usize>),
    /// Each behind the one before.
    Steps(Steps),
}

/// Offsets of a part, each with the one in its text; between two of them both count alike.
#[derive(Debug, Default)]
pub(super) struct Steps(Vec<(usize, usize)>);

impl Steps {
    /// From here on, this byte of the part is that of the text.
    fn add(&mut self, part: usize, text: usize) {
        // Escapes often follow each other.
        if self.0.last() != Some(&(part, text)) {
            self.0.push((part, text));
        }
    }

    /// The offset in the text.
    fn of(&self, part: usize) -> usize {
        let next = self.0.partition_point(|(at, _)| *at <= part);
        let Some((at, text)) = next.checked_sub(1).and_then(|step| self.0.get(step)) else { return part };
        let most = self.0.get(next).map_or(usize::MAX, |(_, text)| *text);
        (text + (part - at)).min(most)
    }

    pub(super) fn range(&self, range: &Range<usize>) -> Range<usize> {
        self.of(range.start)..self.of(range.end)
    }
}

/// A text that is to be decoded.
pub(super) struct Source<'t> {
    pub(super) text: &'t [u8],
    /// Its runs of the characters of tokens.
    pub(super) runs: &'t [Range<usize>],
}

/// The parts that were decoded, and the budget that they are taken from.
pub(super) struct Parts<'b> {
    budget: &'b mut Budget,
    parts: Vec<Part>,
}

impl<'b> Parts<'b> {
    pub(super) fn of(budget: &'b mut Budget) -> Self {
        Self { budget, parts: Vec::new() }
    }

    pub(super) fn into_parts(self) -> Vec<Part> {
        self.parts
    }

    /// Fails unless so many bytes may still come out: no part is left out silently.
    fn has_room(&self, bytes: usize) -> Result<(), BoundReached> {
        self.budget.has_room(bytes)
    }

    fn add(&mut self, coding: Coding, bytes: Vec<u8>, origin: Origin) -> Result<(), BoundReached> {
        self.budget.run()?;
        self.budget.decode(bytes.len())?;
        self.parts.push(Part { coding, bytes, origin });
        Ok(())
    }
}

/// A decoder.
pub(super) type Decoder = fn(source: &Source<'_>, parts: &mut Parts<'_>) -> Result<(), BoundReached>;

/// The decoders, in the order in which they are tried.
pub(super) const DECODERS: &[Decoder] = &[
    escapes::decode,
    percent::decode,
    base64::decode,
    hex::decode,
    base32::decode,
    packed::decode,
    fold::decode,
];

pub(super) use mirror::{MIRRORS, Mirror};

/// How many bytes of a hundred are printable where decoded bytes are text.
const TEXT: usize = 85;
/// So many bytes are counted together.
const TOGETHER: usize = 128;

/// What each digit of an alphabet stands for; 0 of a byte that is none.
const fn values(alphabet: &[u8]) -> [u8; 256] {
    let mut values = [0; 256];
    let mut at = 0;
    while at < alphabet.len() {
        values[alphabet[at] as usize] = at as u8;
        at += 1;
    }
    values
}

/// Whether decoded bytes are worth another look: text, or packed data.
fn is_worth(bytes: &[u8]) -> bool {
    if packed::magic(bytes).is_some() {
        return true;
    }
    is_printable(bytes) || std::str::from_utf8(bytes).is_ok_and(|text| !text.is_empty())
}

fn is_printable(bytes: &[u8]) -> bool {
    // No branches and narrow sums, so that compilers make it a few wide instructions.
    let is_other = |byte: &u8| {
        let is = |sign: u8| *byte == sign;
        u8::from(!((byte.wrapping_sub(b' ') <= b'~' - b' ') | is(b'\n') | is(b'\r') | is(b'\t')))
    };
    let others = bytes.chunks(TOGETHER).map(|few| usize::from(few.iter().map(is_other).sum::<u8>()));
    !bytes.is_empty() && others.sum::<usize>() * 100 <= bytes.len() * (100 - TEXT)
}
