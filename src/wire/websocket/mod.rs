//! Frames the messages of a WebSocket (RFC 6455): reads frames into whole messages, and writes messages as frames.
//!
//! Accepted is what the RFC allows without extensions: no reserved bit, known opcodes, lengths in their shortest form,
//! masks on what a client sends and on nothing else, control frames whole and of at most 125 bytes, text in UTF-8.
//! Who passes messages on writes each anew, in one frame, so that both ends read the same whatever came.

mod close;
mod decoder;
mod encode;
#[cfg(test)]
mod tests;

pub use close::Close;
pub use decoder::Decoder;
pub use encode::{encode, encode_ping};

use bytes::Bytes;

/// The most bytes of a control frame's payload (section 5.5).
const CONTROL_BYTES: usize = 125;

/// Who sends: a client masks, a server does not (section 5.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sender {
    Client,
    Server,
}

/// A message, whole, without masks and however many frames it came in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    /// UTF-8.
    Text(Bytes),
    Binary(Bytes),
    Ping(Bytes),
    Pong(Bytes),
    /// The last that its sender says. None where it gives no reason.
    Close(Option<Close>),
}

/// Why bytes are no message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    #[error("a reserved bit is set, of an extension that was not agreed on")]
    Reserved,
    #[error("an unknown opcode")]
    Opcode,
    #[error("a mask where there must be none, or none where there must be one")]
    Mask,
    #[error("a length that is not in its shortest form")]
    Length,
    #[error("a control frame that is in fragments or longer than 125 bytes")]
    Control,
    #[error("a fragment of no message, or a new message inside of another")]
    Fragment,
    #[error("text that is not UTF-8")]
    Text,
    #[error("a reason to close that cannot be sent")]
    Close,
    #[error("something after the last message")]
    AfterClose,
    #[error("a message of more than {0} bytes")]
    TooLong(usize),
    #[error("a message in more than {0} frames")]
    TooMany(usize),
    #[error("the end in the middle of a frame or message")]
    Truncated,
}

impl Violation {
    /// The code with which the connection is closed (section 7.4.1).
    pub fn close_code(self) -> u16 {
        match self {
            Self::Text => 1007,
            Self::TooLong(_) | Self::TooMany(_) => 1009,
            Self::Reserved
            | Self::Opcode
            | Self::Mask
            | Self::Length
            | Self::Control
            | Self::Fragment
            | Self::Close
            | Self::AfterClose
            | Self::Truncated => 1002,
        }
    }
}

/// What a frame holds (section 5.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Opcode {
    Continuation,
    Text,
    Binary,
    Close,
    Ping,
    Pong,
}

impl Opcode {
    const ALL: [Self; 6] =
        [Self::Continuation, Self::Text, Self::Binary, Self::Close, Self::Ping, Self::Pong];

    fn number(self) -> u8 {
        match self {
            Self::Continuation => 0,
            Self::Text => 1,
            Self::Binary => 2,
            Self::Close => 8,
            Self::Ping => 9,
            Self::Pong => 10,
        }
    }

    fn of(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|opcode| opcode.number() == number)
    }

    fn is_control(self) -> bool {
        self.number() >= 8
    }
}

/// Masks bytes, or takes the mask off (section 5.3).
fn mask(bytes: &mut [u8], key: [u8; 4]) {
    for (byte, key) in bytes.iter_mut().zip(key.iter().cycle()) {
        *byte ^= key;
    }
}
