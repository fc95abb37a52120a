//! The spellings of one character: as percent escapes, HTML entities, backslash escapes and quoted-printable, and the
//! line breaks that may stand between two.

/// What a spelling comes to, and how many bytes it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Spelled {
    Byte(u8, usize),
    /// Nothing: a line break, a soft one, or a backslash that escapes another.
    Gap(usize),
}

/// How often a percent sign may itself be escaped (`%25252D`).
const NESTING: usize = 3;
/// How many zeros may stand in front of a number.
const ZEROS: usize = 8;

/// Whether a byte may begin a spelling that is more than itself.
pub(crate) const fn is_introducer(byte: u8) -> bool {
    matches!(byte, b'%' | b'&' | b'\\' | b'=' | b'\r' | b'\n')
}

/// Tells every spelling at the start of `rest`, but for the byte that stands for itself. Returns whether the text
/// ends within what could be a longer one.
pub(crate) fn spellings(rest: &[u8], tell: &mut impl FnMut(Spelled)) -> bool {
    let mut reader = Reader { rest, tell, is_cut: false };
    match rest.first() {
        Some(b'%') => reader.percent(),
        Some(b'&') => reader.entity(),
        Some(b'\\') => reader.backslash(),
        Some(b'=') => reader.quoted(),
        Some(b'\n') => (reader.tell)(Spelled::Gap(1)),
        Some(b'\r') if reader.at(1) == Some(b'\n') => (reader.tell)(Spelled::Gap(2)),
        Some(_) | None => {}
    }
    reader.is_cut
}

struct Reader<'a, F> {
    rest: &'a [u8],
    tell: &'a mut F,
    is_cut: bool,
}

impl<F: FnMut(Spelled)> Reader<'_, F> {
    /// `%2D`, `%252D`, and `%u002D` of JavaScript's `escape`.
    fn percent(&mut self) {
        let mut at = 1;
        for _ in 0..=NESTING {
            if self.at(at) == Some(b'u') {
                self.hex(at + 1, 4);
            }
            self.hex(at, 2);
            match self.rest.get(at..at + 2) {
                Some(b"25") => at += 2,
                Some(_) | None => return,
            }
        }
    }

    /// `&#45;`, `&#x2d;`, `&sol;`, with and without the semicolon (HTML, section 13.5).
    fn entity(&mut self) {
        if self.at(1) == Some(b'#') {
            let is_hex = self.at(2).is_some_and(|byte| byte.eq_ignore_ascii_case(&b'x'));
            return self.number(if is_hex { 3 } else { 2 }, if is_hex { 16 } else { 10 });
        }
        let name = &self.rest[1..];
        for (known, byte) in named(name.first().copied()) {
            if name.starts_with(known.as_bytes()) {
                self.ended(*byte, 1 + known.len());
            } else if known.as_bytes().starts_with(name) {
                self.is_cut = true;
            }
        }
    }

    /// The digits of an entity: every length that gives a visible character, since nothing has to end them.
    fn number(&mut self, from: usize, radix: u32) {
        let zeros =
            self.rest[from.min(self.rest.len())..].iter().take(ZEROS).take_while(|byte| **byte == b'0');
        let from = from + zeros.count();
        let mut value = 0;
        for at in from..from + 3 {
            let Some(byte) = self.at(at) else { return };
            let Some(digit) = char::from(byte).to_digit(radix) else { return };
            value = value * radix + digit;
            if let Ok(byte @ ..=0x7f) = u8::try_from(value) {
                self.ended(byte, at + 1);
            }
        }
    }

    /// A character whose spelling may end in a semicolon.
    fn ended(&mut self, byte: u8, length: usize) {
        self.found(byte, length);
        if self.at(length) == Some(b';') {
            self.found(byte, length + 1);
        }
    }

    /// `\u002d`, `\u{2d}`, `\U0000002d`, `\x2d`, `\055`, `\/`, and JSON's line breaks.
    fn backslash(&mut self) {
        match self.at(1) {
            None => {}
            Some(b'\\') => {
                // A text that was escaped twice has two.
                (self.tell)(Spelled::Gap(1));
                self.found(b'\\', 2);
            }
            Some(b'n' | b'r' | b'\n') => (self.tell)(Spelled::Gap(2)),
            Some(b'u' | b'x') if self.at(2) == Some(b'{') => self.braced(),
            Some(b'u') => self.hex(2, 4),
            Some(b'U') => self.hex(2, 8),
            Some(b'x') => self.hex(2, 2),
            Some(b'0'..=b'7') => self.digits(1, 3, 8, 0),
            Some(other) if other.is_ascii_punctuation() => self.found(other, 2),
            Some(_) => {}
        }
    }

    /// The number between braces.
    fn braced(&mut self) {
        let mut value = 0_u32;
        for at in 3..3 + ZEROS + 2 {
            match self.at(at) {
                None => return,
                Some(b'}') => {
                    if let Ok(byte) = u8::try_from(value) {
                        self.found(byte, at + 1);
                    }
                    return;
                }
                Some(byte) => match char::from(byte).to_digit(16) {
                    Some(digit) => value = value.saturating_mul(16).saturating_add(digit),
                    None => return,
                },
            }
        }
    }

    /// `=2D`, and a line break that is none (RFC 2045, section 6.7).
    fn quoted(&mut self) {
        match (self.at(1), self.rest.get(2)) {
            (Some(b'\n'), _) => (self.tell)(Spelled::Gap(2)),
            (Some(b'\r'), Some(b'\n')) => (self.tell)(Spelled::Gap(3)),
            (Some(b'\r'), None) => self.is_cut = true,
            (Some(_) | None, _) => self.hex(1, 2),
        }
    }

    fn hex(&mut self, from: usize, count: usize) {
        self.digits(from, count, 16, 0);
    }

    /// So many digits, which end the spelling.
    fn digits(&mut self, from: usize, count: usize, radix: u32, start: u32) {
        let mut value = start;
        for at in from..from + count {
            let Some(byte) = self.at(at) else { return };
            let Some(digit) = char::from(byte).to_digit(radix) else { return };
            value = value.saturating_mul(radix).saturating_add(digit);
        }
        if let Ok(byte) = u8::try_from(value) {
            self.found(byte, from + count);
        }
    }

    fn found(&mut self, byte: u8, length: usize) {
        let spelled = match byte {
            b'\r' | b'\n' => Spelled::Gap(length),
            byte => Spelled::Byte(byte, length),
        };
        (self.tell)(spelled);
    }

    /// The byte at a place; where the text ends before it, the spelling may go on.
    fn at(&mut self, place: usize) -> Option<u8> {
        let byte = self.rest.get(place).copied();
        self.is_cut |= byte.is_none();
        byte
    }
}

/// The characters whose names begin with a byte, or all.
fn named(first: Option<u8>) -> &'static [(&'static str, u8)] {
    let Some(first) = first else { return NAMED };
    let of = |name: &(&str, u8)| name.0.as_bytes().first().copied();
    let start = NAMED.partition_point(|name| of(name) < Some(first));
    let count = NAMED[start..].iter().take_while(|name| of(name) == Some(first)).count();
    &NAMED[start..start + count]
}

/// Whether the name of a character begins with these letters, whatever their case.
pub(crate) fn may_name(first: u8, second: u8) -> bool {
    SECONDS[usize::from(first & 0x1f)] & 1 << (second & 0x1f) != 0
}

/// The second letters of names, by the first.
const SECONDS: [u32; 32] = {
    let (mut seconds, mut at) = ([0; 32], 0);
    while at < NAMED.len() {
        let name = NAMED[at].0.as_bytes();
        seconds[(name[0] & 0x1f) as usize] |= 1 << (name[1] & 0x1f);
        at += 1;
    }
    seconds
};

/// Whether the name of a character begins with a byte.
pub(crate) const fn begins_name(first: u8) -> bool {
    let mut at = 0;
    while at < NAMED.len() {
        if NAMED[at].0.as_bytes()[0] == first {
            return true;
        }
        at += 1;
    }
    false
}

/// The visible ASCII characters that HTML names (HTML, section 13.5), in the order of their names.
const NAMED: &[(&str, u8)] = &[
    ("AMP", b'&'),
    ("DiacriticalGrave", b'`'),
    ("GT", b'>'),
    ("Hat", b'^'),
    ("LT", b'<'),
    ("NewLine", b'\n'),
    ("QUOT", b'"'),
    ("UnderBar", b'_'),
    ("VerticalLine", b'|'),
    ("amp", b'&'),
    ("apos", b'\''),
    ("ast", b'*'),
    ("bsol", b'\\'),
    ("colon", b':'),
    ("comma", b','),
    ("commat", b'@'),
    ("dollar", b'$'),
    ("equals", b'='),
    ("excl", b'!'),
    ("grave", b'`'),
    ("gt", b'>'),
    ("lbrace", b'{'),
    ("lbrack", b'['),
    ("lcub", b'{'),
    ("lowbar", b'_'),
    ("lpar", b'('),
    ("lsqb", b'['),
    ("lt", b'<'),
    ("midast", b'*'),
    ("num", b'#'),
    ("percnt", b'%'),
    ("period", b'.'),
    ("plus", b'+'),
    ("quest", b'?'),
    ("quot", b'"'),
    ("rbrace", b'}'),
    ("rbrack", b']'),
    ("rcub", b'}'),
    ("rpar", b')'),
    ("rsqb", b']'),
    ("semi", b';'),
    ("sol", b'/'),
    ("verbar", b'|'),
    ("vert", b'|'),
];

#[cfg(test)]
mod tests {
    use super::*;

    /// The spellings of a text, and whether it could go on.
    fn read(text: &str) -> (Vec<Spelled>, bool) {
        let mut found = Vec::new();
        let is_cut = spellings(text.as_bytes(), &mut |spelled| found.push(spelled));
        (found, is_cut)
    }

    #[test]
    fn every_spelling_of_a_dash_is_read() {
        for text in [
            "%2D",
            "%2d",
            "%252d",
            "%25252D",
            "%2525252d",
            "%u002D",
            "&#45;",
            "&#45x",
            "&#045;",
            "&#x2d;",
            "&#X2D;",
            "&#x00002dz",
            "\\u002d",
            "\\u002D",
            "\\U0000002d",
            "\\u{2d}",
            "\\u{00002D}",
            "\\x2d",
            "\\x{2d}",
            "\\055",
            "\\-",
            "=2D",
            "=2d",
        ] {
            let (found, _) = read(&format!("{text} "));
            let whole = text.trim_end_matches(['x', 'z']).len();
            let is_found = found
                .iter()
                .any(|one| *one == Spelled::Byte(b'-', text.len()) || *one == Spelled::Byte(b'-', whole));
            assert!(is_found, "{text}: {found:?}");
        }
        assert_eq!(read("&sol;+").0, [Spelled::Byte(b'/', 4), Spelled::Byte(b'/', 5)]);
    }

    #[test]
    fn a_line_break_in_any_spelling_is_a_gap() {
        for text in [
            "\n",
            "\r\n",
            "\\n",
            "\\r",
            "\\\n",
            "%0A",
            "%0d",
            "&#10;",
            "&NewLine;",
            "=\n",
            "=\r\n",
            "\\u000a",
        ] {
            let (found, _) = read(&format!("{text} "));
            assert!(found.contains(&Spelled::Gap(text.len())), "{text:?}: {found:?}");
        }
    }

    #[test]
    fn a_spelling_that_the_text_cuts_may_go_on() {
        for text in [
            "%", "%2", "%25", "%u00", "&", "&#", "&#x", "&#4", "&so", "&sol", "\\", "\\u00", "\\x{2", "=",
            "=\r",
        ] {
            assert!(read(text).1, "{text:?}");
        }
        for text in ["%2D ", "%zz", "& ", "\\q", "= ", "=zz", "&#x ", "\\u00zz"] {
            assert!(!read(text).1, "{text:?}");
        }
    }
}
