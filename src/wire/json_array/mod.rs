//! Splits a JSON array of objects that streams (RFC 8259) into its elements, as each is complete.
//!
//! The framing is strict about what stands between elements, and finds the end of each by its brackets and strings
//! alone: whoever looks into an element parses it, and an element that parses has no other end.

mod scan;
#[cfg(test)]
mod tests;

use bytes::Bytes;

use super::inflow::Inflow;
use scan::{Found, Scan};

/// A part of a streamed array. All parts' bytes, one after the other, are the body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item {
    /// An object, and what stands in front of it: `[` or `,`, with white space.
    Element { before: Bytes, json: Bytes },
    /// `]` and the white space in front of it.
    Close(Bytes),
    /// White space behind the array.
    Space(Bytes),
}

/// Why bytes are not an array of objects. Where the next element would begin is then no longer known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum JsonArrayError {
    #[error("streamed answer is not a JSON array")]
    NotArray,
    #[error("streamed JSON array has an element that is not an object")]
    NotObject,
    #[error("streamed JSON array has something else than a comma between two elements")]
    Separator,
    #[error("streamed JSON array is followed by something else")]
    Trailing,
    #[error("streamed JSON array has an element longer than {0} bytes (limits.sseEventBytes)")]
    TooLong(usize),
    #[error("streamed JSON array ends before its closing bracket")]
    Truncated,
}

/// Reads one body. Pieces go in by [`Decoder::push`], parts come out by [`Decoder::next_item`] until there is none;
/// how the body was cut into pieces never matters. It holds the unfinished element, and nothing else.
#[derive(Debug)]
pub struct Decoder {
    element_bytes: usize,
    inflow: Inflow,
    scan: Scan,
    ended: bool,
    failed: Option<JsonArrayError>,
}

impl Decoder {
    /// A decoder for one body; `element_bytes` is the most that an element may have with what stands in front of it.
    pub fn new(element_bytes: usize) -> Self {
        Self { element_bytes, inflow: Inflow::default(), scan: Scan::default(), ended: false, failed: None }
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

    /// What was pushed and has not come out, for whoever passes a body on although it has no reading.
    pub fn into_rest(mut self) -> Bytes {
        self.inflow.take_all()
    }

    fn read(&mut self) -> Result<Option<Item>, JsonArrayError> {
        let held = self.inflow.held().len();
        let mut scan = self.scan;
        // Beyond the bound nothing is looked at, so that cutting the body differently finds the same.
        let room = self.element_bytes.saturating_sub(held).min(self.inflow.fresh().len());
        let found = scan.step(self.inflow.fresh().get(..room).unwrap_or_default())?;
        let is_over = room < self.inflow.fresh().len();
        match found {
            Found::Nothing if is_over => Err(JsonArrayError::TooLong(self.element_bytes)),
            Found::Nothing if self.ended => self.last(),
            Found::Nothing => {
                self.scan = scan;
                self.inflow.hold();
                Ok(None)
            }
            Found::Element(end) => {
                let mut json = self.inflow.take(end);
                let before = json.split_to(scan.before().min(json.len()));
                self.scan = scan.next();
                Ok(Some(Item::Element { before, json }))
            }
            Found::Close(end) => {
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
