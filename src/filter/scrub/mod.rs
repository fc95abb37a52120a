//! Masks real keys in what comes back: in whole answers and streams, heads and trailers, in every usual encoding.

mod charset;
mod embedded;
mod opening;
mod packed;

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderValue, header};

pub use charset::is_ascii_compatible;

use super::{Refused, Rewrite};
use embedded::Embedded;
use opening::Opening;
use packed::Packed;

use crate::secret::{KeyMatch, SecretMatcher};

/// What stands where a key stood, byte for byte: the length of an answer, and with it `content-length`, chunk and
/// WebSocket framing, stays what it was.
const MASK: u8 = b'*';

/// Masks one body. It holds back only bytes that could be the beginning of a key.
pub struct Scrubber {
    matcher: Arc<SecretMatcher>,
    /// The tail that could begin a key, as it came.
    held: Bytes,
    /// How many bytes at the front of `held` are known to belong to a key.
    covered: usize,
    scrubbed: bool,
    /// Whether the first bytes have still to be looked at.
    is_unopened: bool,
    packed: Option<Box<Packed>>,
    /// What looks into gzip inside of the text, which is given what was `passed`.
    embedded: Option<Embedded>,
    passed: Vec<Bytes>,
}

impl Scrubber {
    /// Masks what is looked at from its first byte as it is: a message, or bytes of a WebSocket.
    pub fn new(matcher: Arc<SecretMatcher>) -> Self {
        let embedded = Some(Embedded::new(Arc::clone(&matcher)));
        Self { embedded, ..Self::flat(matcher) }
    }

    /// Masks without a look into anything that is packed.
    fn flat(matcher: Arc<SecretMatcher>) -> Self {
        Self {
            matcher,
            held: Bytes::new(),
            covered: 0,
            scrubbed: false,
            is_unopened: false,
            packed: None,
            embedded: None,
            passed: Vec::new(),
        }
    }

    /// Masks the body of an answer, and refuses one that begins as UTF-16 or UTF-32, or as gzip with a key in it.
    pub fn of_body(matcher: Arc<SecretMatcher>) -> Self {
        Self { is_unopened: true, ..Self::new(matcher) }
    }

    /// Whether a key was found so far.
    pub fn scrubbed(&self) -> bool {
        self.scrubbed
    }

    /// Whether bytes are held back that could begin a key.
    fn holds(&self) -> bool {
        !self.held.is_empty()
    }

    /// Looks at the first bytes of a body. Returns whether more have to come.
    fn open(&mut self, bytes: &[u8], is_whole: bool) -> Result<bool, Refused> {
        match Opening::of(bytes, is_whole) {
            Opening::Short => return Ok(true),
            Opening::Wide => {
                return Err(Refused::Unreadable("the body is in a character set that hides keys"));
            }
            Opening::Gzip => self.packed = Packed::new(&self.matcher).map(Box::new),
            Opening::Plain => {}
        }
        self.is_unopened = false;
        Ok(false)
    }

    /// Masks, and lets go what is certain.
    fn go_on(&mut self, bytes: &Bytes, is_last: bool, out: &mut Vec<Bytes>) {
        let mut passed = std::mem::take(&mut self.passed);
        self.pass(bytes, is_last, &mut passed);
        match &mut self.embedded {
            Some(embedded) => passed.drain(..).for_each(|piece| embedded.write(piece, out)),
            None => out.append(&mut passed),
        }
        self.passed = passed;
    }

    /// Sends on what is certain: all bytes before the first place where a key could still begin.
    fn pass(&mut self, bytes: &Bytes, is_last: bool, out: &mut Vec<Bytes>) {
        let mut sent = 0; // up to here, bytes are in `out`
        let mut masked = self.covered; // up to here, bytes from `sent` on belong to a key
        let mut open = bytes.len();
        for found in self.matcher.find(bytes, is_last) {
            match found {
                KeyMatch::Whole { start, end } => {
                    self.scrubbed = true;
                    if start > masked {
                        push_masked(masked - sent, out);
                        push(bytes.slice(masked..start), out);
                        sent = start;
                    }
                    masked = masked.max(end);
                }
                KeyMatch::Begun { start } => {
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
        if self.matcher.is_empty() {
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
        if self.is_unopened && self.open(&bytes, false)? {
            self.held = bytes;
            return Ok(());
        }
        if let Some(packed) = &mut self.packed {
            self.held = Bytes::new();
            return packed.write(bytes, out);
        }
        self.go_on(&bytes, false, out);
        Ok(())
    }

    fn finish(&mut self, out: &mut Vec<Bytes>) -> Result<(), Refused> {
        let held = std::mem::take(&mut self.held);
        if self.is_unopened {
            self.open(&held, true)?;
        }
        if let Some(packed) = &mut self.packed {
            return packed.finish(out);
        }
        self.go_on(&held, true, out);
        if let Some(embedded) = &mut self.embedded {
            embedded.finish(out);
        }
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

impl SecretMatcher {
    /// Masks keys in a head's or in trailers' values, and drops a header whose name holds one; says whether there
    /// was any.
    pub fn scrub_head(&self, headers: &mut HeaderMap) -> bool {
        if self.is_empty() {
            return false;
        }
        let named: Vec<_> =
            headers.keys().filter(|name| self.masked(name.as_str().as_bytes()).is_some()).cloned().collect();
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
        for found in self.find(bytes, true) {
            if let KeyMatch::Whole { start, end } = found {
                masked.get_or_insert_with(|| bytes.to_vec())[start..end].fill(MASK);
            }
        }
        masked
    }
}

/// Asks the upstream for an answer that can be scrubbed: uncoded, in the host's own character set, and whole, since a
/// range could end within a key.
/// For every request to a host that a credential serves. A server may always answer a range with the whole
/// (RFC 9110 section 14.2).
pub fn ask_for_plain(headers: &mut HeaderMap) {
    headers.insert(header::ACCEPT_ENCODING, const { HeaderValue::from_static("identity") });
    for name in [header::RANGE, header::IF_RANGE, header::SEC_WEBSOCKET_EXTENSIONS] {
        headers.remove(name);
    }
    charset::ask_for_none(headers);
    headers.remove("a-im"); // a delta (RFC 3229) could hold part of a key
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
