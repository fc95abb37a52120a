//! Backslash escapes: JSON in strings, and most languages' literals.

use super::{Coding, Origin, Part, Room, Steps};

pub(super) fn decode(text: &[u8], room: &Room, parts: &mut Vec<Part>) {
    if text.len() > room.bytes {
        return;
    }
    let Some(mut next) = memchr::memchr(b'\\', text) else { return };
    let (mut bytes, mut steps, mut at) = (Vec::with_capacity(text.len()), Steps::default(), 0);
    loop {
        bytes.extend_from_slice(&text[at..next]);
        let (length, character) = escape(&text[next..]).unwrap_or((1, None));
        steps.add(bytes.len(), next);
        match character {
            Some(character) => bytes.extend(character.encode_utf8(&mut [0; 4]).bytes()),
            None => bytes.push(b'\\'),
        }
        at = next + length;
        steps.add(bytes.len(), at);
        match memchr::memchr(b'\\', &text[at..]) {
            Some(found) => next = at + found,
            None => break,
        }
    }
    bytes.extend_from_slice(&text[at..]);
    if bytes.len() < text.len() {
        parts.push(Part { coding: Coding::Json, bytes, origin: Origin::Steps(steps) });
    }
}

/// The escape at the beginning of a text: its length, and its character.
fn escape(text: &[u8]) -> Option<(usize, Option<char>)> {
    if *text.first()? != b'\\' {
        return None;
    }
    let simple = |character| Some((2, Some(character)));
    match text.get(1)? {
        b'n' => simple('\n'),
        b'r' => simple('\r'),
        b't' => simple('\t'),
        b'b' => simple('\u{8}'),
        b'f' => simple('\u{c}'),
        b'"' => simple('"'),
        b'\'' => simple('\''),
        b'\\' => simple('\\'),
        b'/' => simple('/'),
        b'u' => {
            let high = unit(text.get(2..6)?)?;
            match char::from_u32(high) {
                Some(character) => Some((6, Some(character))),
                None => {
                    let low =
                        text.get(6..8).filter(|next| *next == b"\\u").and_then(|_| unit(text.get(8..12)?))?;
                    let units = [u16::try_from(high).ok()?, u16::try_from(low).ok()?];
                    let character = char::decode_utf16(units).next()?.ok()?;
                    Some((12, Some(character)))
                }
            }
        }
        b'x' => {
            let digits = std::str::from_utf8(text.get(2..4)?).ok()?;
            Some((4, Some(char::from(u8::from_str_radix(digits, 16).ok()?))))
        }
        _ => None,
    }
}

fn unit(digits: &[u8]) -> Option<u32> {
    let digits = std::str::from_utf8(digits)
        .ok()
        .filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
    u32::from_str_radix(digits, 16).ok()
}
