//! Reads the keys of an object that a script writes, where its values are more than data.

use serde_json::{Map, Value};

use super::constants::Constants;
use super::literal::{LiteralReader, ReadValue};
use super::tokens::{ScriptToken, TokenKind};

/// How deep objects are looked into.
const MOST_DEPTH: usize = 4;

impl<'a> LiteralReader<'a, '_> {
    /// The object that begins at a place, with a text for each value that only running the script would tell; none
    /// where the script does not say all keys.
    pub(super) fn outline(&mut self, open: usize, constants: &Constants<'a>) -> Option<ReadValue> {
        let object = self.keys(open, constants, 0)?;
        Some((object, self.token(open)?.partner + 1))
    }

    fn keys(&mut self, open: usize, constants: &Constants<'a>, depth: usize) -> Option<Value> {
        let close = self.token(open).filter(|token| token.is("{"))?.partner;
        let mut entries = Map::new();
        let mut at = open + 1;
        while at < close {
            let (key, is_name) = self.key(at)?;
            let end = self.end(at, open, close);
            let value = if self.is_at(at + 1, ":") {
                self.part(at + 2, end, constants, depth + 1)?
            } else if is_name && end == at + 1 {
                self.part(at, end, constants, depth + 1)?
            } else {
                return None;
            };
            if key == "__proto__" || entries.insert(key, value).is_some() {
                return None;
            }
            at = end + 1;
        }
        Some(Value::Object(entries))
    }

    fn items(&mut self, open: usize, constants: &Constants<'a>, depth: usize) -> Option<Value> {
        let close = self.token(open)?.partner;
        let mut items = Vec::new();
        let mut at = open + 1;
        while at < close {
            let end = self.end(at, open, close);
            items.push(self.part(at, end, constants, depth + 1)?);
            at = end + 1;
        }
        Some(Value::Array(items))
    }

    /// Where what begins at a place inside a bracket ends: at the next comma of the bracket, or where it closes.
    fn end(&self, at: usize, open: usize, close: usize) -> usize {
        let is_comma = |token: &ScriptToken<'_>| token.parent == Some(open) && token.is(",");
        (at..close).find(|at| self.token(*at).is_some_and(is_comma)).unwrap_or(close)
    }

    /// What stands between two places: objects and arrays with their keys; none where an expression could make an
    /// object with keys of its own.
    fn part(&mut self, start: usize, end: usize, constants: &Constants<'a>, depth: usize) -> Option<Value> {
        if depth > MOST_DEPTH {
            return None;
        }
        self.spend(1)?;
        let unknown = Value::String(String::new());
        let first = self.token(start)?;
        if first.partner + 1 == end && first.is("{") {
            return self.keys(start, constants, depth);
        }
        if first.partner + 1 == end && first.is("[") {
            return self.items(start, constants, depth);
        }
        if start + 1 == end {
            return Some(match (first.kind, first.text) {
                (TokenKind::Number, _) | (TokenKind::Name, "true" | "false" | "null") => Value::Null,
                (TokenKind::Name, _) => self.constant(start, constants).filter(has_keys).unwrap_or(unknown),
                (
                    TokenKind::Text
                    | TokenKind::Template
                    | TokenKind::TemplateHead
                    | TokenKind::TemplateMiddle
                    | TokenKind::TemplateTail
                    | TokenKind::Regex
                    | TokenKind::Sign,
                    _,
                ) => unknown,
            });
        }
        let makes = (start..end).any(|at| self.is_at(at, "{"));
        (!makes).then_some(unknown)
    }
}

fn has_keys(value: &Value) -> bool {
    value.is_object() || value.is_array()
}
