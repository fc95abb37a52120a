//! Reads words and literals of JavaScript, as far as they are data.

use std::collections::HashMap;

use serde_json::{Map, Number, Value};

/// How deep literals may stand in one another.
const MOST_DEPTH: usize = 64;

/// A place in a script, and the constants that were declared in front of it.
pub(super) struct Reader<'a> {
    rest: &'a str,
    /// A line ended between the last word or sign and the next.
    new_line: bool,
    depth: usize,
    /// Every name that was declared, with its literal where it has one.
    declared: HashMap<String, Option<Value>>,
}

/// The next word, if it is one.
pub(super) enum Word<'a> {
    Is(&'a str),
    None,
}

impl<'a> Reader<'a> {
    pub(super) fn new(script: &'a str) -> Self {
        Self { rest: script, new_line: false, depth: 0, declared: HashMap::new() }
    }

    pub(super) fn is_at_end(&mut self) -> bool {
        self.skip();
        self.rest.is_empty()
    }

    pub(super) fn is_at(&mut self, sign: u8) -> bool {
        self.skip();
        self.rest.as_bytes().first() == Some(&sign)
    }

    /// Goes past a sign, if it is the next.
    pub(super) fn takes(&mut self, sign: u8) -> bool {
        let is_next = self.is_at(sign);
        if is_next {
            self.advance(1);
        }
        is_next
    }

    /// Whether a statement may end here.
    pub(super) fn ends_statement(&mut self) -> Option<()> {
        if self.takes(b';') || self.is_at_end() {
            return Some(());
        }
        // A line that begins with a sign would go on with the statement.
        (self.new_line && matches!(self.peek_word(), Word::Is(_))).then_some(())
    }

    pub(super) fn peek_word(&mut self) -> Word<'a> {
        self.skip();
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '$';
        let length = self.rest.find(|c| !is_part(c)).unwrap_or(self.rest.len());
        match self.rest.get(..length) {
            Some(word) if !word.is_empty() && !word.starts_with(|c: char| c.is_ascii_digit()) => {
                Word::Is(word)
            }
            Some(_) | None => Word::None,
        }
    }

    /// Goes past a word.
    pub(super) fn word(&mut self) -> Option<&'a str> {
        let Word::Is(word) = self.peek_word() else { return None };
        self.advance(word.len());
        Some(word)
    }

    /// Keeps what a name stands for: a literal, or something else. None where it stands for something already.
    pub(super) fn declare(&mut self, name: &str, value: Option<Value>) -> Option<()> {
        self.declared.insert(name.to_owned(), value).is_none().then_some(())
    }

    /// Goes past a literal, or the name of a constant.
    pub(super) fn value(&mut self) -> Option<Value> {
        self.skip();
        match self.rest.as_bytes().first()? {
            b'"' | b'\'' | b'`' => self.string().map(Value::String),
            b'{' => self.nested(Self::object),
            b'[' => self.nested(Self::array),
            b'-' | b'0'..=b'9' => self.number(),
            _ => match self.word()? {
                "true" => Some(Value::Bool(true)),
                "false" => Some(Value::Bool(false)),
                "null" => Some(Value::Null),
                name => self.declared.get(name).cloned().flatten(),
            },
        }
    }

    fn nested(&mut self, read: impl FnOnce(&mut Self) -> Option<Value>) -> Option<Value> {
        self.advance(1);
        self.depth += 1;
        let value = if self.depth > MOST_DEPTH { None } else { read(self) };
        self.depth -= 1;
        value
    }

    fn object(&mut self) -> Option<Value> {
        let mut entries = Map::new();
        while !self.takes(b'}') {
            let key = match self.peek_word() {
                Word::Is(word) => {
                    self.advance(word.len());
                    word.to_owned()
                }
                Word::None if self.is_at(b'"') || self.is_at(b'\'') => self.string()?,
                Word::None => return None,
            };
            if key == "__proto__" || !self.takes(b':') {
                return None;
            }
            let value = self.value()?;
            if entries.insert(key, value).is_some() || (!self.takes(b',') && !self.is_at(b'}')) {
                return None;
            }
        }
        Some(Value::Object(entries))
    }

    fn array(&mut self) -> Option<Value> {
        let mut items = Vec::new();
        while !self.takes(b']') {
            items.push(self.value()?);
            if !self.takes(b',') && !self.is_at(b']') {
                return None;
            }
        }
        Some(Value::Array(items))
    }

    /// As JSON has it: no other base, no underscore, no leading zero.
    fn number(&mut self) -> Option<Value> {
        let is_part = |c: char| c.is_ascii_alphanumeric() || "+-._".contains(c);
        let length = self.rest.find(|c| !is_part(c)).unwrap_or(self.rest.len());
        let number: Number = serde_json::from_str(self.rest.get(..length)?).ok()?;
        self.advance(length);
        Some(Value::Number(number))
    }

    fn string(&mut self) -> Option<String> {
        let quote = self.next_char()?;
        let mut text = String::new();
        loop {
            match self.next_char()? {
                c if c == quote => return Some(text),
                '\\' => self.escape(&mut text)?,
                '$' if quote == '`' && self.rest.starts_with('{') => return None,
                '\r' if quote == '`' => {
                    self.rest = self.rest.strip_prefix('\n').unwrap_or(self.rest);
                    text.push('\n');
                }
                '\n' | '\r' if quote != '`' => return None,
                c => text.push(c),
            }
        }
    }

    fn escape(&mut self, text: &mut String) -> Option<()> {
        let c = match self.next_char()? {
            'n' => '\n',
            't' => '\t',
            'r' => '\r',
            'b' => '\u{8}',
            'f' => '\u{c}',
            'v' => '\u{b}',
            '0' if !self.rest.starts_with(|c: char| c.is_ascii_digit()) => '\0',
            '0'..='9' => return None,
            'x' => char::from_u32(self.hex(2)?)?,
            'u' => self.unicode()?,
            '\r' => {
                self.rest = self.rest.strip_prefix('\n').unwrap_or(self.rest);
                return Some(());
            }
            '\n' | '\u{2028}' | '\u{2029}' => return Some(()),
            c => c,
        };
        text.push(c);
        Some(())
    }

    /// Behind `\u`: `{1f600}`, `0041`, or the two halves of a pair.
    fn unicode(&mut self) -> Option<char> {
        if let Some(rest) = self.rest.strip_prefix('{') {
            let (digits, rest) = rest.split_once('}')?;
            self.rest = rest;
            let plain = digits.len() <= 8 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
            return plain.then(|| u32::from_str_radix(digits, 16).ok()).flatten().and_then(char::from_u32);
        }
        let first = self.hex(4)?;
        if !(0xd800..0xdc00).contains(&first) {
            return char::from_u32(first);
        }
        self.rest = self.rest.strip_prefix("\\u")?;
        let second = self.hex(4).filter(|second| (0xdc00..0xe000).contains(second))?;
        char::from_u32(0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00))
    }

    fn hex(&mut self, digits: usize) -> Option<u32> {
        let text =
            self.rest.get(..digits).filter(|text| text.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
        self.advance(digits);
        u32::from_str_radix(text, 16).ok()
    }

    fn next_char(&mut self) -> Option<char> {
        let c = self.rest.chars().next()?;
        self.advance(c.len_utf8());
        Some(c)
    }

    fn advance(&mut self, bytes: usize) {
        self.rest = self.rest.get(bytes..).unwrap_or_default();
        self.new_line = false;
    }

    /// Goes past white space and comments.
    fn skip(&mut self) {
        let line_ends = ['\n', '\r', '\u{2028}', '\u{2029}'];
        loop {
            let trimmed = self.rest.trim_start_matches([' ', '\t', '\n', '\r']);
            self.new_line |= self
                .rest
                .get(..self.rest.len() - trimmed.len())
                .is_some_and(|space| space.contains(line_ends));
            self.rest = trimmed;
            let end = if trimmed.starts_with("//") {
                trimmed.find(line_ends)
            } else if trimmed.starts_with("/*") {
                trimmed.get(2..).and_then(|comment| comment.find("*/")).map(|end| end + 4)
            } else {
                return;
            };
            match end {
                Some(end) => {
                    let comment = trimmed.get(..end).unwrap_or_default();
                    self.new_line |= comment.contains(line_ends);
                    self.rest = trimmed.get(end..).unwrap_or_default();
                }
                // A comment that has no end: what follows `//` is the last line.
                None if trimmed.starts_with("//") => self.rest = "",
                None => return,
            }
        }
    }
}
