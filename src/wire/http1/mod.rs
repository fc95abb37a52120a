//! Strict framing of HTTP/1 in front of the parser: a message that two parsers could read differently is refused.

mod chunked;
#[cfg(test)]
mod corpus;
mod fields;
mod first_request;
mod head;
mod limits;
mod response;
mod violation;

pub use fields::{fit_for_trailers, nominates_hop_by_hop};
pub use first_request::{RequestHead, first_request};
pub use limits::Limits;
pub use response::check_response;
pub use violation::{Bound, Violation};

use chunked::Chunked;
use fields::{FieldSection, SectionSearch};
use head::BodyFraming;

/// The bytes that a push lets pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// The number of bytes at the front that may be passed on. 0 needs more bytes.
    pub pass: usize,
}

/// The position in the agent's messages, for the deadlines of the connection's reader.
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
    stage: FramerStage,
    search: SectionSearch,
    begun: bool,
}

#[derive(Debug)]
enum FramerStage {
    Head,
    Length(u64),
    Chunked(Chunked),
    Opaque,
}

impl Framer {
    pub fn new(limits: Limits) -> Self {
        Self { limits, stage: FramerStage::Head, search: SectionSearch::default(), begun: false }
    }

    /// Judges the bytes that have not passed yet, old and new, and returns how many at the front may pass: whole heads
    /// only, body bytes as they come. Bytes that did not pass are pushed again with the following ones; bytes that
    /// passed are not.
    ///
    /// After a violation nothing more may pass. Bytes before it pass first, and the next push returns it: so the caller
    /// pushes the rest until nothing passes.
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
            FramerStage::Head if self.begun => State::Head,
            FramerStage::Head => State::Idle,
            FramerStage::Length(_) | FramerStage::Chunked(_) => State::Body,
            FramerStage::Opaque => State::Opaque,
        }
    }

    /// The connection was upgraded: from now on its bytes are not HTTP, and all pass.
    pub fn upgraded(&mut self) {
        self.stage = FramerStage::Opaque;
    }

    /// Passes the next unit: a head, bytes of a body, a line of the chunked coding. A failure changes nothing.
    fn step(&mut self, bytes: &[u8]) -> Result<usize, Violation> {
        let (pass, done) = match &mut self.stage {
            FramerStage::Opaque => (bytes.len(), false),
            FramerStage::Head => return self.head(bytes),
            FramerStage::Length(left) => {
                let pass = usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len());
                *left -= pass as u64;
                (pass, *left == 0)
            }
            FramerStage::Chunked(chunked) => {
                let pass = chunked.step(bytes, &mut self.search, &self.limits)?;
                (pass, matches!(chunked, Chunked::Done))
            }
        };
        if done {
            self.stage = FramerStage::Head;
            self.search.restart();
        }
        Ok(pass)
    }

    fn head(&mut self, bytes: &[u8]) -> Result<usize, Violation> {
        let Some(length) = self.search.end(bytes, &self.limits, FieldSection::Head)? else {
            return Ok(0);
        };
        let head = head::judge(bytes.get(..length).unwrap_or(bytes), &self.search, &self.limits)?;
        self.search.restart();
        self.stage = match head.body {
            BodyFraming::Length(0) => FramerStage::Head,
            BodyFraming::Length(left) => FramerStage::Length(left),
            BodyFraming::Chunked => FramerStage::Chunked(Chunked::Size),
        };
        Ok(length)
    }
}
