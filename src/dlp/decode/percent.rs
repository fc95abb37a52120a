//! Percent-encoding (RFC 3986), where a text has at least three escapes.

use super::assembly::{self, Escape};
use super::{BoundReached, Coding, Parts, Source};

const LEAST: usize = 3;

pub(super) fn decode(source: &Source<'_>, parts: &mut Parts<'_>) -> Result<(), BoundReached> {
    let signs = memchr::memchr_iter(b'%', source.text);
    let escapes = signs.filter(|at| source.text.get(*at..).and_then(escape).is_some());
    if escapes.take(LEAST).count() < LEAST {
        return Ok(());
    }
    let Some(assembly) = assembly::undo(source.text, b'%', escape) else { return Ok(()) };
    let (bytes, origin) = assembly.into_part();
    parts.add(Coding::Percent, bytes, origin)
}

fn escape(text: &[u8]) -> Option<Escape> {
    let digit = |byte: &u8| char::from(*byte).to_digit(16);
    match text {
        [b'%', high, low, ..] => {
            let byte = u8::try_from(digit(high)? * 16 + digit(low)?).ok()?;
            Some(Escape { length: 3, bytes: [byte, 0, 0, 0], count: 1 })
        }
        _ => None,
    }
}
