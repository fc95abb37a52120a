//! Bytes that stand in others and are kept beside them, without a reference of their own.

use std::ops::Range;

use bytes::Bytes;

/// A part of a whole that whoever has this has too, or bytes of their own. Where a part costs a reference to the whole,
/// and one more with each copy, this costs none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Excerpt {
    Of(Range<usize>),
    Own(Bytes),
}

impl Excerpt {
    /// The bytes; none where the whole is another, and shorter.
    pub fn of<'a>(&'a self, whole: &'a [u8]) -> &'a [u8] {
        match self {
            Self::Of(range) => whole.get(range.clone()).unwrap_or_default(),
            Self::Own(bytes) => bytes,
        }
    }
}
