//! Frames the messages of one side of a WebSocket (RFC 6455, without extensions).
//!
//! Extensions are not read: the gateway removes `Sec-WebSocket-Extensions` from the request of a WebSocket that it reads,
//! so that none is agreed on, and a frame that uses one is an error.

mod decoder;
mod encode;
#[cfg(test)]
mod tests;

pub use decoder::Decoder;
pub use encode::encode;

use bytes::Bytes;

/// A message, or a frame that controls the connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    /// UTF-8.
    Text(Bytes),
    Binary(Bytes),
    /// At most 125 bytes, as `Pong` and `Close`.
    Ping(Bytes),
    Pong(Bytes),
    /// Empty, or a code (two bytes) and a reason in UTF-8.
    Close(Bytes),
}

impl Message {
    /// Closes the connection for this reason (RFC 6455, section 7.4), which is cut at 123 bytes.
    pub fn close(code: u16, reason: &str) -> Self {
        let reason = &reason[..reason.floor_char_boundary(CONTROL - 2)];
        Self::Close([&code.to_be_bytes()[..], reason.as_bytes()].concat().into())
    }
}

/// Closing for a violation of policy (RFC 6455, section 7.4.1).
pub const POLICY_VIOLATION: u16 = 1008;
/// Closing because bytes are no WebSocket frame.
const PROTOCOL_ERROR: u16 = 1002;
/// Closing for lack of memory (IANA's registry of close codes).
const TRY_AGAIN_LATER: u16 = 1013;

/// The sender of the frames: a client masks them, a server does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sender {
    Client,
    Server,
}

/// The longest payload of a frame that controls the connection.
const CONTROL: usize = 125;

const TEXT: u8 = 0x1;
const BINARY: u8 = 0x2;
const CLOSE: u8 = 0x8;
const PING: u8 = 0x9;
const PONG: u8 = 0xa;
/// The next frame of an unfinished message.
const CONTINUATION: u8 = 0x0;

/// Why bytes are not frames. The beginning of the next one is then no longer known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WebSocketError {
    #[error("WebSocket frame uses an extension that was not agreed on")]
    Extension,
    #[error("WebSocket frame has an unknown opcode")]
    Opcode,
    #[error("WebSocket frame of a client is not masked, or one of a server is")]
    Mask,
    #[error("WebSocket frame has a length that is not in its shortest form")]
    Length,
    #[error("WebSocket control frame is fragmented or longer than 125 bytes")]
    Control,
    #[error("WebSocket frames of two messages are mixed")]
    Sequence,
    #[error("WebSocket message is longer than {0} bytes")]
    TooLong(usize),
    #[error("WebSocket text is not UTF-8")]
    Text,
    /// Returned by the decoder's caller, not by the decoder.
    #[error("too many bytes are held at this moment (limits.bufferedBytes)")]
    NoRoom,
}

impl WebSocketError {
    /// The code of the close frame for it.
    pub fn code(self) -> u16 {
        if self == Self::NoRoom { TRY_AGAIN_LATER } else { PROTOCOL_ERROR }
    }
}
