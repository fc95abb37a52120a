//! The header of a zstd frame (RFC 8878, section 3.1.1), read before the decoder sees it: it announces the memory that the
//! frame needs.

use super::error::CodingError;

const FRAME: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
const SKIPPABLE_HEADER: usize = 8;

/// The header's length, once the bytes so far determine it. Fails if they are no frame.
pub(super) fn header_length(start: &[u8]) -> Result<Option<usize>, CodingError> {
    match start {
        [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Ok(Some(SKIPPABLE_HEADER)),
        [a, b, c, d, descriptor, ..] if [*a, *b, *c, *d] == FRAME => {
            let (window, dictionary, content) = field_lengths(*descriptor);
            Ok(Some(5 + window + dictionary + content))
        }
        [_, _, _, _, ..] if !start.starts_with(&FRAME) => Err(CodingError::Corrupt),
        _ => Ok(None),
    }
}

/// Checks a whole header: its window must be within `limit`, and it must need no dictionary.
pub(super) fn check_header(header: &[u8], limit: u64) -> Result<(), CodingError> {
    let [_, _, _, _, descriptor, fields @ ..] = header else { return Err(CodingError::Corrupt) };
    if !header.starts_with(&FRAME) {
        return Ok(());
    }
    let (window_length, dictionary_length, _) = field_lengths(*descriptor);
    let (window, rest) = fields.split_at_checked(window_length).ok_or(CodingError::Corrupt)?;
    let (dictionary, content) = rest.split_at_checked(dictionary_length).ok_or(CodingError::Corrupt)?;
    if dictionary.iter().any(|b| *b != 0) {
        return Err(CodingError::Dictionary);
    }
    // A frame without a window descriptor is a single segment: its window is its content size.
    let size = match window {
        [window] => {
            let base = 1u64 << (10 + (window >> 3));
            base + base / 8 * u64::from(window & 7)
        }
        _ => little_endian(content) + if content.len() == 2 { 256 } else { 0 },
    };
    if size > limit { Err(CodingError::Window) } else { Ok(()) }
}

/// The lengths of window descriptor, dictionary id and content size.
fn field_lengths(descriptor: u8) -> (usize, usize, usize) {
    let single_segment = descriptor & 0x20 != 0;
    let dictionary = [0, 1, 2, 4][usize::from(descriptor & 3)];
    let content = match descriptor >> 6 {
        0 => usize::from(single_segment),
        1 => 2,
        2 => 4,
        _ => 8,
    };
    (usize::from(!single_segment), dictionary, content)
}

fn little_endian(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, b| number << 8 | u64::from(*b))
}
