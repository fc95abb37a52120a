//! Ends a streaming body in which a secret is found, before the secret's last byte has gone on.
//!
//! The body goes on as it was received: a coded one is decoded to be looked at, and its bytes are held until all that they
//! decode to may go on.

mod filenames;
mod socket;

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use http::HeaderMap;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};

use filenames::FileNames;
pub use socket::{InForce, Ruling, SocketDetector};

use super::{Refused, Rewrite};
use crate::call::Denial;
use crate::dlp::{BoundReached, Search, StreamMatch, StreamScanner};
use crate::wire::coding::{self, Decoder, Detector, Wrote};

/// How many bytes may come out of each one of a coded body, beyond what any body may decode to.
const DECODED_PER_BYTE: u64 = 100;
/// The end of a coded body that is always held: of a block of zstd (RFC 8878, section 3.1.1.2) nothing is decoded before all
/// of it is there, but whoever has most of it can read that.
const UNDECODED: u64 = (128 << 10) + 32;
/// A body of so many bytes may hold a part of a secret that is divided over requests.
const SMALL: usize = 1 << 10;
/// How much of a coded body is held for a token that may not have ended: much may be coded that decodes to nothing.
const MOST_HELD: u64 = 1 << 20;

/// What the detectors of a policy do to a streaming body.
#[derive(Debug, Clone)]
pub struct Terms {
    pub search: Search,
    pub settle: Arc<dyn Settle>,
    pub limits: coding::Limits,
}

/// A part of a request that is searched as it comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamedPart {
    /// The body, or what is sent over a WebSocket.
    Body,
    /// The fields behind it.
    Trailers,
}

impl StreamedPart {
    /// The word in events.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Body => "body",
            Self::Trailers => "trailers",
        }
    }
}

/// Says what becomes of what is found in a body.
pub trait Settle: fmt::Debug + Send + Sync {
    /// Takes a finding. Returns the denial that ends the body for it.
    fn settle(&self, part: StreamedPart, found: &StreamMatch) -> Option<Denial>;

    /// Takes the name of a file that is a part of the body. Returns the denial that ends the body for it.
    fn named(&self, file: &str) -> Option<Denial>;

    /// Takes all of a small body. Returns the denial that ends it.
    fn small(&self, body: &[u8]) -> Option<Denial>;
}

/// The search of one body.
pub struct BodyDetector {
    terms: Terms,
    scanner: StreamScanner,
    /// Searches a coded body as it is: whoever reads it need not believe its head.
    raw: StreamScanner,
    /// Finds the content coding in the first bytes, then is gone.
    detector: Option<Detector>,
    is_declared: bool,
    /// How many of the first bytes went on before their coding was known.
    gone: usize,
    decoder: Option<Decoder>,
    /// Whether bytes have gone through a decoder.
    is_coded: bool,
    /// What was received and has not gone on, each with where what it decodes to ends.
    held: VecDeque<(Bytes, u64)>,
    held_bytes: u64,
    /// The names of files in the parts of a form; none where the body is no form.
    names: Option<FileNames>,
    /// All of a body that is small so far.
    small: Option<Vec<u8>>,
    /// Whether it will be small: then all of it is looked at before any goes on.
    is_small: bool,
    /// Bytes that the scanner has got.
    seen: u64,
    received: u64,
}

impl BodyDetector {
    /// The search of a body with this head. A content coding that nobody knows is not undone.
    pub fn new(head: &HeaderMap, terms: Terms) -> Self {
        // The bound grows with what is received.
        let limits = coding::Limits { decoded_bytes: u64::MAX, ..terms.limits };
        let declared = Decoder::for_headers(head, limits).ok().flatten();
        Self {
            scanner: StreamScanner::new(terms.search.clone()),
            raw: StreamScanner::new(terms.search.clone()),
            terms,
            is_declared: declared.is_some(),
            gone: 0,
            detector: Some(Detector::new(declared, limits)),
            decoder: None,
            is_coded: false,
            held: VecDeque::new(),
            held_bytes: 0,
            names: is_form(head).then(FileNames::default),
            small: Some(Vec::new()),
            is_small: length(head).is_some_and(|length| length <= SMALL),
            seen: 0,
            received: 0,
        }
    }

    fn look(&mut self, piece: &[u8]) -> Result<(), Refused> {
        if self.is_coded {
            self.scan_raw(piece)?;
        } else {
            return self.scan(piece);
        }
        let mut rest = piece;
        while let Some(decoder) = &mut self.decoder {
            let mut plain = Vec::new();
            let wrote = decoder.write(&mut rest, &mut plain);
            self.scan(&plain)?;
            self.check_ratio()?;
            match wrote {
                Ok(Wrote::All) => break,
                Ok(Wrote::Full) => {}
                // It is not what it said, or has ended. What follows is looked at as it is.
                Err(_) => {
                    self.decoder = None;
                    return self.flush_scanner();
                }
            }
        }
        if self.held_bytes > MOST_HELD { self.flush_scanner() } else { Ok(()) }
    }

    fn check_ratio(&self) -> Result<(), Refused> {
        let most =
            self.received.saturating_mul(DECODED_PER_BYTE).saturating_add(self.terms.limits.decoded_bytes);
        if self.seen <= most {
            return Ok(());
        }
        let reason = format!("the body decodes to more than {most} bytes (limits.decodedBodyBytes)");
        Err(Refused::Denied(Denial::builtin("bound", reason)))
    }

    fn scan(&mut self, plain: &[u8]) -> Result<(), Refused> {
        self.seen += plain.len() as u64;
        if let Some(small) = self.small.take_if(|small| small.len() + plain.len() <= SMALL) {
            self.small = Some([&small, plain].concat());
        } else {
            self.small = None;
        }
        let named = self.names.as_mut().map(|names| names.take(plain)).unwrap_or_default();
        if let Some(denial) = named.iter().find_map(|name| self.terms.settle.named(name)) {
            return Err(Refused::Denied(denial));
        }
        let scanned = self.scanner.write(plain);
        let found = self.scanner.take_findings();
        self.judge(StreamedPart::Body, (&found, scanned))
    }

    fn scan_raw(&mut self, piece: &[u8]) -> Result<(), Refused> {
        let scanned = self.raw.write(piece);
        let found = self.raw.take_findings();
        self.judge(StreamedPart::Body, (&found, scanned))
    }

    fn flush_scanner(&mut self) -> Result<(), Refused> {
        let flushed = self.scanner.flush();
        let found = self.scanner.take_findings();
        self.judge(StreamedPart::Body, (&found, flushed))
    }

    /// Has policy decide about what was found, and ends the body for it.
    fn judge(
        &self,
        part: StreamedPart,
        (found, scanned): (&[StreamMatch], Result<(), BoundReached>),
    ) -> Result<(), Refused> {
        let settle = &self.terms.settle;
        let denials: Vec<Denial> = found.iter().filter_map(|found| settle.settle(part, found)).collect();
        match denials.into_iter().next().or_else(|| scanned.err().map(bound_denial)) {
            Some(denial) => Err(Refused::Denied(denial)),
            None => Ok(()),
        }
    }

    /// Looks at the first bytes, of which the coding is known now.
    fn begin(&mut self, decoder: Option<Decoder>, mut first: Bytes) -> Result<(), Refused> {
        self.detector = None;
        self.is_coded = decoder.is_some();
        self.decoder = decoder;
        self.look(&first)?;
        drop(first.split_to(self.gone));
        self.held.clear();
        self.held.push_back((first, self.seen));
        Ok(())
    }

    /// Looks at all of a small body that has ended.
    fn end_small(&mut self) -> Result<(), Refused> {
        self.is_small = false;
        let small = self.small.take().filter(|small| !small.is_empty());
        match small.and_then(|small| self.terms.settle.small(&small)) {
            Some(denial) => Err(Refused::Denied(denial)),
            None => Ok(()),
        }
    }

    /// Judges and lets go all that is held.
    fn flush(&mut self, out: &mut Vec<Bytes>) -> Result<(), Refused> {
        self.flush_scanner()?;
        let flushed = self.raw.flush();
        let found = self.raw.take_findings();
        self.judge(StreamedPart::Body, (&found, flushed))?;
        self.release(true, out);
        Ok(())
    }

    /// Lets go what may go on.
    fn release(&mut self, is_silent: bool, out: &mut Vec<Bytes>) {
        if self.is_small && !is_silent {
            return;
        }
        let released = self.scanner.released();
        let tail = if self.is_coded && !is_silent { UNDECODED } else { 0 };
        while let Some((bytes, end)) = self.held.front_mut() {
            let length = bytes.len() as u64;
            if *end <= released && self.held_bytes >= tail + length {
                self.held_bytes -= length;
                out.extend(self.held.pop_front().map(|(bytes, _)| bytes));
                continue;
            }
            // What is not coded decodes to itself, so that a part of it may go on.
            let begin = end.saturating_sub(length);
            if !self.is_coded && begin < released {
                let part = usize::try_from(released - begin).unwrap_or(bytes.len());
                out.push(bytes.split_to(part));
                self.held_bytes -= part as u64;
            }
            break;
        }
    }
}

/// The denial of what costs too much to search.
fn bound_denial(bound: BoundReached) -> Denial {
    Denial::builtin("bound", format!("the body cannot be searched: {bound}"))
}

/// The length that a head says.
fn length(head: &HeaderMap) -> Option<usize> {
    head.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// Whether a body is a form of parts.
fn is_form(head: &HeaderMap) -> bool {
    let kind = head.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    kind.trim_start().get(..10).is_some_and(|kind| kind.eq_ignore_ascii_case("multipart/"))
}

impl Rewrite for BodyDetector {
    fn write(&mut self, chunk: Bytes, out: &mut Vec<Bytes>) -> Result<(), Refused> {
        self.received += chunk.len() as u64;
        self.held_bytes += chunk.len() as u64;
        if let Some(detector) = &mut self.detector {
            let Some((decoder, first)) = detector.take(chunk.clone()) else {
                self.held.push_back((chunk, u64::MAX));
                return Ok(());
            };
            self.begin(decoder, first)?;
        } else {
            self.look(&chunk)?;
            self.held.push_back((chunk, self.seen));
        }
        self.release(false, out);
        Ok(())
    }

    fn finish(&mut self, out: &mut Vec<Bytes>) -> Result<(), Refused> {
        if let Some(mut detector) = self.detector.take() {
            let (decoder, first) = detector.end();
            self.begin(decoder, first)?;
        }
        self.end_small()?;
        self.flush(out)
    }

    fn trailers(&mut self, trailers: &HeaderMap) -> Result<(), Refused> {
        let mut scanner = StreamScanner::new(self.terms.search.clone());
        let fields = trailers
            .iter()
            .flat_map(|(name, value)| [name.as_str().as_bytes(), b": ", value.as_bytes(), b"\n"]);
        let scanned = fields.into_iter().try_for_each(|piece| scanner.write(piece));
        let scanned = scanned.and_then(|()| scanner.flush());
        self.judge(StreamedPart::Trailers, (&scanner.take_findings(), scanned))
    }

    fn keeps_length(&self) -> bool {
        true
    }

    fn is_holding(&self) -> bool {
        !self.held.is_empty()
    }

    fn let_go(&mut self, out: &mut Vec<Bytes>) -> Result<(), Refused> {
        if self.detector.is_some() && self.is_declared {
            return self.finish(out);
        }
        if self.detector.is_some() {
            // Fewer bytes than a signature has: they may be those of a coding all the same.
            self.gone += self.held.iter().map(|(bytes, _)| bytes.len()).sum::<usize>();
            self.held_bytes = 0;
            out.extend(self.held.drain(..).map(|(bytes, _)| bytes));
            return Ok(());
        }
        self.flush(out)
    }
}

#[cfg(test)]
mod tests;
