//! Searches a text that comes in pieces, and says how much of it may go on.
//!
//! Each piece is searched together with what came before it, before any of it goes on. Only a token that may not have ended is
//! held: what follows decides whether it is a secret. However the text is cut, a secret's last byte is never let go.

use std::fmt;
use std::ops::Range;

use super::{BoundReached, Budget, Coding, Confidence, Match, Search, Sight};

/// How much is held at most, in bytes; a token that goes on for longer goes on in pieces.
const HELD: usize = 32 << 10;
/// What stays held of such a token.
const KEPT: usize = 8 << 10;
/// How much of what has gone on is searched again with what follows it.
const CONTEXT: usize = 2 << 10;
/// The same within a token.
const LONGEST_CONTEXT: usize = 16 << 10;
/// The first bytes, by which a binary text is known.
const FIRST: u64 = 512;

/// A secret in a text that came in pieces. It has no text of it.
#[derive(Clone, PartialEq, Eq)]
pub struct StreamMatch {
    /// The detector's id.
    pub detector: String,
    pub confidence: Confidence,
    pub checksum: Option<bool>,
    /// Where it stands, counted from the beginning of the whole text.
    pub range: Range<u64>,
    pub decoded: Vec<Coding>,
    /// Of the value, after decoding.
    pub sha256: [u8; 32],
}

impl fmt::Debug for StreamMatch {
    /// Without the hash, which may be that of a value that somebody can guess.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} at {:?} {:?}", self.confidence.as_str(), self.detector, self.range, self.decoded)
    }
}

/// The search of one text.
pub struct StreamScanner {
    search: Search,
    /// The newest bytes.
    window: Vec<u8>,
    /// How many bytes came before those of the window.
    base: u64,
    /// How many bytes of the window may go on.
    released: usize,
    /// What ends before this was judged.
    judged: u64,
    first: First,
    findings: Vec<StreamMatch>,
    /// The findings that stand in the window.
    known: Vec<Known>,
}

/// A finding that was told.
struct Known {
    detector: String,
    confidence: Confidence,
    is_coded: bool,
    sha256: [u8; 32],
    range: Range<u64>,
}

impl Known {
    /// Whether a finding is this one: the same value again, in a coded run of which more has come, or more of the same.
    fn is(&self, other: &Self) -> bool {
        let is_more = !other.is_coded
            && !self.is_coded
            && other.range.start == self.range.start
            && other.confidence <= self.confidence;
        let overlaps = self.range.start < other.range.end && other.range.start < self.range.end;
        self.detector == other.detector && overlaps && (is_more || self.sha256 == other.sha256)
    }
}

/// Why a window is searched.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Occasion {
    /// More has come.
    More,
    /// More has come than may be held.
    Full,
    /// The text ends, or nothing more has come for so long that it may have.
    End,
}

impl StreamScanner {
    pub fn new(search: impl Into<Search>) -> Self {
        Self {
            search: search.into(),
            window: Vec::new(),
            base: 0,
            released: 0,
            judged: 0,
            first: First::default(),
            findings: Vec::new(),
            known: Vec::new(),
        }
    }

    /// Searches what comes from now on for this instead.
    pub fn renew(&mut self, search: Search) {
        self.search = search;
    }

    /// Another text begins, which may go on from the one before.
    pub fn begin(&mut self, may_be_binary: bool) {
        self.first = if may_be_binary { First::default() } else { First::of_text() };
    }

    /// Takes the next piece. Nothing of it may go on before the findings were looked at.
    ///
    /// # Errors
    /// A bound was reached: the text was not searched to its end.
    pub fn write(&mut self, mut piece: &[u8]) -> Result<(), BoundReached> {
        while !piece.is_empty() {
            let held = self.held();
            let (now, rest) = piece.split_at(piece.len().min(HELD - held));
            piece = rest;
            self.first.take(now);
            self.window.extend_from_slice(now);
            if self.held() == HELD {
                self.search(Occasion::Full)?;
            } else if held == 0 || !now.iter().all(|byte| self.is_token(*byte)) {
                self.search(Occasion::More)?;
            }
        }
        Ok(())
    }

    /// Judges what is held as if the text ended here, and lets it go. It is remembered: the text may go on.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub fn flush(&mut self) -> Result<(), BoundReached> {
        if self.held() > 0 { self.search(Occasion::End) } else { Ok(()) }
    }

    /// How many bytes of the text may go on, if its findings allow that.
    pub fn released(&self) -> u64 {
        self.base + self.released as u64
    }

    /// The findings since the last call.
    pub fn take_findings(&mut self) -> Vec<StreamMatch> {
        std::mem::take(&mut self.findings)
    }

    fn held(&self) -> usize {
        self.window.len() - self.released
    }

    fn is_token(&self, byte: u8) -> bool {
        // Bytes that are not ASCII's stand in tokens to hide them; in binary data they are everywhere.
        is_token(byte) && (byte.is_ascii() || !self.first.is_binary)
    }

    /// Where the token begins that stands at the end of the window, at the earliest there.
    fn token_start(&self, earliest: usize) -> usize {
        let before = self.window.get(earliest..).unwrap_or_default();
        let length = before.iter().rev().take_while(|byte| self.is_token(**byte)).count();
        self.window.len() - length
    }

    fn search(&mut self, occasion: Occasion) -> Result<(), BoundReached> {
        let end = self.window.len();
        let open = match occasion {
            Occasion::End => end,
            Occasion::More => self.token_start(self.released),
            // What is held of a token without an end goes on but for its last bytes.
            Occasion::Full => self.token_start(self.released).max(end - KEPT),
        };
        let sight = if self.first.is_binary { Sight::Sealed } else { Sight::Whole };
        let terms = self.search.clone();
        let (mut budget, mut found) = (Budget::of(end, usize::MAX), Vec::new());
        let searched = terms.scan(&self.window, sight, &mut budget, &mut found);
        for found in &found {
            let may_go_on = found.range.end == end && open < end;
            // The value in a coded run is there, wherever the run ends.
            let is_cut = occasion == Occasion::Full && !found.decoded.is_empty();
            if !may_go_on || is_cut {
                self.add(found);
            }
        }
        searched?;
        self.judged = self.base + open as u64;
        self.released = open;
        self.forget();
        Ok(())
    }

    fn add(&mut self, found: &Match<'_>) {
        let range = self.base + found.range.start as u64..self.base + found.range.end as u64;
        if range.end <= self.judged {
            return;
        }
        let detector = &found.detector.id;
        let known = Known {
            detector: detector.clone(),
            confidence: found.confidence,
            is_coded: !found.decoded.is_empty(),
            sha256: found.sha256,
            range: range.clone(),
        };
        if let Some(same) = self.known.iter_mut().find(|other| other.is(&known)) {
            same.range.end = same.range.end.max(range.end);
            return;
        }
        self.known.push(known);
        self.findings.push(StreamMatch {
            detector: detector.clone(),
            confidence: found.confidence,
            checksum: found.checksum,
            range,
            decoded: found.decoded.clone(),
            sha256: found.sha256,
        });
    }

    /// Forgets what has gone on, but for what the next piece is searched with.
    fn forget(&mut self) {
        let context = self.released.saturating_sub(CONTEXT.max(self.search.longest_known()));
        let earliest = self.released.saturating_sub(LONGEST_CONTEXT);
        let kept = context.min(self.token_start(earliest));
        self.window.drain(..kept);
        self.base += kept as u64;
        self.released -= kept;
        self.known.retain(|known| known.range.end > self.base);
    }
}

/// What the first bytes of a text say of it.
#[derive(Default)]
struct First {
    bytes: Vec<u8>,
    is_binary: bool,
    is_known: bool,
}

impl First {
    /// Of a text that is said to be one.
    fn of_text() -> Self {
        Self { bytes: Vec::new(), is_binary: false, is_known: true }
    }

    fn take(&mut self, piece: &[u8]) {
        let room = FIRST as usize - self.bytes.len();
        if room == 0 || self.is_known {
            return;
        }
        self.bytes.extend_from_slice(&piece[..piece.len().min(room)]);
        let is_cut = |error: std::str::Utf8Error| error.error_len().is_none();
        let is_text = std::str::from_utf8(&self.bytes).map_or_else(is_cut, |_| true);
        self.is_binary = !is_text || self.bytes.contains(&0);
    }
}

/// Whether a byte may stand in a token or in a coded run of one.
fn is_token(byte: u8) -> bool {
    byte > b' '
        && !matches!(
            byte,
            b'"' | b'\''
                | b'`'
                | b'<'
                | b'>'
                | b'{'
                | b'}'
                | b'('
                | b')'
                | b'['
                | b']'
                | b','
                | b';'
                | b'|'
                | b'&'
        )
}

#[cfg(test)]
mod tests;
