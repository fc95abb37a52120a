//! Percent-encoding (RFC 3986), where a text has at least three escapes.

use super::{Coding, Origin, Part, Room, Steps};

const LEAST: usize = 3;

pub(super) fn decode(text: &[u8], room: &Room, parts: &mut Vec<Part>) {
    let signs = memchr::memchr_iter(b'%', text);
    if text.len() > room.bytes
        || signs.filter(|at| escape(&text[*at..]).is_some()).take(LEAST).count() < LEAST
    {
        return;
    }
    let (mut bytes, mut steps, mut at) = (Vec::with_capacity(text.len()), Steps::default(), 0);
    for sign in memchr::memchr_iter(b'%', text) {
        if let Some(byte) = text.get(sign..).filter(|_| sign >= at).and_then(escape) {
            bytes.extend_from_slice(&text[at..sign]);
            steps.add(bytes.len(), sign);
            bytes.push(byte);
            at = sign + 3;
            steps.add(bytes.len(), at);
        }
    }
    bytes.extend_from_slice(&text[at..]);
    parts.push(Part { coding: Coding::Percent, bytes, origin: Origin::Steps(steps) });
}

fn escape(text: &[u8]) -> Option<u8> {
    let digit = |byte: &u8| char::from(*byte).to_digit(16);
    match text {
        [b'%', high, low, ..] => u8::try_from(digit(high)? * 16 + digit(low)?).ok(),
        _ => None,
    }
}
