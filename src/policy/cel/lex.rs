//! Divides an expression into tokens (CEL's language definition, section "Syntax").

use super::Mistake;
use crate::yaml::field;

/// A token, and the offset of its first byte.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Token<'a> {
    pub(super) offset: usize,
    pub(super) text: &'a str,
    pub(super) what: TokenKind,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum TokenKind {
    Name,
    /// Digits without a sign; whether they fit is judged with the sign before them.
    Digits {
        radix: u32,
    },
    /// A string's value.
    Text(String),
    /// An operator or a bracket.
    Mark,
    End,
}

/// Operators and brackets, the longer ones first.
const MARKS: &[&str] = &[
    "&&", "||", "==", "!=", "<=", ">=", "!", "?", ":", "<", ">", "+", "-", "*", "/", "%", "(", ")", "[", "]",
    "{", "}", ".", ",",
];

/// Divides an expression, and gathers all mistakes. The last token is the end.
pub(super) fn tokens(source: &str) -> Result<Vec<Token<'_>>, Vec<Mistake>> {
    let mut lexer = Lexer { source, at: 0, mistakes: Vec::new() };
    let mut tokens = Vec::new();
    while let Some(token) = lexer.next() {
        tokens.extend(token);
    }
    tokens.push(Token { offset: source.len(), text: "", what: TokenKind::End });
    if lexer.mistakes.is_empty() { Ok(tokens) } else { Err(lexer.mistakes) }
}

struct Lexer<'a> {
    source: &'a str,
    at: usize,
    mistakes: Vec<Mistake>,
}

impl<'a> Lexer<'a> {
    fn rest(&self) -> &'a str {
        self.source.get(self.at..).unwrap_or_default()
    }

    /// Returns the next token; `Some(None)` where there is a mistake in its place, none at the end.
    fn next(&mut self) -> Option<Option<Token<'a>>> {
        self.skip();
        let (rest, offset) = (self.rest(), self.at);
        let first = rest.chars().next()?;
        if let Some((is_raw, quote)) = opening(rest) {
            return Some(self.text(is_raw, quote));
        }
        let length = if first.is_ascii_alphabetic() || first == '_' {
            run(rest, |byte| byte.is_ascii_alphanumeric() || byte == b'_')
        } else if first.is_ascii_digit() {
            return Some(self.number());
        } else if let Some(mark) = MARKS.iter().find(|mark| rest.starts_with(**mark)) {
            self.at += mark.len();
            return Some(Some(Token { offset, text: mark, what: TokenKind::Mark }));
        } else {
            self.at += first.len_utf8();
            let message = match first {
                '=' => "`=` is no operator here; `==` compares".to_owned(),
                '&' => "`&` is no operator here; write `&&`".to_owned(),
                '|' => "`|` is no operator here; write `||`".to_owned(),
                '“' | '”' | '‘' | '’' => {
                    "typographic quotes are no quotes here; write \" or '".to_owned()
                }
                other => format!("{other:?} has no meaning here"),
            };
            self.mistakes.push(Mistake::new(offset, message));
            return Some(None);
        };
        self.at += length;
        Some(Some(Token { offset, text: rest.get(..length).unwrap_or_default(), what: TokenKind::Name }))
    }

    /// Skips white space and comments.
    fn skip(&mut self) {
        loop {
            self.at += run(self.rest(), |byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0c));
            if !self.rest().starts_with("//") {
                return;
            }
            self.at += self.rest().find('\n').unwrap_or(self.rest().len());
        }
    }

    /// Reads a number. Fractions and unsigned numbers are told as such.
    fn number(&mut self) -> Option<Token<'a>> {
        let (rest, offset) = (self.rest(), self.at);
        let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        let mut length = run(rest, is_word);
        let after = rest.get(length..).unwrap_or_default();
        let fraction = after.strip_prefix('.').map_or(0, |after| run(after, |byte| byte.is_ascii_digit()));
        if fraction > 0 {
            length += 1 + run(after.get(1..).unwrap_or_default(), is_word);
        }
        self.at += length;
        let text = rest.get(..length).unwrap_or_default();
        let (radix, digits) = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
            Some(digits) => (16, digits),
            None => (10, text),
        };
        if !digits.is_empty() && digits.chars().all(|digit| digit.is_digit(radix)) {
            return Some(Token { offset, text: digits, what: TokenKind::Digits { radix } });
        }
        let message = if fraction > 0 || text.contains(['e', 'E']) && radix == 10 {
            "is a fraction; numbers are whole here"
        } else if text.ends_with(['u', 'U']) {
            "is an unsigned number; leave the `u` out"
        } else {
            "is no number"
        };
        self.mistakes.push(Mistake::new(offset, format!("{} {message}", field::quoted(text))));
        None
    }

    /// Reads a string, whose quotes begin here.
    fn text(&mut self, is_raw: bool, quote: &str) -> Option<Token<'a>> {
        let start = self.at;
        self.at += usize::from(is_raw) + quote.len();
        let mut value = String::new();
        loop {
            let rest = self.rest();
            if rest.starts_with(quote) {
                self.at += quote.len();
                let text = self.source.get(start..self.at).unwrap_or_default();
                return Some(Token { offset: start, text, what: TokenKind::Text(value) });
            }
            let next = rest.chars().next().filter(|next| quote.len() == 3 || !matches!(next, '\n' | '\r'));
            let Some(next) = next else {
                self.mistakes.push(Mistake::new(start, format!("the string has no end; expected {quote}")));
                return None;
            };
            if next == '\\' && !is_raw {
                match escape(rest) {
                    Ok((character, length)) => {
                        value.push(character);
                        self.at += length;
                    }
                    Err((length, message)) => {
                        self.mistakes.push(Mistake::new(self.at, message));
                        self.at += length;
                    }
                }
            } else {
                value.push(next);
                self.at += next.len_utf8();
            }
        }
    }
}

/// Whether a string begins here: whether it is raw, and its quotes.
fn opening(rest: &str) -> Option<(bool, &'static str)> {
    let (is_raw, rest) = match rest.strip_prefix(['r', 'R']) {
        Some(rest) => (true, rest),
        None => (false, rest),
    };
    let quote = ["\"\"\"", "'''", "\"", "'"].into_iter().find(|quote| rest.starts_with(quote))?;
    Some((is_raw, quote))
}

/// Reads an escape: the character and the length of the escape, or how much to skip and what is wrong.
fn escape(rest: &str) -> Result<(char, usize), (usize, String)> {
    let Some(kind) = rest.chars().nth(1) else { return Err((1, "the string has no end".to_owned())) };
    let plain = match kind {
        'a' => '\x07',
        'b' => '\x08',
        'f' => '\x0c',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'v' => '\x0b',
        '\\' | '?' | '"' | '\'' | '`' => kind,
        'x' | 'X' => return code(rest, 2, 2, 16),
        'u' => return code(rest, 2, 4, 16),
        'U' => return code(rest, 2, 8, 16),
        '0'..='3' => return code(rest, 1, 3, 8),
        other => {
            let message = format!(
                "`\\{other}` is no escape; write `\\\\{other}`, or a raw string, as in r'\\d+', for a backslash"
            );
            return Err((1 + other.len_utf8(), message));
        }
    };
    Ok((plain, 2))
}

/// Reads the digits of an escape, which begin after `skip` bytes.
fn code(rest: &str, skip: usize, digits: usize, radix: u32) -> Result<(char, usize), (usize, String)> {
    let written =
        rest.get(skip..skip + digits).filter(|text| text.chars().all(|digit| digit.is_digit(radix)));
    let character = written.and_then(|text| char::from_u32(u32::from_str_radix(text, radix).ok()?));
    character.map(|character| (character, skip + digits)).ok_or_else(|| {
        (
            skip,
            format!(
                "the escape is no character; expected {digits} digits of base {radix} behind the backslash"
            ),
        )
    })
}

/// How many bytes from the beginning on are such.
fn run(text: &str, is: impl Fn(u8) -> bool) -> usize {
    text.bytes().take_while(|byte| is(*byte)).count()
}
