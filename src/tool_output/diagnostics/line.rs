//! The beginning of a line as patterns read it: without colours and without the return at its end.

use std::borrow::Cow;

use super::LOOKED_AT;

const ESCAPE: u8 = 0x1b;
const BELL: u8 = 0x07;

/// The first bytes of a line, without terminal sequences (ECMA-48).
pub(super) fn plain(line: &str) -> Cow<'_, [u8]> {
    let bytes = line.as_bytes();
    let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
    let bytes = bytes.get(..LOOKED_AT).unwrap_or(bytes);
    match memchr::memchr(ESCAPE, bytes) {
        None => Cow::Borrowed(bytes),
        Some(_) => Cow::Owned(without_sequences(bytes)),
    }
}

fn without_sequences(bytes: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some(at) = memchr::memchr(ESCAPE, rest) {
        let (text, sequence) = rest.split_at(at);
        plain.extend_from_slice(text);
        rest = sequence.get(length(sequence)..).unwrap_or_default();
    }
    plain.extend_from_slice(rest);
    plain
}

/// How many bytes a sequence has, from its escape on.
fn length(sequence: &[u8]) -> usize {
    let end = |is_last: fn(u8) -> bool| {
        let last = sequence.iter().skip(2).position(|byte| is_last(*byte));
        last.map_or(sequence.len(), |last| last + 3)
    };
    match sequence.get(1) {
        // CSI: parameters, then one byte from `@` to `~`.
        Some(b'[') => end(|byte| (b'@'..=b'~').contains(&byte)),
        // OSC, as of links: up to a bell or `ESC \`, whose backslash is left over and harms no pattern but at the beginning.
        Some(b']') => end(|byte| byte == BELL || byte == b'\\'),
        _ => 2,
    }
}
