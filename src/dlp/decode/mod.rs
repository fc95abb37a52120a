//! Undoes codings: one file per decoder. A decoder finds the coded parts of a text and says what they hold.

mod base32;
mod base64;
mod escapes;
mod fold;
mod hex;
mod mirror;
mod packed;
mod percent;

use std::ops::Range;

use serde::{Deserialize, Serialize};

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
        self.0.push((part, text));
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

/// How a text may be decoded.
pub(super) struct Room {
    /// How many bytes may come out.
    pub(super) bytes: usize,
}

/// A decoder.
pub(super) type Decoder = fn(text: &[u8], room: &Room, parts: &mut Vec<Part>);

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

/// A set of bytes.
type Set = [bool; 256];

/// The set of the bytes for which a test holds.
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
use set;

/// How many bytes of a hundred are printable where decoded bytes are text.
const TEXT: usize = 85;

/// Whether decoded bytes are worth another look: text, or packed data.
fn is_worth(bytes: &[u8]) -> bool {
    if packed::magic(bytes).is_some() {
        return true;
    }
    is_printable(bytes) || std::str::from_utf8(bytes).is_ok_and(|text| !text.is_empty())
}

const PRINTABLE: Set = set!(b' '..=b'~' | b'\n' | b'\r' | b'\t');

fn is_printable(bytes: &[u8]) -> bool {
    let others = bytes.iter().filter(|byte| !PRINTABLE[usize::from(**byte)]).count();
    !bytes.is_empty() && others * 100 <= bytes.len() * (100 - TEXT)
}

/// The runs of a text whose bytes are all in a set and that have a least length. Of a text without any, one byte in so many
/// is looked at.
fn runs<'a>(text: &'a [u8], least: usize, set: &'a Set) -> impl Iterator<Item = Range<usize>> + 'a {
    let is_in = move |at: usize| text.get(at).is_some_and(|byte| set[usize::from(*byte)]);
    let mut at = 0;
    std::iter::from_fn(move || {
        while at + least <= text.len() {
            // A run of that length that begins here or later within it has this byte.
            let probe = at + least - 1;
            if !is_in(probe) {
                at = probe + 1;
                continue;
            }
            let start = (at..probe).rev().find(|before| !is_in(*before)).map_or(at, |before| before + 1);
            let end = (probe..text.len()).find(|after| !is_in(*after)).unwrap_or(text.len());
            at = end + 1;
            if end - start >= least {
                return Some(start..end);
            }
        }
        None
    })
}
