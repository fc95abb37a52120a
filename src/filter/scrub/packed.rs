//! Gzip that no head speaks of, looked into as it flows: an archive, or a key that hides in one. A whole body goes on as
//! it came, behind what it decodes to.

use std::sync::Arc;

use bytes::Bytes;

use super::Scrubber;
use crate::filter::{Refused, Rewrite};
use crate::secret::SecretMatcher;
use crate::wire::coding::{Decoder, Limits, Wrote};

/// The most bytes that wait until what they decode to is known to hold no key.
pub(super) const WAITING: usize = 1 << 20;
/// What decodes to more than this, and to more than so many times its own size, is a bomb.
const LARGE: usize = 1 << 20;
const SWELLS: usize = 100;

/// The search for keys in what one gzip stream decodes to.
pub(super) struct Scan {
    decoder: Decoder,
    scrubber: Scrubber,
    taken: usize,
    decoded: usize,
}

/// What was found in a stream so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Contents {
    Clean,
    /// A key could have begun.
    Begun,
    /// A key, or more than anybody looks into.
    Key,
    /// It is no gzip from here on.
    Unreadable,
}

impl Scan {
    pub(super) fn new(matcher: &Arc<SecretMatcher>) -> Option<Self> {
        let limits = Limits { decoded_bytes: u64::MAX, ..Limits::default() };
        let decoder = Decoder::for_header("gzip", limits).ok().flatten()?;
        Some(Self { decoder, scrubber: Scrubber::flat(Arc::clone(matcher)), taken: 0, decoded: 0 })
    }

    /// Takes the next bytes of the stream.
    pub(super) fn read(&mut self, mut packed: &[u8]) -> Contents {
        let mut scanned = Vec::new();
        self.taken += packed.len();
        loop {
            let mut plain = Vec::new();
            let wrote = self.decoder.write(&mut packed, &mut plain);
            self.decoded += plain.len();
            if self.scrubber.write(plain.into(), &mut scanned).is_err() {
                return Contents::Unreadable;
            }
            scanned.clear();
            if self.scrubber.scrubbed() || (self.decoded > LARGE && self.decoded / SWELLS > self.taken) {
                return Contents::Key;
            }
            match wrote {
                Ok(Wrote::Full) => {}
                Ok(Wrote::All) if self.scrubber.holds() => return Contents::Begun,
                Ok(Wrote::All) => return Contents::Clean,
                Err(_) => return Contents::Unreadable,
            }
        }
    }
}

/// A body that is gzip by its first bytes.
pub(super) struct Packed {
    scan: Scan,
    waiting: Vec<Bytes>,
    waits: usize,
}

impl Packed {
    pub(super) fn new(matcher: &Arc<SecretMatcher>) -> Option<Self> {
        Some(Self { scan: Scan::new(matcher)?, waiting: Vec::new(), waits: 0 })
    }

    /// Takes bytes in, and lets go what is known to hold no key: neither whole nor begun.
    pub(super) fn write(&mut self, chunk: Bytes, out: &mut Vec<Bytes>) -> Result<(), Refused> {
        let contents = self.scan.read(&chunk);
        self.waits += chunk.len();
        self.waiting.push(chunk);
        match contents {
            Contents::Clean => {
                out.append(&mut self.waiting);
                self.waits = 0;
                Ok(())
            }
            Contents::Begun if self.waits <= WAITING => Ok(()),
            Contents::Begun | Contents::Key | Contents::Unreadable => Err(unreadable()),
        }
    }

    pub(super) fn finish(&mut self, out: &mut Vec<Bytes>) -> Result<(), Refused> {
        self.scan.decoder.finish().map_err(|_| unreadable())?;
        out.append(&mut self.waiting);
        Ok(())
    }
}

fn unreadable() -> Refused {
    Refused::Unreadable("the body is gzip that cannot be looked into, or that holds a key")
}
