//! Why bytes are no JSON, and which key makes a document ambiguous: offsets and reasons, never content.

/// What is wrong with a document, and where.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{reason} at byte {offset}")]
pub struct JsonError {
    /// The offset of the byte that is not allowed.
    pub offset: usize,
    pub reason: Reason,
}

impl JsonError {
    pub(super) const fn new(offset: usize, reason: Reason) -> Self {
        Self { offset, reason }
    }
}

/// A few stable words, fit for the agent's eyes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    #[error("more bytes than can be addressed")]
    TooLong,
    #[error("more values than allowed")]
    TooMany,
    #[error("deeper nesting than allowed")]
    TooDeep,
    #[error("not UTF-8")]
    NotUtf8,
    #[error("a byte order mark")]
    ByteOrderMark,
    #[error("the end, where more is expected")]
    End,
    #[error("no value")]
    Value,
    #[error("a malformed number")]
    Number,
    #[error("no key in quotes")]
    Key,
    #[error("no `:` after a key")]
    Colon,
    #[error("neither `,` nor `]` after an array's item")]
    Item,
    #[error("neither `,` nor `}}` after an object's entry")]
    Entry,
    #[error("something after the document")]
    Trailing,
    #[error("a control character in a string")]
    Control,
    #[error("an unknown escape in a string")]
    Escape,
    #[error("half of a surrogate pair in a string")]
    Surrogate,
}

/// A key that occurs twice in one object: parsers differ in which of its values they take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a key stands twice in one object, at bytes {first} and {again}")]
pub struct Duplicate {
    /// The offset of the key's first occurrence.
    pub first: usize,
    /// The offset of its next occurrence.
    pub again: usize,
}
