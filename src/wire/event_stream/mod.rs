//! Frames AWS event streams (`application/vnd.amazon.eventstream`): headers and a payload between two checksums.
//!
//! A frame, all numbers big endian: total length (u32), length of the headers (u32), CRC-32 of these 8 bytes,
//! headers, payload, CRC-32 of everything in front of it (Amazon Transcribe developer guide, "Event stream
//! encoding"; Smithy, "Amazon Event Stream specification").

mod decoder;
mod encode;
mod headers;
#[cfg(test)]
mod tests;

pub use decoder::Decoder;
pub use encode::encode;

use bytes::Bytes;

/// The most bytes that a frame may have, checked on its first four bytes.
pub const FRAME_BYTES: usize = 16 << 20;

/// Length and length of headers, then their checksum.
const PRELUDE: usize = 12;

const CHECKSUM: usize = 4;

/// One frame with correct checksums. The raw bytes of all frames in order are the stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// In their order; no name occurs twice.
    pub headers: Vec<Header>,
    /// A slice of `raw`.
    pub payload: Bytes,
    /// The bytes as they were received.
    pub raw: Bytes,
}

impl Frame {
    /// The value of a header that is a string, such as `:event-type`.
    pub fn string(&self, name: &str) -> Option<&str> {
        match &self.headers.iter().find(|header| header.name == name)?.value {
            Value::String(text) => Some(text),
            Value::Bool(_)
            | Value::Byte(_)
            | Value::Short(_)
            | Value::Int(_)
            | Value::Long(_)
            | Value::Bytes(_)
            | Value::Timestamp(_)
            | Value::Uuid(_) => None,
        }
    }
}

/// One header of a frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// 1 to 255 bytes.
    pub name: String,
    pub value: Value,
}

impl Header {
    /// A string header, as all headers are that describe a frame.
    pub fn string(name: &str, value: &str) -> Self {
        Self { name: name.to_owned(), value: Value::String(value.to_owned()) }
    }
}

/// A header's value, by its type (0 to 9: true and false are two of them).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    Bool(bool),
    Byte(i8),
    Short(i16),
    Int(i32),
    Long(i64),
    /// At most 65,535 bytes.
    Bytes(Bytes),
    /// At most 65,535 bytes.
    String(String),
    /// Milliseconds since 1970.
    Timestamp(i64),
    Uuid([u8; 16]),
}

/// Why bytes are no frame, or cannot be encoded as one. The beginning of the next frame is then no longer known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EventStreamError {
    #[error("event stream frame is longer than {FRAME_BYTES} bytes")]
    TooLong,
    #[error("event stream frame has lengths that contradict each other")]
    Length,
    #[error("event stream frame has a wrong checksum")]
    Checksum,
    #[error("event stream frame has malformed headers")]
    Header,
    #[error("event stream frame has a header twice")]
    DuplicateHeader,
    #[error("event stream ends inside a frame")]
    Truncated,
}
