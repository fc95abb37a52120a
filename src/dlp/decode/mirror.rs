//! Texts that are written backwards, in ROT13 or in the other case: each undoes itself.

use super::Coding;

/// One such way.
#[derive(Debug)]
pub(in crate::dlp) struct Mirror {
    pub(in crate::dlp) coding: Coding,
    pub(in crate::dlp) undo: fn(&[u8]) -> Vec<u8>,
    /// Whether the last byte becomes the first.
    pub(in crate::dlp) is_reversed: bool,
}

pub(in crate::dlp) const MIRRORS: &[Mirror] = &[
    Mirror { coding: Coding::Reversed, undo: |text| text.iter().rev().copied().collect(), is_reversed: true },
    Mirror {
        coding: Coding::Rot13,
        undo: |text| text.iter().copied().map(rot13).collect(),
        is_reversed: false,
    },
    Mirror {
        coding: Coding::Case,
        undo: |text| text.iter().copied().map(other_case).collect(),
        is_reversed: false,
    },
];

fn rot13(byte: u8) -> u8 {
    match byte {
        b'a'..=b'm' | b'A'..=b'M' => byte + 13,
        b'n'..=b'z' | b'N'..=b'Z' => byte - 13,
        _ => byte,
    }
}

fn other_case(byte: u8) -> u8 {
    if byte.is_ascii_alphabetic() { byte ^ 0x20 } else { byte }
}
