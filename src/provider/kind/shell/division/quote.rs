//! Quotes: `'…'`, `"…"`, `\x`, and the escapes of `$'…'`.

use super::reader::Reader;
use super::state::{Step, Stop};
use super::word::{MarkKind, RawWord};

impl Reader<'_, '_> {
    pub(super) fn single_quotes(&mut self, word: &mut RawWord) -> Step<()> {
        word.quote();
        self.at += 1;
        let length = self.rest().find('\'').ok_or(Stop)?;
        word.push_quoted(self.rest().get(..length).unwrap_or_default());
        self.at += length + 1;
        Ok(())
    }

    pub(super) fn double_quotes(&mut self, word: &mut RawWord) -> Step<()> {
        word.quote();
        self.at += 1;
        loop {
            let plain = self.rest().find(['"', '\\', '$', '`']).ok_or(Stop)?;
            word.text.push_str(self.rest().get(..plain).unwrap_or_default());
            self.at += plain;
            match self.raw() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'\\') => self.escape_in_quotes(word, b"\"\\$`")?,
                Some(b'$') => self.dollar(word, true)?,
                _ => self.backquotes(word, true)?,
            }
        }
    }

    /// A backslash where it takes the meaning of some signs alone.
    pub(super) fn escape_in_quotes(&mut self, word: &mut RawWord, escaped: &[u8]) -> Step<()> {
        self.at += 1;
        match self.raw() {
            None => return Err(Stop),
            Some(b'\n') => self.at += 1,
            Some(byte) if escaped.contains(&byte) => {
                word.has_quoted_sign |= matches!(byte, b'$' | b'`');
                word.text.extend(self.bump());
            }
            Some(_) => word.text.push('\\'),
        }
        Ok(())
    }

    /// A backslash outside of quotes.
    pub(super) fn escape(&mut self, word: &mut RawWord) -> Step<()> {
        word.quote();
        self.at += 1;
        let sign = self.bump().ok_or(Stop)?;
        word.has_quoted_sign |= matches!(sign, '$' | '`');
        word.text.push(sign);
        Ok(())
    }

    /// `$'…'`, from its first quote.
    pub(super) fn escaped_quotes(&mut self, word: &mut RawWord) -> Step<()> {
        word.quote();
        self.at += 1;
        let mut decoded: Vec<u8> = Vec::new();
        loop {
            let plain = self.rest().find(['\'', '\\']).ok_or(Stop)?;
            decoded.extend_from_slice(self.rest().get(..plain).unwrap_or_default().as_bytes());
            self.at += plain + 1;
            if self.text.as_bytes().get(self.at - 1) == Some(&b'\'') {
                break;
            }
            self.decode(&mut decoded)?;
        }
        // bash ends the text at a NUL, zsh does not.
        if let Some(end) = decoded.iter().position(|byte| *byte == 0) {
            self.state.is_opaque = true;
            decoded.truncate(end);
        }
        let text = String::from_utf8_lossy(&decoded);
        if matches!(text, std::borrow::Cow::Owned(_)) {
            word.mark(MarkKind::Computed);
        }
        word.push_quoted(&text);
        Ok(())
    }

    /// What stands behind a backslash in `$'…'` (bash 5, section 3.1.2.4; POSIX.1-2024, section 2.2.4).
    fn decode(&mut self, decoded: &mut Vec<u8>) -> Step<()> {
        let sign = self.bump().ok_or(Stop)?;
        let byte = match sign {
            'a' => 7,
            'b' => 8,
            'e' | 'E' => 27,
            'f' => 12,
            'n' => b'\n',
            'r' => b'\r',
            't' => b'\t',
            'v' => 11,
            '\\' => b'\\',
            '\'' => b'\'',
            '"' => b'"',
            '?' => b'?',
            '0'..='7' => {
                self.at -= 1;
                // The lowest eight bits.
                u8::try_from(self.digits(8, 3).unwrap_or_default() & 0xff).unwrap_or_default()
            }
            'x' | 'u' | 'U' | 'c' => return self.decode_number(sign, decoded),
            other => {
                decoded.push(b'\\');
                decoded.extend_from_slice(other.encode_utf8(&mut [0; 4]).as_bytes());
                return Ok(());
            }
        };
        decoded.push(byte);
        Ok(())
    }

    fn decode_number(&mut self, sign: char, decoded: &mut Vec<u8>) -> Step<()> {
        if sign == 'c' {
            // Shells agree about letters alone.
            let control = self.bump().filter(char::is_ascii_alphabetic).ok_or(Stop)?;
            decoded.push(u8::try_from(control).unwrap_or_default() & 0x1f);
            return Ok(());
        }
        // `\x{…}` is another thing in each shell.
        if self.raw() == Some(b'{') {
            return Err(Stop);
        }
        let most = match sign {
            'x' => 2,
            'u' => 4,
            _ => 8,
        };
        match (self.digits(16, most), sign) {
            (None, _) => decoded.extend_from_slice(&[b'\\', u8::try_from(sign).unwrap_or_default()]),
            (Some(number), 'x') => decoded.push(u8::try_from(number).unwrap_or_default()),
            (Some(number), _) => {
                let character = char::from_u32(number).ok_or(Stop)?;
                decoded.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
            }
        }
        Ok(())
    }

    fn digits(&mut self, radix: u32, most: usize) -> Option<u32> {
        let is_digit = |byte: &u8| char::from(*byte).is_digit(radix);
        let count = self.rest().bytes().take(most).take_while(is_digit).count();
        let number = u32::from_str_radix(self.rest().get(..count)?, radix).ok()?;
        self.at += count;
        Some(number)
    }
}
