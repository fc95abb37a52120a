//! Walks the schemas in a schema, and copies it without what the rules take out.

use super::SchemaRules;
use crate::wire::json::{Entry, Kind, Value};

/// Keywords whose members are schemas.
const MAPS: [&str; 5] = ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas"];

/// Keywords that are schemas, or lists of them.
const SCHEMAS: [&str; 10] =
    ["items", "prefixItems", "contains", "not", "if", "then", "else", "anyOf", "oneOf", "allOf"];

/// The formats that Google knows.
const FORMATS: [&str; 6] = ["date", "date-time", "int32", "int64", "float", "double"];

/// Appends a schema without what the rules take out of it.
pub(in crate::provider::openai_chat) fn write_schema(
    schema: Value<'_>,
    rules: SchemaRules,
    out: &mut String,
) {
    if rules.is_idle() {
        return out.push_str(schema.raw());
    }
    let mut walk = Walk { rules, begin: schema.span().start, whole: schema.raw(), copied: 0, out };
    walk.schema(schema);
    walk.copy_to(schema.span().end);
}

/// A copy in progress. The document nests no deeper than its reader allows, so the walk may recurse.
struct Walk<'w, 'd> {
    rules: SchemaRules,
    /// Where the outermost schema begins in the document.
    begin: usize,
    whole: &'d str,
    /// How much of it is copied or taken out, in bytes.
    copied: usize,
    out: &'w mut String,
}

impl<'d> Walk<'_, 'd> {
    fn schema(&mut self, schema: Value<'d>) {
        let Some(entries) = schema.entries() else { return };
        let is_nullable = schema.get("nullable").ok().flatten();
        if !entries.clone().any(|entry| self.goes(&entry)) {
            return entries.for_each(|entry| self.member(entry, is_nullable));
        }
        // What stands behind the last member that stays goes with the comma before it.
        let stays = |entry: &Entry<'d>| !self.goes(entry);
        let last = entries.clone().filter(stays).last().map(|entry| entry.value.span().end);
        let mut entries = entries.peekable();
        while let Some(entry) = entries.next() {
            if !self.goes(&entry) {
                self.member(entry, is_nullable);
                continue;
            }
            let begin = entry.key.span().start;
            let next = entries.peek().map(|next| next.key.span().start);
            match (next, last) {
                (Some(next), Some(last)) if begin < last => self.cut(begin, next),
                (Some(_), _) => {}
                (None, Some(last)) => self.cut(last, entry.value.span().end),
                (None, None) => {
                    let first = schema.entries().and_then(|mut all| all.next());
                    self.cut(first.map_or(begin, |first| first.key.span().start), entry.value.span().end);
                }
            }
        }
    }

    /// Whether a member of a schema is taken out.
    fn goes(&self, entry: &Entry<'d>) -> bool {
        let keyword = entry.key.text().unwrap_or_default();
        let is_foreign_format =
            || keyword == "format" && !FORMATS.iter().any(|format| entry.value.says(format));
        self.rules.drops(&keyword) || self.rules.is_google && is_foreign_format()
    }

    /// Goes on into a member that stays.
    fn member(&mut self, entry: Entry<'d>, nullable: Option<Value<'d>>) {
        let (keyword, value) = (entry.key.text().unwrap_or_default(), entry.value);
        if MAPS.contains(&&*keyword) {
            value.entries().into_iter().flatten().for_each(|member| self.schema(member.value));
        } else if SCHEMAS.contains(&&*keyword) {
            self.schema(value);
            value.items().into_iter().flatten().for_each(|item| self.schema(item));
        } else if self.rules.is_google && keyword == "type" {
            self.google_type(value, nullable);
        }
    }

    /// Google has one type, and a word for those that may be null.
    fn google_type(&mut self, types: Value<'d>, nullable: Option<Value<'d>>) {
        let Some(one) = one_or_null(types) else { return };
        self.copy_to(types.span().start);
        self.out.push_str(one.raw());
        if nullable.is_none() {
            self.out.push_str(",\"nullable\":true");
        }
        self.copied = types.span().end - self.begin;
    }

    fn copy_to(&mut self, end: usize) {
        let end = end - self.begin;
        self.out.push_str(self.whole.get(self.copied..end).unwrap_or_default());
        self.copied = end;
    }

    fn cut(&mut self, start: usize, end: usize) {
        self.copy_to(start);
        self.copied = end - self.begin;
    }
}

/// The type of `[T, "null"]` or `["null", T]`.
fn one_or_null(types: Value<'_>) -> Option<Value<'_>> {
    let mut types = types.items()?;
    let (Some(first), Some(second), None) = (types.next(), types.next(), types.next()) else { return None };
    let is_type = |value: Value<'_>| value.kind() == Kind::String && !value.says("null");
    match (first.says("null"), second.says("null")) {
        (false, true) => Some(first).filter(|first| is_type(*first)),
        (true, false) => Some(second).filter(|second| is_type(*second)),
        (true, true) | (false, false) => None,
    }
}
