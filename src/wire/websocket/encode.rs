//! Writes messages, each in one frame.

use super::{CONTROL_BYTES, Message, Opcode, mask};

/// Writes a message. `key`: what masks it, which a client has to choose anew, where nobody can guess it, for every
/// frame (RFC 6455, section 5.3); a server has none. What is too long for a control frame is cut.
pub fn encode(message: &Message, key: Option<[u8; 4]>, output: &mut Vec<u8>) {
    let closing;
    let (opcode, payload): (Opcode, &[u8]) = match message {
        Message::Text(text) => (Opcode::Text, text),
        Message::Binary(bytes) => (Opcode::Binary, bytes),
        Message::Ping(bytes) => (Opcode::Ping, &bytes[..bytes.len().min(CONTROL_BYTES)]),
        Message::Pong(bytes) => (Opcode::Pong, &bytes[..bytes.len().min(CONTROL_BYTES)]),
        Message::Close(close) => {
            closing = close.as_ref().map(|close| close.payload()).unwrap_or_default();
            (Opcode::Close, &closing)
        }
    };
    output.push(0x80 | opcode.number());
    let masked = if key.is_some() { 0x80 } else { 0 };
    match payload.len() {
        length @ 0..=125 => output.push(masked | length as u8),
        length @ 126..=0xffff => {
            output.push(masked | 126);
            output.extend_from_slice(&(length as u16).to_be_bytes());
        }
        length => {
            output.push(masked | 127);
            output.extend_from_slice(&(length as u64).to_be_bytes());
        }
    }
    output.extend_from_slice(key.as_ref().map_or(&[], |key| key.as_slice()));
    let start = output.len();
    output.extend_from_slice(payload);
    if let Some(key) = key {
        mask(&mut output[start..], key);
    }
}

/// Writes an empty ping of a server: what feeds a client's watchdog.
pub fn encode_ping(output: &mut Vec<u8>) {
    encode(&Message::Ping(bytes::Bytes::new()), None, output);
}
