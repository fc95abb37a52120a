//! A credential's value in memory: wiped when dropped, and never shown; and the search for all forms in which it may stand
//! in a text.

mod forms;
mod matcher;
mod sieve;
mod sorted;
mod spelling;

use std::fmt;

use zeroize::Zeroizing;

pub(crate) use matcher::KeyMatch;
pub use matcher::SecretMatcher;
pub(crate) use spelling::{Spelled, is_introducer, spellings};

/// The least number of bytes of a value. Fewer could be guessed, and scrubbing them would mask innocent bytes.
pub const LEAST: usize = 8;

/// The greatest number of bytes of a value. Common servers read no longer header than this.
pub const GREATEST: usize = 16 * 1024;

/// A real key: 8 to 16,384 visible ASCII characters, so that it cannot break out of a header, a query or a line.
///
/// It is wiped on drop, has no `Display`, `Serialize` or `Clone`, and its `Debug` shows nothing of it.
#[derive(PartialEq, Eq)]
pub struct Secret(Zeroizing<Box<[u8]>>);

/// Why bytes cannot be a key. The text never quotes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    #[error("is empty")]
    Empty,
    #[error("has fewer than {LEAST} bytes, too few to be scrubbed from answers without masking other text")]
    Short,
    #[error("has more than {GREATEST} bytes")]
    Oversized,
    #[error("holds a line break at byte {0} (only one at the very end is dropped); write the key alone")]
    LineBreak(usize),
    #[error("holds a space, a control character or a non-ASCII byte at byte {0}; a key is visible ASCII")]
    Invisible(usize),
}

impl Unfit {
    /// The same of a value that is searched for alone.
    pub(crate) fn of_value(self) -> String {
        if self == Self::Short {
            return format!("has fewer than {LEAST} bytes, which stand in other text by chance");
        }
        self.to_string()
    }
}

impl Secret {
    /// Takes what a source holds, without its one trailing newline (`\n` or `\r\n`).
    pub fn parse(raw: &[u8]) -> Result<Self, Unfit> {
        let value = raw.strip_suffix(b"\n").map_or(raw, |line| line.strip_suffix(b"\r").unwrap_or(line));
        if value.is_empty() {
            return Err(Unfit::Empty);
        }
        if value.len() > GREATEST {
            return Err(Unfit::Oversized);
        }
        if let Some(at) = value.iter().position(|byte| !byte.is_ascii_graphic()) {
            let line_break = matches!(value[at], b'\r' | b'\n');
            return Err(if line_break { Unfit::LineBreak(at + 1) } else { Unfit::Invisible(at + 1) });
        }
        if value.len() < LEAST {
            return Err(Unfit::Short);
        }
        Ok(Self(Zeroizing::new(value.into())))
    }

    /// The value. Whoever calls this answers for where the bytes go.
    pub(crate) fn expose(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_trailing_newline_is_not_part_of_the_key() {
        for raw in [&b"sk-live-0001"[..], b"sk-live-0001\n", b"sk-live-0001\r\n"] {
            assert_eq!(Secret::parse(raw).unwrap().expose(), b"sk-live-0001");
        }
    }

    #[test]
    fn what_could_break_out_of_a_header_is_refused() {
        assert_eq!(Secret::parse(b"sk-live-0001\n\n"), Err(Unfit::LineBreak(13)));
        assert_eq!(Secret::parse(b"sk-live\r\nx-evil: 1"), Err(Unfit::LineBreak(8)));
        assert_eq!(Secret::parse(b"sk-live 0001"), Err(Unfit::Invisible(8)));
        assert_eq!(Secret::parse(b"sk-live\x000001"), Err(Unfit::Invisible(8)));
        assert_eq!(Secret::parse("\u{feff}sk-live-0001".as_bytes()), Err(Unfit::Invisible(1)));
    }

    #[test]
    fn what_is_empty_short_or_oversized_is_refused() {
        assert_eq!(Secret::parse(b""), Err(Unfit::Empty));
        assert_eq!(Secret::parse(b"\n"), Err(Unfit::Empty));
        assert_eq!(Secret::parse(b"1234567"), Err(Unfit::Short));
        assert!(Secret::parse(b"12345678").is_ok());
        assert!(Secret::parse(&vec![b'a'; GREATEST]).is_ok());
        assert_eq!(Secret::parse(&vec![b'a'; GREATEST + 1]), Err(Unfit::Oversized));
    }

    #[test]
    fn its_debug_text_shows_nothing() {
        let secret = Secret::parse(b"sk-live-0001").unwrap();
        assert_eq!(format!("{secret:?} {:?}", Some(&secret)), "Secret(…) Some(Secret(…))");
    }
}
