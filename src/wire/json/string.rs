//! Strings (RFC 8259, section 7): finds the end of one, and reads its escapes.

use std::borrow::Cow;
use std::hash::{Hash, Hasher};
use std::ops::Range;
use std::str::Chars;

use super::error::{JsonError, Reason};

/// The end of a string.
pub(super) struct StringEnd {
    /// The byte after its closing quote.
    pub(super) end: usize,
    pub(super) escaped: bool,
}

/// Finds the end of the string whose first byte after the opening quote is at `start`, and checks the string.
pub(super) fn find_end(bytes: &[u8], start: usize) -> Result<StringEnd, JsonError> {
    let at = start + plain_length(&bytes[start..]);
    if bytes.get(at) == Some(&b'"') {
        return Ok(StringEnd { end: at + 1, escaped: false });
    }
    find_end_of_escaped(bytes, at)
}

/// The same from the first byte that is neither plain nor the end. A string with one escape usually has many, as source
/// code does, so whole blocks are scanned for special bytes, without a branch for plain ones.
fn find_end_of_escaped(bytes: &[u8], first: usize) -> Result<StringEnd, JsonError> {
    let mut at = first;
    while let Some(block) = bytes.get(at..).and_then(<[u8]>::first_chunk) {
        let mut left = specials(block);
        let mut next = at + block.len();
        while left != 0 {
            let place = left.trailing_zeros() as usize;
            match block[place] {
                b'\\' => {
                    let behind = place + escape_length(bytes, at + place)?;
                    if behind >= block.len() {
                        next = at + behind;
                        break;
                    }
                    left &= u64::MAX << behind;
                }
                b'"' => return Ok(StringEnd { end: at + place + 1, escaped: true }),
                _ => return Err(JsonError::new(at + place, Reason::Control)),
            }
        }
        at = next;
    }
    loop {
        match bytes.get(at) {
            Some(b'"') => return Ok(StringEnd { end: at + 1, escaped: true }),
            Some(b'\\') => at += escape_length(bytes, at)?,
            Some(0..0x20) => return Err(JsonError::new(at, Reason::Control)),
            Some(_) => at += 1,
            None => return Err(JsonError::new(at, Reason::End)),
        }
    }
}

/// Which bytes of a block are a quote, a backslash or a control character: a bit a byte, the lowest for the first.
fn specials(block: &[u8; 64]) -> u64 {
    // This loop compiles to vector instructions; one over words would not, and `array::from_fn` calls a function a byte
    // where it is not inlined.
    let mut flags = [0_u8; 64];
    for (flag, byte) in flags.iter_mut().zip(block) {
        *flag = u8::from((*byte == b'"') | (*byte == b'\\') | (*byte < 0x20));
    }
    let (words, _) = flags.as_chunks();
    // The factor moves the flag of each byte of a word to a bit of its own in the highest byte.
    words.iter().enumerate().fold(0, |bits, (place, word)| {
        bits | (u64::from_le_bytes(*word).wrapping_mul(0x0102_0408_1020_4080) >> 56) << (8 * place)
    })
}

/// The length of the string at the beginning of these bytes, quotes included; none if there is no complete string that
/// [`Document::parse`](super::Document::parse) would read.
pub fn string_length(bytes: &[u8]) -> Option<usize> {
    let end = bytes.starts_with(b"\"").then(|| find_end(bytes, 1).ok())??.end;
    str::from_utf8(&bytes[..end]).is_ok().then_some(end)
}

/// The text of what is between the quotes of a string that was read: its escapes are undone.
pub fn unescape(inside: &str) -> Cow<'_, str> {
    Inside { text: inside, escaped: inside.as_bytes().contains(&b'\\') }.unescaped()
}

/// How many bytes there are before the first quote, backslash or control character.
fn plain_length(bytes: &[u8]) -> usize {
    // Most keys and values are short; setting up memchr only pays off for long ones.
    let (words, _) = bytes[..bytes.len().min(SHORT)].as_chunks();
    for (count, word) in words.iter().enumerate() {
        let special = special_bytes(u64::from_le_bytes(*word));
        if special != 0 {
            return count * 8 + special.trailing_zeros() as usize / 8;
        }
    }
    let searched = words.len() * 8;
    let rest = &bytes[searched..];
    let rest = &rest[..memchr::memchr2(b'"', b'\\', rest).unwrap_or(rest.len())];
    // Without an early exit this compiles to vector instructions.
    let has_control = rest.iter().fold(false, |found, byte| found | (*byte < 0x20));
    let control = if has_control { rest.iter().position(|byte| *byte < 0x20) } else { None };
    searched + control.unwrap_or(rest.len())
}

/// How many bytes are scanned eight at a time.
const SHORT: usize = 64;

/// Sets the highest bit of bytes that are a quote, a backslash or a control character. Exact for the first such byte;
/// later ones may be wrong, since the subtraction borrows.
fn special_bytes(word: u64) -> u64 {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    let below = |limit: u64, word: u64| word.wrapping_sub(ONES * limit) & !word;
    let is = |byte: u8| below(1, word ^ (ONES * u64::from(byte)));
    (below(0x20, word) | is(b'"') | is(b'\\')) & (ONES << 7)
}

/// How many bytes the escape takes whose backslash is at `at`: 2, 6, or the 12 of a surrogate pair.
#[inline]
fn escape_length(bytes: &[u8], at: usize) -> Result<usize, JsonError> {
    match bytes.get(at + 1) {
        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Ok(2),
        other => long_escape_length(bytes, at, other.copied()),
    }
}

fn long_escape_length(bytes: &[u8], at: usize, kind: Option<u8>) -> Result<usize, JsonError> {
    match kind {
        Some(b'u') => match unit(bytes, at)? {
            0xd800..=0xdbff if bytes.get(at + 6..at + 8) == Some(br"\u") => match unit(bytes, at + 6)? {
                0xdc00..=0xdfff => Ok(12),
                _ => Err(JsonError::new(at, Reason::Surrogate)),
            },
            0xd800..=0xdfff => Err(JsonError::new(at, Reason::Surrogate)),
            _ => Ok(6),
        },
        Some(_) => Err(JsonError::new(at, Reason::Escape)),
        None => Err(JsonError::new(bytes.len(), Reason::End)),
    }
}

/// The UTF-16 unit of the escape at `at`: `\u` and four hex digits.
fn unit(bytes: &[u8], at: usize) -> Result<u32, JsonError> {
    let digits = bytes.get(at + 2..at + 6).ok_or(JsonError::new(bytes.len(), Reason::End))?;
    let unit = digits.iter().try_fold(0, |unit, digit| Some(unit << 4 | char::from(*digit).to_digit(16)?));
    unit.ok_or(JsonError::new(at, Reason::Escape))
}

/// The inside of a string that was found: what is between the quotes.
#[derive(Clone, Copy)]
pub(super) struct Inside<'a> {
    pub(super) text: &'a str,
    pub(super) escaped: bool,
}

impl<'a> Inside<'a> {
    /// Its text without escapes.
    pub(super) fn unescaped(self) -> Cow<'a, str> {
        if !self.escaped {
            return Cow::Borrowed(self.text);
        }
        let mut unescaped = String::with_capacity(self.text.len());
        let mut rest = self.text;
        while let Some(plain) = memchr::memchr(b'\\', rest.as_bytes()) {
            unescaped.push_str(&rest[..plain]);
            let mut characters = Characters(rest[plain..].chars());
            unescaped.extend(characters.next());
            rest = characters.0.as_str();
        }
        unescaped.push_str(rest);
        Cow::Owned(unescaped)
    }

    /// Whether its text is exactly this. Allocates nothing.
    pub(super) fn says(self, text: &str) -> bool {
        if self.escaped { self.characters().eq(text.chars()) } else { self.text == text }
    }

    /// Where in it a part of its text stands, grown to whole characters; none where the text has no such part.
    pub(super) fn raw_range(self, range: &Range<usize>) -> Option<Range<usize>> {
        if !self.escaped {
            let start = self.text.floor_char_boundary(range.start);
            let end = self.text.ceil_char_boundary(range.end);
            return (range.end <= self.text.len() && start <= end).then_some(start..end);
        }
        let (mut characters, mut at, mut start) = (self.characters(), 0, None);
        loop {
            let raw = self.text.len() - characters.0.as_str().len();
            if at >= range.end {
                return start.or(Some(raw)).map(|start| start..raw);
            }
            let length = characters.next()?.len_utf8();
            if at + length > range.start {
                start = start.or(Some(raw));
            }
            at += length;
        }
    }

    fn characters(self) -> Characters<'a> {
        Characters(self.text.chars())
    }
}

/// Equal if their texts are, however they are escaped. Allocates nothing.
impl PartialEq for Inside<'_> {
    fn eq(&self, other: &Self) -> bool {
        if self.escaped || other.escaped {
            self.characters().eq(other.characters())
        } else {
            self.text == other.text
        }
    }
}

impl Eq for Inside<'_> {}

impl Hash for Inside<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.characters().for_each(|character| character.hash(state));
    }
}

/// The characters that a checked string stands for.
struct Characters<'a>(Chars<'a>);

impl Iterator for Characters<'_> {
    type Item = char;

    fn next(&mut self) -> Option<char> {
        match self.0.next()? {
            '\\' => self.escape(),
            plain => Some(plain),
        }
    }
}

impl Characters<'_> {
    fn escape(&mut self) -> Option<char> {
        Some(match self.0.next()? {
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'u' => return self.code_point(),
            same => same,
        })
    }

    fn code_point(&mut self) -> Option<char> {
        let unit = self.unit()?;
        if !(0xd800..0xdc00).contains(&unit) {
            return char::from_u32(unit);
        }
        // The second half, after its `\u`.
        self.0.nth(1)?;
        let low = self.unit()?.checked_sub(0xdc00)?;
        char::from_u32(0x10000 + ((unit - 0xd800) << 10) + low)
    }

    fn unit(&mut self) -> Option<u32> {
        (0..4).try_fold(0, |unit, _| Some(unit << 4 | self.0.next()?.to_digit(16)?))
    }
}
