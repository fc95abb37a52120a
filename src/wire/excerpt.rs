//! A part of a buffer that is stored beside the buffer, without a reference of its own.

use std::ops::Range;

use bytes::Bytes;

/// A range of a buffer that the holder has too, or bytes of its own. A slice of `Bytes` would count one reference, and
/// one more for each copy; a range counts none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Excerpt {
    Of(Range<usize>),
    Own(Bytes),
}

impl Excerpt {
    /// The bytes; empty if `whole` is another, shorter buffer.
    pub fn of<'a>(&'a self, whole: &'a [u8]) -> &'a [u8] {
        match self {
            Self::Of(range) => whole.get(range.clone()).unwrap_or_default(),
            Self::Own(bytes) => bytes,
        }
    }
}
