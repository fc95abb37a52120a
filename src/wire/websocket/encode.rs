//! Writes a message as one frame (RFC 6455, section 5.2).

use bytes::{BufMut, Bytes, BytesMut};

use super::decoder::unmask;
use super::{BINARY, CLOSE, Message, PING, PONG, TEXT};

/// Encodes a message as one frame. A client masks it with a `mask` that is drawn anew for each frame; a server does
/// not.
pub fn encode(message: &Message, mask: Option<[u8; 4]>) -> Bytes {
    let (opcode, payload) = match message {
        Message::Text(payload) => (TEXT, payload),
        Message::Binary(payload) => (BINARY, payload),
        Message::Ping(payload) => (PING, payload),
        Message::Pong(payload) => (PONG, payload),
        Message::Close(payload) => (CLOSE, payload),
    };
    let mut frame = BytesMut::with_capacity(payload.len() + 14);
    frame.put_u8(0x80 | opcode);
    let masked = if mask.is_some() { 0x80 } else { 0 };
    match (u8::try_from(payload.len()), u16::try_from(payload.len())) {
        (Ok(length @ ..126), _) => frame.put_u8(masked | length),
        (_, Ok(length)) => {
            frame.put_u8(masked | 126);
            frame.put_u16(length);
        }
        (_, Err(_)) => {
            frame.put_u8(masked | 127);
            frame.put_u64(payload.len() as u64);
        }
    }
    frame.put_slice(&mask.unwrap_or_default()[..if mask.is_some() { 4 } else { 0 }]);
    let start = frame.len();
    frame.put_slice(payload);
    if let Some(mask) = mask {
        unmask(&mut frame[start..], mask);
    }
    frame.freeze()
}
