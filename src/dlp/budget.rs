//! The bounds of one search, so that no text costs more than its length allows.

/// How many bytes may come out of decoders for each byte of the text.
const DECODED_PER_BYTE: usize = 4;
/// What a short text may have decoded all the same.
const LEAST_DECODED: usize = 64 << 10;
/// How many runs are decoded.
const MOST_RUNS: usize = 10_000;
/// How many findings are told apart.
const MOST_FINDINGS: usize = 256;

/// What is left to be spent on the texts of one request.
#[derive(Debug, Clone)]
pub struct Budget {
    decoded: usize,
    runs: usize,
    findings: usize,
}

/// A bound was reached before the text was searched to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BoundReached {
    #[error("more than {0} bytes would come out of its codings")]
    Decoded(usize),
    #[error("more than 1 MiB would come out of a compressed part")]
    Packed,
    #[error("it has more than {MOST_RUNS} coded parts")]
    Runs,
    #[error("it has more than {MOST_FINDINGS} findings")]
    Findings,
}

impl Budget {
    /// The budget of a request whose body has so many bytes; no more than `most` bytes are decoded.
    pub fn of(bytes: usize, most: usize) -> Self {
        let decoded = bytes.saturating_mul(DECODED_PER_BYTE).max(LEAST_DECODED).min(most);
        Self { decoded, runs: MOST_RUNS, findings: MOST_FINDINGS }
    }

    /// Fails unless so many bytes may still be decoded.
    pub(super) fn has_room(&self, bytes: usize) -> Result<(), BoundReached> {
        if bytes > self.decoded { Err(BoundReached::Decoded(self.decoded)) } else { Ok(()) }
    }

    /// Takes a decoded part of so many bytes.
    pub(super) fn decode(&mut self, bytes: usize) -> Result<(), BoundReached> {
        self.decoded = self.decoded.checked_sub(bytes).ok_or(BoundReached::Decoded(self.decoded))?;
        Ok(())
    }

    pub(super) fn run(&mut self) -> Result<(), BoundReached> {
        self.runs = self.runs.checked_sub(1).ok_or(BoundReached::Runs)?;
        Ok(())
    }

    pub(super) fn find(&mut self) -> Result<(), BoundReached> {
        self.findings = self.findings.checked_sub(1).ok_or(BoundReached::Findings)?;
        Ok(())
    }
}
