//! Percent-encoding (RFC 3986 section 2).

use std::borrow::Cow;

/// The bytes that never need an encoding (RFC 3986 section 2.3).
pub(crate) fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

/// Hex digits, in the case that RFC 3986 wants.
pub(crate) const UPPER: &[u8; 16] = b"0123456789ABCDEF";

/// Encodes every byte but those that `keep` names, with these hex digits.
pub(crate) fn encode(bytes: &[u8], keep: impl Fn(u8) -> bool, digits: &[u8; 16]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len() * 3);
    for &byte in bytes {
        if keep(byte) {
            out.push(byte);
        } else {
            out.extend([b'%', digits[usize::from(byte >> 4)], digits[usize::from(byte & 15)]]);
        }
    }
    out
}

/// Decodes once. Invalid escapes stay as they are.
pub(crate) fn decode(text: &[u8]) -> Cow<'_, [u8]> {
    if memchr::memchr(b'%', text).is_none() {
        return Cow::Borrowed(text);
    }
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [first, tail @ ..] = rest {
        match (first, tail) {
            (b'%', [high, low, after @ ..]) if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                out.push(digit(*high) << 4 | digit(*low));
                rest = after;
            }
            _ => {
                out.push(*first);
                rest = tail;
            }
        }
    }
    Cow::Owned(out)
}

fn digit(hex: u8) -> u8 {
    match hex {
        b'0'..=b'9' => hex - b'0',
        _ => (hex | 0x20) - b'a' + 10,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encoded_decodes_to_itself() {
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(decode(&encode(&all, is_unreserved, UPPER)).as_ref(), &all);
        assert_eq!(decode(&encode(&all, |_| false, UPPER)).as_ref(), &all);
    }

    #[test]
    fn a_broken_escape_stays_as_it_is() {
        assert_eq!(decode(b"100%").as_ref(), b"100%");
        assert_eq!(decode(b"%4").as_ref(), b"%4");
        assert_eq!(decode(b"%zz%41").as_ref(), b"%zzA");
        assert_eq!(decode(b"%2b%2B").as_ref(), b"++");
    }
}
