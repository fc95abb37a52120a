//! A value of a document: its kind, its span and its content.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use super::error::Duplicate;
use super::keys::KeyMarks;
use super::{Document, Kind, Node};

/// A value, or an entry's key, of a document. Copying it copies a reference and a number.
#[derive(Clone, Copy)]
pub struct Value<'d> {
    pub(super) document: &'d Document<'d>,
    pub(super) number: u32,
}

/// An entry of an object.
#[derive(Debug, Clone, Copy)]
pub struct Entry<'d> {
    /// A string.
    pub key: Value<'d>,
    pub value: Value<'d>,
}

impl<'d> Value<'d> {
    pub(super) fn at(document: &'d Document<'d>, number: u32) -> Self {
        Self { document, number }
    }

    pub(super) fn node(self) -> &'d Node {
        self.document.node(self.number)
    }

    pub fn kind(self) -> Kind {
        self.node().kind
    }

    /// Its byte range in the document; a string with its quotes.
    pub fn span(self) -> Range<usize> {
        let node = self.node();
        node.start as usize..node.end as usize
    }

    /// Its bytes as they are in the document.
    pub fn raw(self) -> &'d str {
        &self.document.text[self.span()]
    }

    /// Whether every key of this object is known to be all lower-case ASCII, so that no two differ only in case.
    pub fn has_plain_keys(self) -> bool {
        self.node().marks != KeyMarks::ANY
    }

    /// Whether this is an object that may have this key, in whatever case. Most keys that it does not have are told so.
    #[inline]
    pub fn may_have(self, key: &str) -> bool {
        let node = self.node();
        node.kind == Kind::Object && node.marks.may_have(KeyMarks::of(key.as_bytes()))
    }

    /// The value of an object's entry; `None` if there is no such entry, or this is no object.
    ///
    /// # Errors
    ///
    /// Fails if the key occurs twice: the next reader of the document may take the other value.
    #[inline]
    pub fn get(self, key: &str) -> Result<Option<Self>, Duplicate> {
        if self.may_have(key) { self.search(key) } else { Ok(None) }
    }

    fn search(self, key: &str) -> Result<Option<Self>, Duplicate> {
        let Some(mut entries) = self.entries() else { return Ok(None) };
        let Some(entry) = entries.find(|entry| entry.key.says(key)) else { return Ok(None) };
        if !self.document.duplicates.contains_key(&self.number) {
            return Ok(Some(entry.value));
        }
        match entries.find(|entry| entry.key.says(key)) {
            None => Ok(Some(entry.value)),
            Some(other) => Err(Duplicate { first: entry.key.span().start, again: other.key.span().start }),
        }
    }

    /// The value at the end of a path of keys, from object to object.
    ///
    /// # Errors
    ///
    /// Fails if one of the keys occurs twice in its object.
    pub fn at_path(self, keys: &[&str]) -> Result<Option<Self>, Duplicate> {
        let mut value = self;
        for key in keys {
            let Some(inner) = value.get(key)? else { return Ok(None) };
            value = inner;
        }
        Ok(Some(value))
    }

    /// The first duplicate key of this object; objects in it are not considered.
    pub fn duplicate(self) -> Option<Duplicate> {
        self.document.duplicates.get(&self.number).copied()
    }

    /// The entries of an object, in their order, repeated ones too; `None` if this is no object.
    pub fn entries(self) -> Option<Entries<'d>> {
        (self.kind() == Kind::Object).then(|| Entries(self.children()))
    }

    /// The items of an array, in their order; `None` if this is no array.
    pub fn items(self) -> Option<Items<'d>> {
        (self.kind() == Kind::Array).then(|| Items(self.children()))
    }

    /// The text of a string, without quotes and escapes; `None` if this is no string.
    pub fn text(self) -> Option<Cow<'d, str>> {
        (self.kind() == Kind::String).then(|| self.document.inside(self.number).unescaped())
    }

    /// Whether it is a string with exactly this text, however it is escaped. Allocates nothing.
    #[inline]
    pub fn says(self, text: &str) -> bool {
        let node = self.node();
        if node.kind != Kind::String {
            return false;
        }
        if node.is_escaped() {
            return self.document.inside(self.number).says(text);
        }
        let inside = node.start as usize + 1..node.end as usize - 1;
        self.document.text.as_bytes().get(inside) == Some(text.as_bytes())
    }

    /// A number as it is written: it may be larger or more exact than any Rust type.
    pub fn number_text(self) -> Option<&'d str> {
        (self.kind() == Kind::Number).then(|| self.raw())
    }

    pub fn as_bool(self) -> Option<bool> {
        (self.kind() == Kind::Bool).then(|| self.raw() == "true")
    }

    pub fn is_null(self) -> bool {
        self.kind() == Kind::Null
    }

    fn children(self) -> Children<'d> {
        Children { document: self.document, next: self.number + 1, end: self.node().next }
    }
}

/// Shows the span, never the content: a body holds what people wrote.
impl fmt::Debug for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} at {:?}", self.kind(), self.span())
    }
}

/// The items of an array.
#[derive(Debug, Clone)]
pub struct Items<'d>(Children<'d>);

impl<'d> Iterator for Items<'d> {
    type Item = Value<'d>;

    fn next(&mut self) -> Option<Value<'d>> {
        self.0.next()
    }
}

/// The entries of an object.
#[derive(Debug, Clone)]
pub struct Entries<'d>(Children<'d>);

impl<'d> Iterator for Entries<'d> {
    type Item = Entry<'d>;

    fn next(&mut self) -> Option<Entry<'d>> {
        Some(Entry { key: self.0.next()?, value: self.0.next()? })
    }
}

/// The direct children of an array or object, keys and values alike.
#[derive(Debug, Clone)]
struct Children<'d> {
    document: &'d Document<'d>,
    next: u32,
    end: u32,
}

impl<'d> Iterator for Children<'d> {
    type Item = Value<'d>;

    fn next(&mut self) -> Option<Value<'d>> {
        let child = (self.next < self.end).then(|| Value::at(self.document, self.next))?;
        self.next = child.node().next;
        Some(child)
    }
}
