//! Strict framing of HTTP/1 in front of the parser: what two parsers could read differently goes no further.

mod chunked;
#[cfg(test)]
mod corpus;
mod fields;
mod first_request;
mod head;
mod response;
mod violation;

pub use fields::{fit_for_trailers, nominates_hop_by_hop};
pub use first_request::{RequestHead, first_request};
pub use response::check_response;
pub use violation::{Bound, Violation};

use chunked::Chunked;
use fields::{Search, Section};
use head::Body;

/// How much of a head (or of a trailer section) is held until it is judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of one head, its empty line included.
    pub header_bytes: usize,
    /// Field lines of one head.
    pub header_count: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { header_bytes: 64 * 1024, header_count: 128 }
    }
}

/// What a push let through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// So many bytes at the front may be given on. 0 needs more bytes.
    pub pass: usize,
}

/// Where on the connection the agent stands, for the deadlines of whoever reads from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Between requests; nothing of the next one is there.
    Idle,
    /// Inside a head.
    Head,
    /// Inside a body, or before the rest of one.
    Body,
    /// After an upgrade: the bytes are not HTTP.
    Opaque,
}

/// A state machine over the bytes that an agent sends on one HTTP/1 connection.
#[derive(Debug)]
pub struct Framer {
    limits: Limits,
    stage: Stage,
    search: Search,
    begun: bool,
}

#[derive(Debug)]
enum Stage {
    Head,
    Length(u64),
    Chunked(Chunked),
    Opaque,
}

impl Framer {
    pub fn new(limits: Limits) -> Self {
        Self { limits, stage: Stage::Head, search: Search::default(), begun: false }
    }

    /// Judges the bytes that were not passed yet, old and new, and answers how many at the front may pass: whole
    /// heads only, body bytes as they come. What did not pass is pushed again with what follows it; bytes that
    /// passed are not.
    ///
    /// After a violation nothing more may pass. Bytes in front of it pass first: it is answered by the next push,
    /// so the caller pushes what remains until nothing passes.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Progress, Violation> {
        let mut rest = bytes;
        let verdict = loop {
            if rest.is_empty() {
                break Ok(());
            }
            match self.step(rest) {
                Ok(0) => break Ok(()),
                Ok(pass) => rest = rest.get(pass..).unwrap_or_default(),
                Err(violation) => break Err(violation),
            }
        };
        // A lone line end belongs to the request before it: some clients send one after a body.
        self.begun = !b"\r\n".starts_with(rest);
        match (verdict, bytes.len() - rest.len()) {
            (Err(violation), 0) => Err(violation),
            (Err(_) | Ok(()), pass) => Ok(Progress { pass }),
        }
    }

    pub fn state(&self) -> State {
        match &self.stage {
            Stage::Head if self.begun => State::Head,
            Stage::Head => State::Idle,
            Stage::Length(_) | Stage::Chunked(_) => State::Body,
            Stage::Opaque => State::Opaque,
        }
    }

    /// The connection was upgraded: from now on its bytes are not HTTP, and all pass.
    pub fn upgraded(&mut self) {
        self.stage = Stage::Opaque;
    }

    /// Passes what is next: a head, a body's bytes, a line of the chunked coding. Fails without a change.
    fn step(&mut self, bytes: &[u8]) -> Result<usize, Violation> {
        let (pass, done) = match &mut self.stage {
            Stage::Opaque => (bytes.len(), false),
            Stage::Head => return self.head(bytes),
            Stage::Length(left) => {
                let pass = usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len());
                *left -= pass as u64;
                (pass, *left == 0)
            }
            Stage::Chunked(chunked) => {
                let pass = chunked.step(bytes, &mut self.search, &self.limits)?;
                (pass, matches!(chunked, Chunked::Done))
            }
        };
        if done {
            self.stage = Stage::Head;
            self.search.restart();
        }
        Ok(pass)
    }

    fn head(&mut self, bytes: &[u8]) -> Result<usize, Violation> {
        let Some(length) = self.search.end(bytes, &self.limits, Section::Head)? else {
            return Ok(0);
        };
        let head = head::judge(bytes.get(..length).unwrap_or(bytes), &self.search, &self.limits)?;
        self.search.restart();
        self.stage = match head.body {
            Body::Length(0) => Stage::Head,
            Body::Length(left) => Stage::Length(left),
            Body::Chunked => Stage::Chunked(Chunked::Size),
        };
        Ok(length)
    }
}
