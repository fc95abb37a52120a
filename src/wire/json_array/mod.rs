//! Splits a streamed JSON array of objects (RFC 8259) into its elements, as soon as each is complete.
//!
//! The framing is strict about the bytes between elements, and finds the end of each only by its brackets and strings:
//! the reader parses each element, and an element that parses has no other end.

mod error;
mod scan;
#[cfg(test)]
mod tests;

use bytes::Bytes;

use super::inflow::Inflow;
pub use error::JsonArrayError;
use scan::{ArrayScan, ScanStep};

/// A part of a streamed array. All parts' bytes, one after the other, are the body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item {
    /// An object, and the bytes before it: `[` or `,`, with white space.
    Element { before: Bytes, json: Bytes },
    /// `]` and the white space before it.
    Close(Bytes),
    /// White space after the array.
    Space(Bytes),
}

/// Reads one body. Pieces go in by [`Decoder::push`], parts come out by [`Decoder::next_item`] until there is none;
/// how the body was cut into pieces never matters. It holds the unfinished element, and nothing else.
#[derive(Debug)]
pub struct Decoder {
    element_bytes: usize,
    inflow: Inflow,
    scan: ArrayScan,
    ended: bool,
    failed: Option<JsonArrayError>,
}

impl Decoder {
    /// A decoder for one body; `element_bytes` is the most that an element may have, with the bytes before it.
    pub fn new(element_bytes: usize) -> Self {
        Self {
            element_bytes,
            inflow: Inflow::default(),
            scan: ArrayScan::default(),
            ended: false,
            failed: None,
        }
    }

    /// Takes the next piece of the body.
    pub fn push(&mut self, piece: Bytes) {
        self.inflow.push(piece);
    }

    /// The body has ended.
    pub fn end(&mut self) {
        self.ended = true;
    }

    /// The next part that is complete; `None` needs more bytes, or there are no more.
    ///
    /// Fails where the body is no array of objects, or a part is longer than the bound, from then on always.
    pub fn next_item(&mut self) -> Result<Option<Item>, JsonArrayError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        self.read().inspect_err(|error| self.failed = Some(*error))
    }

    /// The bytes that were pushed and have not come out, to pass on a body that cannot be read.
    pub fn into_rest(mut self) -> Bytes {
        self.inflow.take_all()
    }

    fn read(&mut self) -> Result<Option<Item>, JsonArrayError> {
        let held = self.inflow.held().len();
        let mut scan = self.scan;
        // Bytes beyond the bound are not read, so that the result does not depend on how the body is cut.
        let room = self.element_bytes.saturating_sub(held).min(self.inflow.fresh().len());
        let found = scan.step(self.inflow.fresh().get(..room).unwrap_or_default())?;
        let is_over = room < self.inflow.fresh().len();
        match found {
            ScanStep::Nothing if is_over => Err(JsonArrayError::TooLong(self.element_bytes)),
            ScanStep::Nothing if self.ended => self.last(),
            ScanStep::Nothing => {
                self.scan = scan;
                self.inflow.hold();
                Ok(None)
            }
            ScanStep::Element(end) => {
                let mut json = self.inflow.take(end);
                let before = json.split_to(scan.before().min(json.len()));
                self.scan = scan.next();
                Ok(Some(Item::Element { before, json }))
            }
            ScanStep::Close(end) => {
                self.scan = scan.next();
                Ok(Some(Item::Close(self.inflow.take(end))))
            }
        }
    }

    fn last(&mut self) -> Result<Option<Item>, JsonArrayError> {
        if !self.scan.is_closed() {
            return Err(JsonArrayError::Truncated);
        }
        let space = self.inflow.take_all();
        Ok((!space.is_empty()).then_some(Item::Space(space)))
    }
}
