//! Splits a stream that comes in any pieces into its events, and reads each.

use bytes::Bytes;
use memchr::memchr2;

use super::lines::{self, StreamState};
use super::{Form, Item, LineEnd, TooLong};
use crate::wire::inflow::Inflow;

/// Reads one stream. Pieces go in by [`Decoder::push`], parts come out by [`Decoder::next_item`] until there is
/// none; how the stream was cut into pieces never matters. It holds the unfinished event, and nothing else.
#[derive(Debug)]
pub struct Decoder {
    event_bytes: usize,
    inflow: Inflow,
    line: LinePosition,
    stream: StreamState,
    ended: bool,
    too_long: bool,
}

/// The position in the current line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LinePosition {
    /// Before the line's first byte.
    Start,
    Inside,
    /// After a CR that ends the line, alone or with an LF that may follow; `blank` if the line is empty.
    Cr {
        blank: bool,
    },
}

impl Decoder {
    /// A decoder for one body; `event_bytes` is the most that one part of it may have, its blank line included.
    pub fn new(form: Form, event_bytes: usize) -> Self {
        Self {
            event_bytes,
            inflow: Inflow::default(),
            line: LinePosition::Start,
            stream: StreamState::new(form),
            ended: false,
            too_long: false,
        }
    }

    /// Takes the next piece of the body.
    pub fn push(&mut self, piece: Bytes) {
        self.inflow.push(piece);
    }

    /// The body has ended: a last part without a blank line comes out as it is.
    pub fn end(&mut self) {
        self.ended = true;
    }

    /// The next part that is complete; `None` needs more bytes, or there are no more.
    ///
    /// Fails where a part is longer than the bound, from then on always.
    pub fn next_item(&mut self) -> Result<Option<Item>, TooLong> {
        if self.too_long {
            return Err(TooLong(self.event_bytes));
        }
        let held = self.inflow.held().len();
        let end = self.block_end();
        if end.map_or(self.inflow.len(), |end| held + end) > self.event_bytes {
            self.too_long = true;
            return Err(TooLong(self.event_bytes));
        }
        let terminated = end.is_some();
        let block = match end {
            Some(end) => self.inflow.take(end),
            None if self.ended => self.inflow.take_all(),
            None => {
                self.inflow.hold();
                return Ok(None);
            }
        };
        Ok((!block.is_empty()).then(|| lines::read(block, terminated, &mut self.stream)))
    }

    /// The bytes that were pushed since the last part came out; empty inside a part and after the stream's end.
    pub fn untouched(&self) -> &[u8] {
        let is_between = self.line == LinePosition::Start && self.inflow.held().is_empty();
        let goes_on = !self.too_long && !self.stream.is_over();
        if is_between && goes_on { self.inflow.fresh() } else { &[] }
    }

    /// Takes out this many [untouched](Self::untouched) bytes without reading them. The caller must know that they are
    /// whole events with the same lines as an earlier canonical one, and not too long.
    pub fn skip(&mut self, bytes: usize) -> Bytes {
        self.inflow.take(bytes)
    }

    /// The bytes that were pushed and have not come out, to pass on a stream that cannot be read.
    pub fn into_rest(mut self) -> Bytes {
        self.inflow.take_all()
    }

    /// The line end of the stream's first line, with which written events end too.
    pub fn line_end(&self) -> LineEnd {
        self.stream.line_end()
    }

    /// Looks for a blank line in the fresh bytes; returns the offset of its end.
    fn block_end(&mut self) -> Option<usize> {
        let bytes = self.inflow.fresh();
        let mut at = 0;
        // The last piece ended in a CR. An LF that begins this one belongs to the same line end.
        if let LinePosition::Cr { blank } = self.line {
            match bytes.first() {
                None if !self.ended => return None,
                Some(b'\n') => at = 1,
                None | Some(_) => {}
            }
            self.line = LinePosition::Start;
            if blank {
                return Some(at);
            }
        }
        while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
            let Some(length) = memchr2(b'\n', b'\r', rest) else {
                self.line = LinePosition::Inside;
                return None;
            };
            let blank = length == 0 && self.line == LinePosition::Start;
            at += length + 1;
            match (rest.get(length), rest.get(length + 1)) {
                (Some(b'\r'), None) if !self.ended => {
                    self.line = LinePosition::Cr { blank };
                    at = bytes.len();
                    continue;
                }
                (Some(b'\r'), Some(b'\n')) => at += 1,
                _ => {}
            }
            self.line = LinePosition::Start;
            if blank {
                return Some(at);
            }
        }
        None
    }
}
