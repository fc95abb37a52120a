//! Masks real keys in what comes back: in whole answers and streams, heads and trailers, in every usual encoding.

mod forms;
mod needles;

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderValue, header};

pub use needles::Needles;

use super::{Refused, Rewrite};
use needles::Found;

/// What stands where a key stood, byte for byte: the length of an answer, and with it `content-length`, chunk and
/// WebSocket framing, stays what it was.
const MASK: u8 = b'*';

/// Masks one body. It holds back only bytes that could be the beginning of a key.
pub struct Scrubber {
    needles: Arc<Needles>,
    /// The tail that could begin a key, as it came.
    held: Bytes,
    /// How many bytes at the front of `held` are known to belong to a key.
    covered: usize,
    scrubbed: bool,
}

impl Scrubber {
    pub fn new(needles: Arc<Needles>) -> Self {
        Self { needles, held: Bytes::new(), covered: 0, scrubbed: false }
    }

    /// Whether a key was found so far.
    pub fn scrubbed(&self) -> bool {
        self.scrubbed
    }

    /// Sends on what is certain: all bytes before the first place where a key could still begin.
    fn pass(&mut self, bytes: &Bytes, is_last: bool, out: &mut Vec<Bytes>) {
        let mut sent = 0; // up to here, bytes are in `out`
        let mut masked = self.covered; // up to here, bytes from `sent` on belong to a key
        let mut open = bytes.len();
        for found in self.needles.find(bytes) {
            match found {
                Found::Whole { start, end } => {
                    self.scrubbed = true;
                    if start > masked {
                        push_masked(masked - sent, out);
                        push(bytes.slice(masked..start), out);
                        sent = start;
                    }
                    masked = masked.max(end);
                }
                Found::Begun { start } => {
                    if !is_last {
                        open = start;
                        break;
                    }
                }
            }
        }
        let certain = masked.min(open);
        push_masked(certain.saturating_sub(sent), out);
        push(bytes.slice(certain..open), out);
        self.held = bytes.slice(open..);
        self.covered = masked.saturating_sub(open);
    }
}

impl Rewrite for Scrubber {
    fn write(&mut self, chunk: Bytes, out: &mut Vec<Bytes>) -> Result<(), Refused> {
        if self.needles.is_empty() {
            push(chunk, out);
            return Ok(());
        }
        let bytes = if self.held.is_empty() {
            chunk
        } else {
            let mut joined = BytesMut::with_capacity(self.held.len() + chunk.len());
            joined.extend_from_slice(&self.held);
            joined.extend_from_slice(&chunk);
            joined.freeze()
        };
        self.pass(&bytes, false, out);
        Ok(())
    }

    fn finish(&mut self, out: &mut Vec<Bytes>) -> Result<(), Refused> {
        let held = std::mem::take(&mut self.held);
        self.pass(&held, true, out);
        Ok(())
    }
}

fn push(bytes: Bytes, out: &mut Vec<Bytes>) {
    if !bytes.is_empty() {
        out.push(bytes);
    }
}

fn push_masked(count: usize, out: &mut Vec<Bytes>) {
    push(Bytes::from(vec![MASK; count]), out);
}

impl Needles {
    /// Masks keys in a head's or in trailers' values, and drops a header whose name holds one; says whether there
    /// was any.
    pub fn scrub_head(&self, headers: &mut HeaderMap) -> bool {
        if self.is_empty() {
            return false;
        }
        let named: Vec<_> = headers.keys().filter(|name| self.is_named_by(name.as_str())).cloned().collect();
        let mut scrubbed = !named.is_empty();
        for name in named {
            headers.remove(name);
        }
        for value in headers.values_mut() {
            if let Some(masked) = self.masked(value.as_bytes()) {
                *value = HeaderValue::from_bytes(&masked).unwrap_or(const { HeaderValue::from_static("") });
                scrubbed = true;
            }
        }
        scrubbed
    }

    /// The same bytes with every key masked; `None` where there is none.
    pub fn masked(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        if !self.fits(bytes.len()) {
            return None;
        }
        let mut masked: Option<Vec<u8>> = None;
        for found in self.find(bytes) {
            if let Found::Whole { start, end } = found {
                masked.get_or_insert_with(|| bytes.to_vec())[start..end].fill(MASK);
            }
        }
        masked
    }
}

/// Asks the upstream for an answer that can be scrubbed: uncoded, and whole, since a range could end within a key.
/// For every request to a host that a credential serves. A server may always answer a range with the whole
/// (RFC 9110 section 14.2).
pub fn ask_for_plain(headers: &mut HeaderMap) {
    headers.insert(header::ACCEPT_ENCODING, const { HeaderValue::from_static("identity") });
    for name in [header::RANGE, header::IF_RANGE, header::SEC_WEBSOCKET_EXTENSIONS] {
        headers.remove(name);
    }
    headers.remove("a-im"); // a delta (RFC 3229) could hold part of a key
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
