//! Gzip, zlib and zstd, known by their first bytes.

use super::{BoundReached, Coding, Origin, Parts, Source};
use crate::wire::coding::{Decoder, Limits, Wrote};

/// The most bytes that come out of one part.
const MOST: usize = 1 << 20;
const ZSTD_WINDOW: u64 = 8 << 20;

pub(super) fn decode(source: &Source<'_>, parts: &mut Parts<'_>) -> Result<(), BoundReached> {
    let Some((coding, name)) = magic(source.text) else { return Ok(()) };
    let limits = Limits { chunk_bytes: 16 << 10, decoded_bytes: MOST as u64, zstd_window_bytes: ZSTD_WINDOW };
    let Ok(Some(mut decoder)) = Decoder::for_header(name, limits) else { return Ok(()) };
    let (mut input, mut bytes) = (source.text, Vec::new());
    loop {
        match decoder.write(&mut input, &mut bytes) {
            Err(error) if error.is_bound() => return Err(BoundReached::Packed),
            // What comes before a mistake is looked at.
            Ok(Wrote::All) | Err(_) => break,
            Ok(Wrote::Full) => parts.has_room(bytes.len())?,
        }
    }
    if bytes.is_empty() {
        return Ok(());
    }
    parts.add(coding, bytes, Origin::Run(0..source.text.len()))
}

/// What packed a text, and the name of the content coding.
pub(super) fn magic(text: &[u8]) -> Option<(Coding, &'static str)> {
    match text {
        [0x1f, 0x8b, 0x08, ..] => Some((Coding::Gzip, "gzip")),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Some((Coding::Zstd, "zstd")),
        [0x78, 0x01 | 0x5e | 0x9c | 0xda, ..] => Some((Coding::Zlib, "deflate")),
        _ => None,
    }
}
