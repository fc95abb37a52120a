//! Splits bytes that come in any pieces into frames.

use bytes::Bytes;

use super::{CHECKSUM, EventStreamError, FRAME_BYTES, Frame, PRELUDE, headers};
use crate::wire::inflow::Inflow;

/// Reads one stream. Pieces go in by [`Decoder::push`], frames come out by [`Decoder::next_frame`] until there is
/// none; how the stream was cut into pieces never matters. It holds the unfinished frame, as it arrives.
#[derive(Debug, Default)]
pub struct Decoder {
    inflow: Inflow,
    ended: bool,
    failed: Option<EventStreamError>,
    /// The frame that failed, where its lengths are known.
    broken: Option<Frame>,
}

impl Decoder {
    /// Takes the next piece of the body.
    pub fn push(&mut self, piece: Bytes) {
        self.inflow.push(piece);
    }

    /// The body has ended.
    pub fn end(&mut self) {
        self.ended = true;
    }

    /// The next frame that is complete; `None` needs more bytes, or there are no more.
    ///
    /// Fails where the bytes are no frame, from then on always.
    pub fn next_frame(&mut self) -> Result<Option<Frame>, EventStreamError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        self.read().inspect_err(|error| self.failed = Some(*error))
    }

    /// The frame that failed, without headers, where it is known where the next one begins: that is read from then on.
    pub fn take_broken(&mut self) -> Option<Frame> {
        let frame = self.broken.take()?;
        self.failed = None;
        Some(frame)
    }

    /// The bytes that were pushed and have not come out.
    pub fn into_rest(mut self) -> Bytes {
        let rest = self.inflow.take_all();
        match self.broken {
            Some(frame) => [frame.raw, rest].concat().into(),
            None => rest,
        }
    }

    fn read(&mut self) -> Result<Option<Frame>, EventStreamError> {
        let lengths = Lengths::read(&self.inflow)?;
        let Some(lengths) = lengths.filter(|lengths| self.inflow.len() >= lengths.total) else {
            if self.ended && self.inflow.len() > 0 {
                return Err(EventStreamError::Truncated);
            }
            self.inflow.hold();
            return Ok(None);
        };
        let end = lengths.total - self.inflow.held().len();
        let raw = self.inflow.take(end);
        match frame(&raw, &lengths) {
            Ok(frame) => Ok(Some(frame)),
            Err(error) => {
                let payload = raw.slice(PRELUDE + lengths.headers..lengths.total - CHECKSUM);
                self.broken = Some(Frame { headers: Vec::new(), payload, raw });
                Err(error)
            }
        }
    }
}

/// The lengths of a prelude with a correct checksum.
#[derive(Debug, Clone, Copy)]
struct Lengths {
    total: usize,
    headers: usize,
}

impl Lengths {
    /// `None` while the prelude is incomplete; its first four bytes are judged as soon as they have arrived.
    fn read(inflow: &Inflow) -> Result<Option<Self>, EventStreamError> {
        let Some(total) = inflow.first().map(length) else { return Ok(None) };
        // Judged before the rest of the frame is awaited, so that a large length cannot make it be buffered.
        if total > FRAME_BYTES {
            return Err(EventStreamError::TooLong);
        }
        if total < PRELUDE + CHECKSUM {
            return Err(EventStreamError::Length);
        }
        let Some(prelude) = inflow.first::<PRELUDE>() else { return Ok(None) };
        checked(&prelude)?;
        let [_, _, _, _, headers @ .., _, _, _, _] = prelude;
        let headers = length(headers);
        if headers > total - PRELUDE - CHECKSUM {
            return Err(EventStreamError::Length);
        }
        Ok(Some(Self { total, headers }))
    }
}

fn length(bytes: [u8; 4]) -> usize {
    usize::try_from(u32::from_be_bytes(bytes)).unwrap_or(usize::MAX)
}

/// The bytes before a checksum, if that is correct.
fn checked(bytes: &[u8]) -> Result<&[u8], EventStreamError> {
    let (covered, checksum) = bytes.split_last_chunk().ok_or(EventStreamError::Length)?;
    if crc32fast::hash(covered) != u32::from_be_bytes(*checksum) {
        return Err(EventStreamError::Checksum);
    }
    Ok(covered)
}

fn frame(raw: &Bytes, lengths: &Lengths) -> Result<Frame, EventStreamError> {
    let covered = checked(raw)?.len();
    let payload = PRELUDE + lengths.headers;
    let headers = headers::read(&raw.slice(PRELUDE..payload))?;
    Ok(Frame { headers, payload: raw.slice(payload..covered), raw: raw.clone() })
}
