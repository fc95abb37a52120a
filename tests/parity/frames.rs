//! AWS event-stream frames (`application/vnd.amazon.eventstream`), by hand: lengths, two CRC-32, string headers.

use bytes::Bytes;
use serde_json::Value;

use crate::support::upstream::crc32;

/// The type of a header whose value is a string.
const STRING: u8 = 7;

/// One event of this type.
pub(crate) fn frame(event_type: &str, payload: &[u8]) -> Bytes {
    let mut headers = Vec::new();
    let fields =
        [(":event-type", event_type), (":content-type", "application/json"), (":message-type", "event")];
    for (name, value) in fields {
        headers.push(u8::try_from(name.len()).unwrap());
        headers.extend(name.as_bytes());
        headers.push(STRING);
        headers.extend(u16::try_from(value.len()).unwrap().to_be_bytes());
        headers.extend(value.as_bytes());
    }
    let total = u32::try_from(16 + headers.len() + payload.len()).unwrap();
    let mut frame = total.to_be_bytes().to_vec();
    frame.extend(u32::try_from(headers.len()).unwrap().to_be_bytes());
    frame.extend(crc32(&frame).to_be_bytes());
    frame.extend(headers);
    frame.extend(payload);
    frame.extend(crc32(&frame).to_be_bytes());
    frame.into()
}

/// The type and the payload of each event; panics on a frame that does not hold together.
pub(crate) fn unframe(mut body: &[u8]) -> Vec<(String, Value)> {
    let mut events = Vec::new();
    while !body.is_empty() {
        let word = |at: usize| u32::from_be_bytes(body[at..at + 4].try_into().unwrap());
        let (total, headers) = (word(0) as usize, word(4) as usize);
        assert_eq!(word(8), crc32(&body[..8]), "the CRC of the prelude");
        assert_eq!(word(total - 4), crc32(&body[..total - 4]), "the CRC of the message");
        let event_type = header(&body[12..12 + headers], ":event-type");
        events.push((event_type, serde_json::from_slice(&body[12 + headers..total - 4]).unwrap()));
        body = &body[total..];
    }
    events
}

fn header(mut headers: &[u8], wanted: &str) -> String {
    while let Some((length, rest)) = headers.split_first() {
        let (name, rest) = rest.split_at(usize::from(*length));
        assert_eq!(rest[0], STRING);
        let length = usize::from(u16::from_be_bytes([rest[1], rest[2]]));
        let (value, rest) = rest[3..].split_at(length);
        if name == wanted.as_bytes() {
            return String::from_utf8(value.to_vec()).unwrap();
        }
        headers = rest;
    }
    panic!("no {wanted} header")
}
