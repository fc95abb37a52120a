//! Reads what an expression of JavaScript comes to, as far as it is data: literals, constants, and texts put together
//! out of them.

use serde_json::{Map, Number, Value};

use super::constants::Constants;
use super::tokens::{ScriptToken, TokenKind};

/// How deep literals may stand in one another.
const MOST_DEPTH: usize = 64;

/// Reads values at places among the tokens of a script.
pub(super) struct LiteralReader<'a, 't> {
    tokens: &'t [ScriptToken<'a>],
    /// How many bytes of values may still be made: constants could be repeated without end.
    room: usize,
}

/// A value, and the place behind it.
pub(super) type ReadValue = (Value, usize);

impl<'a, 't> LiteralReader<'a, 't> {
    pub(super) fn new(tokens: &'t [ScriptToken<'a>], script_bytes: usize) -> Self {
        Self { tokens, room: script_bytes * 4 + 4096 }
    }

    /// The value that begins at a place; none where it is more than data.
    pub(super) fn value(&mut self, at: usize, constants: &Constants<'a>) -> Option<ReadValue> {
        self.sum(at, constants, 0)
    }

    pub(super) fn token(&self, at: usize) -> Option<&'t ScriptToken<'a>> {
        self.tokens.get(at)
    }

    pub(super) fn is_at(&self, at: usize, sign: &str) -> bool {
        self.token(at).is_some_and(|token| token.is(sign))
    }

    pub(super) fn spend(&mut self, bytes: usize) -> Option<()> {
        self.room = self.room.checked_sub(bytes + 1)?;
        Some(())
    }

    /// A value, or texts that are joined by `+`.
    fn sum(&mut self, at: usize, constants: &Constants<'a>, depth: usize) -> Option<ReadValue> {
        let (mut value, mut at) = self.operand(at, constants, depth)?;
        while self.is_at(at, "+") {
            let (more, behind) = self.operand(at + 1, constants, depth)?;
            let (Value::String(text), Value::String(more)) = (&mut value, more) else { return None };
            self.spend(more.len())?;
            text.push_str(&more);
            at = behind;
        }
        Some((value, at))
    }

    fn operand(&mut self, at: usize, constants: &Constants<'a>, depth: usize) -> Option<ReadValue> {
        if depth > MOST_DEPTH {
            return None;
        }
        let token = self.token(at)?;
        self.spend(token.text.len())?;
        match (token.kind, token.text) {
            (TokenKind::Text | TokenKind::Template, _) => Some((Value::String(cooked(token)?), at + 1)),
            (TokenKind::TemplateHead, _) => self.template(at, constants, depth),
            (TokenKind::Number, text) => Some((number(text)?, at + 1)),
            (TokenKind::Sign, "-") => {
                let digits = self.token(at + 1).filter(|token| token.kind == TokenKind::Number)?;
                Some((number(&format!("-{}", digits.text))?, at + 2))
            }
            (TokenKind::Sign, "[") => self.array(at, constants, depth),
            (TokenKind::Sign, "{") => self.object(at, constants, depth),
            (TokenKind::Name, "true") => Some((Value::Bool(true), at + 1)),
            (TokenKind::Name, "false") => Some((Value::Bool(false), at + 1)),
            (TokenKind::Name, "null") => Some((Value::Null, at + 1)),
            (TokenKind::Name, "String") => self.raw(at, constants),
            (TokenKind::Name, _) => Some((self.constant(at, constants)?, at + 1)),
            (TokenKind::Sign | TokenKind::Regex | TokenKind::TemplateMiddle | TokenKind::TemplateTail, _) => {
                None
            }
        }
    }

    pub(super) fn constant(&mut self, at: usize, constants: &Constants<'a>) -> Option<Value> {
        let (value, bytes) = constants.at(self.tokens, at)?;
        self.spend(bytes)?;
        Some(value.clone())
    }

    /// `String.raw` in front of a template.
    fn raw(&mut self, at: usize, constants: &Constants<'a>) -> Option<ReadValue> {
        let is_raw =
            self.is_at(at + 1, ".") && self.token(at + 2)?.is_name("raw") && constants.string_is_builtin();
        let template = self.token(at + 3).filter(|token| is_raw && token.kind == TokenKind::Template)?;
        self.spend(template.text.len())?;
        let text = template.text.get(1..template.text.len() - 1)?;
        Some((Value::String(text.replace("\r\n", "\n").replace('\r', "\n")), at + 4))
    }

    fn template(&mut self, mut at: usize, constants: &Constants<'a>, depth: usize) -> Option<ReadValue> {
        let mut text = cooked(self.token(at)?)?;
        loop {
            let (Value::String(more), behind) = self.sum(at + 1, constants, depth + 1)? else { return None };
            let piece = self.token(behind)?;
            self.spend(more.len() + piece.text.len())?;
            text.push_str(&more);
            let goes_on = matches!(piece.kind, TokenKind::TemplateMiddle | TokenKind::TemplateTail);
            text.push_str(&cooked(piece).filter(|_| goes_on)?);
            if piece.kind == TokenKind::TemplateTail {
                return Some((Value::String(text), behind + 1));
            }
            at = behind;
        }
    }

    /// An array, or its texts joined by another.
    fn array(&mut self, at: usize, constants: &Constants<'a>, depth: usize) -> Option<ReadValue> {
        let mut items = Vec::new();
        let mut at = at + 1;
        while !self.is_at(at, "]") {
            let (item, behind) = self.sum(at, constants, depth + 1)?;
            items.push(item);
            at = self.separated(behind, "]")?;
        }
        at += 1;
        if !(self.is_at(at, ".") && self.token(at + 1)?.is_name("join") && self.is_at(at + 2, "(")) {
            return Some((Value::Array(items), at));
        }
        let (separator, behind) = match self.token(at + 3)? {
            token if token.is(")") => (",".to_owned(), at + 3),
            _ => match self.sum(at + 3, constants, depth + 1)? {
                (Value::String(text), behind) => (text, behind),
                _ => return None,
            },
        };
        let texts: Vec<&str> = items.iter().map(Value::as_str).collect::<Option<_>>()?;
        self.spend(texts.iter().map(|text| text.len() + separator.len()).sum())?;
        self.is_at(behind, ")").then(|| (Value::String(texts.join(&separator)), behind + 1))
    }

    /// The key of an object's entry, and whether it is written as a name: `{name}` is short for `{name: name}`.
    pub(super) fn key(&mut self, at: usize) -> Option<(String, bool)> {
        let token = self.token(at)?;
        let is_name = token.kind == TokenKind::Name;
        let key = if is_name { token.text.to_owned() } else { cooked(token)? };
        if !is_name && token.kind != TokenKind::Text {
            return None;
        }
        self.spend(key.len())?;
        Some((key, is_name))
    }

    fn object(&mut self, at: usize, constants: &Constants<'a>, depth: usize) -> Option<ReadValue> {
        let mut entries = Map::new();
        let mut at = at + 1;
        while !self.is_at(at, "}") {
            let (key, is_name) = self.key(at)?;
            let (value, behind) = if self.is_at(at + 1, ":") {
                self.sum(at + 2, constants, depth + 1)?
            } else if is_name {
                (self.constant(at, constants)?, at + 1)
            } else {
                return None;
            };
            if key == "__proto__" || entries.insert(key, value).is_some() {
                return None;
            }
            at = self.separated(behind, "}")?;
        }
        Some((Value::Object(entries), at + 1))
    }

    /// The place behind a comma, or that of the closing bracket.
    fn separated(&self, at: usize, close: &str) -> Option<usize> {
        if self.is_at(at, ",") {
            return Some(at + 1);
        }
        self.is_at(at, close).then_some(at)
    }
}

/// Decimals alone: as JSON has them, but for `_` between digits.
fn number(text: &str) -> Option<Value> {
    let number: Number = serde_json::from_str(&text.replace('_', "")).ok()?;
    Some(Value::Number(number))
}

/// The text that a string or a piece of a template stands for; none where it is no text of Unicode.
pub(super) fn cooked(token: &ScriptToken<'_>) -> Option<String> {
    let end = match token.kind {
        TokenKind::Text | TokenKind::Template | TokenKind::TemplateTail => 1,
        TokenKind::TemplateHead | TokenKind::TemplateMiddle => 2,
        TokenKind::Name | TokenKind::Number | TokenKind::Regex | TokenKind::Sign => return None,
    };
    let mut cook = Cook { rest: token.text.get(1..token.text.len().checked_sub(end)?)? };
    let mut text = String::with_capacity(cook.rest.len());
    while let Some(c) = cook.next() {
        match c {
            '\\' => cook.escape(&mut text)?,
            '\r' => {
                cook.rest = cook.rest.strip_prefix('\n').unwrap_or(cook.rest);
                text.push('\n');
            }
            c => text.push(c),
        }
    }
    Some(text)
}

struct Cook<'a> {
    rest: &'a str,
}

impl Cook<'_> {
    fn next(&mut self) -> Option<char> {
        let c = self.rest.chars().next()?;
        self.rest = self.rest.get(c.len_utf8()..).unwrap_or_default();
        Some(c)
    }

    fn escape(&mut self, text: &mut String) -> Option<()> {
        let c = match self.next()? {
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
        self.rest = self.rest.get(digits..).unwrap_or_default();
        u32::from_str_radix(text, 16).ok()
    }
}
