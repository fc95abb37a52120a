//! Why bytes are not a JSON array of objects.

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
