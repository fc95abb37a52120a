//! How a body begins: a byte order mark of another character set, or gzip that no head speaks of.

/// What the first bytes of a body say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Opening {
    /// It is looked at as it is.
    Plain,
    /// UTF-16 or UTF-32: a key in it would not be found.
    Wide,
    Gzip,
    /// More bytes have to come.
    Short,
}

/// The byte order marks that are not UTF-8's (Unicode Standard, section 23.8; UTF-32's little-endian one begins as
/// UTF-16's), and the head of gzip (RFC 1952, section 2.3).
const MARKS: [(&[u8], Opening); 4] = [
    (b"\xff\xfe", Opening::Wide),
    (b"\xfe\xff", Opening::Wide),
    (b"\x00\x00\xfe\xff", Opening::Wide),
    (b"\x1f\x8b\x08", Opening::Gzip),
];

impl Opening {
    /// Reads the first bytes of a body; `is_whole` says that there are no others.
    pub(super) fn of(bytes: &[u8], is_whole: bool) -> Self {
        let known = MARKS.iter().find(|(mark, _)| bytes.starts_with(mark));
        let is_short = || !is_whole && MARKS.iter().any(|(mark, _)| mark.starts_with(bytes));
        match known {
            Some((_, opening)) => *opening,
            None if is_short() => Self::Short,
            None => Self::Plain,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_known_by_its_first_bytes() {
        for (bytes, opening) in [
            (&b"{}"[..], Opening::Plain),
            (b"\xef\xbb\xbf{", Opening::Plain),
            (b"\xff\xfe{\0", Opening::Wide),
            (b"\xfe\xff\0{", Opening::Wide),
            (b"\xff\xfe\0\0", Opening::Wide),
            (b"\0\0\xfe\xff", Opening::Wide),
            (b"\0\0\0\x05", Opening::Plain),
            (b"\x1f\x8b\x08\0", Opening::Gzip),
            (b"\x1f\x8b", Opening::Short),
            (b"", Opening::Short),
        ] {
            assert_eq!(Opening::of(bytes, false), opening, "{bytes:?}");
        }
        assert_eq!(Opening::of(b"\x1f\x8b", true), Opening::Plain);
    }
}
