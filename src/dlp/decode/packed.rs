//! Gzip, zlib and zstd, known by their first bytes.

use super::{Coding, Origin, Part, Room};
use crate::wire::coding::{Decoder, Limits, Wrote};

/// The most bytes that come out of one part.
const MOST: usize = 1 << 20;
const ZSTD_WINDOW: u64 = 8 << 20;

pub(super) fn decode(text: &[u8], room: &Room, parts: &mut Vec<Part>) {
    let Some((coding, name)) = magic(text) else { return };
    let most = MOST.min(room.bytes);
    let limits = Limits { chunk_bytes: 16 << 10, decoded_bytes: most as u64, zstd_window_bytes: ZSTD_WINDOW };
    let Ok(Some(mut decoder)) = Decoder::for_header(name, limits) else { return };
    let (mut input, mut bytes) = (text, Vec::new());
    // What comes before a mistake or the bound is looked at.
    loop {
        match decoder.write(&mut input, &mut bytes) {
            Ok(Wrote::All) | Err(_) => break,
            Ok(_) if bytes.len() >= most => break,
            Ok(_) => {}
        }
    }
    if !bytes.is_empty() {
        parts.push(Part { coding, bytes, origin: Origin::Run(0..text.len()) });
    }
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
