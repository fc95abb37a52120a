//! The chunked coding of a request body (RFC 9112, section 7.1), line by line; chunk data passes unread.

use memchr::memchr;

use super::fields::{self, FieldSection, SectionSearch};
use super::limits::Limits;
use super::violation::Violation;

/// The position of the next byte in a chunked body.
#[derive(Debug)]
pub(super) enum Chunked {
    /// Before a line with a chunk's size.
    Size,
    /// Inside a chunk, with this many bytes of data to come.
    Data(u64),
    /// Before the CRLF that ends a chunk's data.
    DataEnd,
    /// After the last chunk.
    Trailers,
    /// After the body.
    Done,
}

const SIZE_DIGITS: usize = 16;
const EXTENSION_BYTES: usize = 1024;
const LONGEST_LINE: usize = SIZE_DIGITS + EXTENSION_BYTES + 2;

impl Chunked {
    /// Takes one step and returns how many bytes may pass; 0 needs more.
    pub(super) fn step(
        &mut self,
        bytes: &[u8],
        search: &mut SectionSearch,
        limits: &Limits,
    ) -> Result<usize, Violation> {
        match self {
            Self::Size => {
                let Some((length, size)) = size_line(bytes)? else { return Ok(0) };
                *self = if size == 0 { Self::Trailers } else { Self::Data(size) };
                Ok(length)
            }
            Self::Data(left) => {
                let pass = usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len());
                *left -= pass as u64;
                if *left == 0 {
                    *self = Self::DataEnd;
                }
                Ok(pass)
            }
            Self::DataEnd => match bytes {
                [] | [b'\r'] => Ok(0),
                [b'\r', b'\n', ..] => {
                    *self = Self::Size;
                    Ok(2)
                }
                [_, ..] => Err(Violation::malformed("chunk longer than its size")),
            },
            Self::Trailers => {
                let Some(length) = search.end(bytes, limits, FieldSection::Trailers)? else {
                    return Ok(0);
                };
                judge_trailers(bytes.get(..length).unwrap_or(bytes), search, limits)?;
                *self = Self::Done;
                Ok(length)
            }
            Self::Done => Ok(0),
        }
    }
}

/// Reads a whole size line: its length with the CRLF, and the chunk's size.
fn size_line(bytes: &[u8]) -> Result<Option<(usize, u64)>, Violation> {
    let window = bytes.get(..LONGEST_LINE).unwrap_or(bytes);
    let Some(lf) = memchr(b'\n', window) else {
        let too_long = window.len() == LONGEST_LINE;
        return if too_long { Err(Violation::malformed("chunk line too long")) } else { Ok(None) };
    };
    let line = window.get(..lf).unwrap_or_default();
    let line = line.strip_suffix(b"\r").ok_or(Violation::malformed("bare LF in a chunk line"))?;
    let digits = line.iter().take_while(|b| b.is_ascii_hexdigit()).count();
    let (size, extensions) = line.split_at_checked(digits).unwrap_or_default();
    if !extensions_are_well_formed(extensions) {
        return Err(Violation::malformed("chunk size or extension"));
    }
    Ok(Some((lf + 1, chunk_size(size)?)))
}

fn chunk_size(digits: &[u8]) -> Result<u64, Violation> {
    if digits.is_empty() {
        return Err(Violation::malformed("chunk size or extension"));
    }
    let text = std::str::from_utf8(digits).unwrap_or_default();
    let size = u64::from_str_radix(text, 16).ok().filter(|_| digits.len() <= SIZE_DIGITS);
    // Beyond i64 some readers see a negative number.
    size.filter(|size| i64::try_from(*size).is_ok()).ok_or(Violation::malformed("chunk size too large"))
}

/// Whether the extensions are `;name`, `;name=token` or `;name="text"`, repeated, without spaces, and short.
fn extensions_are_well_formed(mut rest: &[u8]) -> bool {
    if rest.len() > EXTENSION_BYTES {
        return false;
    }
    while !rest.is_empty() {
        let Some(after) = rest.strip_prefix(b";").and_then(extension) else { return false };
        rest = after;
    }
    true
}

/// The bytes after one extension, which begins after its semicolon; `None` if it is malformed.
fn extension(text: &[u8]) -> Option<&[u8]> {
    let after_name = after_token(text)?;
    match after_name {
        [b'=', b'"', quoted @ ..] => after_quoted(quoted),
        [b'=', value @ ..] => after_token(value),
        other => Some(other),
    }
}

fn after_token(text: &[u8]) -> Option<&[u8]> {
    let length = fields::token_length(text);
    if length == 0 { None } else { text.get(length..) }
}

fn after_quoted(mut text: &[u8]) -> Option<&[u8]> {
    loop {
        text = match text {
            [b'"', rest @ ..] => return Some(rest),
            [b'\\', b'\t' | b' '..=b'~', rest @ ..] => rest,
            [b'\t' | b' '..=b'[' | b']'..=b'~', rest @ ..] => rest,
            _ => return None,
        };
    }
}

fn judge_trailers(section: &[u8], search: &SectionSearch, limits: &Limits) -> Result<(), Violation> {
    search.only_line_ends(section)?;
    for (count, line) in search.lines(section).enumerate() {
        if count >= limits.header_count {
            return Err(Violation::too_many());
        }
        let (name, _) = fields::field(line)?;
        if !fields::fit_for_trailers(name) {
            return Err(Violation::malformed("trailer with a name of framing or authentication"));
        }
    }
    Ok(())
}
