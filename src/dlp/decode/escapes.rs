//! Backslash escapes: JSON in strings, and most languages' literals.

use super::assembly::{self, Escape};
use super::{BoundReached, Coding, Parts, Source};

pub(super) fn decode(source: &Source<'_>, parts: &mut Parts<'_>) -> Result<(), BoundReached> {
    let read = |text: &[u8]| {
        let (length, character) = escape(text)?;
        let mut bytes = [0; 4];
        let count = character.encode_utf8(&mut bytes).len();
        Some(Escape { length, bytes, count })
    };
    let Some(assembly) = assembly::undo(source.text, b'\\', read) else { return Ok(()) };
    let (bytes, origin) = assembly.into_part();
    parts.add(Coding::Json, bytes, origin)
}

/// The escape at the beginning of a text: its length, and its character.
fn escape(text: &[u8]) -> Option<(usize, char)> {
    let simple = |character| Some((2, character));
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
                Some(character) => Some((6, character)),
                None => {
                    let low =
                        text.get(6..8).filter(|next| *next == b"\\u").and_then(|_| unit(text.get(8..12)?))?;
                    let units = [u16::try_from(high).ok()?, u16::try_from(low).ok()?];
                    let character = char::decode_utf16(units).next()?.ok()?;
                    Some((12, character))
                }
            }
        }
        b'x' => {
            let digits = std::str::from_utf8(text.get(2..4)?).ok()?;
            Some((4, char::from(u8::from_str_radix(digits, 16).ok()?)))
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
