//! Reads JSON without copying it: a strict reader that keeps the byte span of every value, and edits by span.
//!
//! A body is parsed once into a flat array of nodes that point into it, and is edited by cutting and replacing
//! spans of it, so that every byte outside an edit stays as it was: number formats, escapes, whitespace, the order
//! of keys, fields that nobody here knows.
//!
//! ```text
//! let document = Document::parse(&body, Limits::default())?;
//! let mut edits = Edits::new(&document);
//! if let Some(tools) = document.root().get("tools")?.and_then(Value::items) {
//!     for tool in tools {
//!         if tool.get("type")?.is_some_and(|kind| kind.says("web_search_20250305")) {
//!             edits.remove(tool)?;
//!         }
//!     }
//! }
//! let body = if edits.is_empty() { body } else { edits.apply() };
//! ```
//!
//! Accepted is RFC 8259 and nothing more: UTF-8 without a byte order mark, no comment, no trailing comma, no raw
//! control character in a string, no half of a surrogate pair. Values may nest [`Limits::depth`] deep; the reader
//! itself does not recurse. A number may be of any size, and `\u0000` is a character like any other.
//!
//! Parsers disagree about a key that occurs twice in an object. Such an object is read and marked:
//! [`Document::first_duplicate`] reports it for the whole document, [`Value::duplicate`] for one object, and
//! [`Value::get`] refuses to choose. Keys are compared after unescaping.

mod edit;
#[cfg(test)]
mod edit_tests;
mod error;
mod keys;
mod known;
mod parse;
#[cfg(test)]
mod property_tests;
#[cfg(test)]
mod recording_tests;
mod string;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod value;

use std::collections::BTreeMap;
use std::fmt;

pub use edit::{EditError, Edits};
pub use error::{Duplicate, JsonError, Reason};
use keys::KeyMarks;
use known::Lookup;
pub use known::{Copies, KnownParts};
pub use parse::Scratch;
pub use string::{string_length, unescape};
pub use value::{Entries, Entry, Items, Value};

/// The bounds of one document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How many arrays and objects may stand in one another.
    pub depth: usize,
    /// How many values and keys there may be. Each costs 16 bytes of memory; while a document is read, up to 96.
    pub nodes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { depth: 128, nodes: 2 << 20 }
    }
}

/// What a value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    Null,
    Bool,
    Number,
    String,
    Array,
    Object,
}

/// A document that was read whole, over the bytes that it was read from.
pub struct Document<'a> {
    text: &'a str,
    /// Every value and key, in the order of their first bytes: the root first, an entry's key before its value.
    nodes: Vec<Node>,
    /// The objects in which a key stands twice, by node.
    duplicates: BTreeMap<u32, Duplicate>,
    /// Those that it is within.
    limits: Limits,
}

/// One value or key: 16 bytes.
#[derive(Debug, Clone, Copy)]
struct Node {
    /// Its first byte; of a string, the opening quote.
    start: u32,
    /// The byte after its last.
    end: u32,
    /// The node after it and all that stands in it.
    next: u32,
    kind: Kind,
    place: NodePlace,
    /// Of an object, which keys it may have; of a string with escapes, [`KeyMarks::ANY`].
    marks: KeyMarks,
}

impl Node {
    /// In bytes; of a string, with its quotes.
    fn length(&self) -> usize {
        (self.end - self.start) as usize
    }

    /// Whether it is a string with escapes.
    fn is_escaped(&self) -> bool {
        self.kind == Kind::String && self.marks == KeyMarks::ANY
    }
}

/// The position of a node in its parent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NodePlace {
    Root,
    /// In an array.
    Item,
    /// Before the colon of an object's entry.
    Key,
    /// After the colon of an object's entry.
    Member,
}

impl<'a> Document<'a> {
    /// Reads a document of at most 4 GiB in one pass.
    ///
    /// # Errors
    ///
    /// Fails if the bytes are no JSON (RFC 8259), or exceed a limit. Duplicate keys are no error here.
    pub fn parse(bytes: &'a [u8], limits: Limits) -> Result<Self, JsonError> {
        parse::parse(bytes, limits, Lookup::NOTHING, &mut Scratch::default())
    }

    /// The same of a text of which parts are known.
    ///
    /// # Errors
    ///
    /// As for [`Self::parse`].
    pub fn parse_known(bytes: &'a [u8], limits: Limits, known: &KnownParts) -> Result<Self, JsonError> {
        parse::parse(bytes, limits, Lookup::of(known, bytes, limits), &mut Scratch::default())
    }

    /// The same, reusing memory; [`Self::give_back`] returns it.
    ///
    /// # Errors
    ///
    /// As for [`Self::parse`].
    pub fn parse_with(bytes: &'a [u8], limits: Limits, scratch: &mut Scratch) -> Result<Self, JsonError> {
        parse::parse(bytes, limits, Lookup::NOTHING, scratch)
    }

    /// Returns the document's memory for the next one.
    pub fn give_back(self, scratch: &mut Scratch) {
        scratch.keep(self.nodes);
    }

    /// The outermost value.
    pub fn root(&self) -> Value<'_> {
        Value::at(self, 0)
    }

    /// The first duplicate key of the document, which parsers may read in two ways.
    pub fn first_duplicate(&self) -> Option<Duplicate> {
        self.duplicates.values().copied().min_by_key(|duplicate| duplicate.again)
    }

    /// The bytes that it was read from.
    pub fn bytes(&self) -> &'a [u8] {
        self.text.as_bytes()
    }

    fn node(&self, node: u32) -> &Node {
        &self.nodes[node as usize]
    }
}

/// Shows sizes, never content: a body holds what people wrote.
impl fmt::Debug for Document<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Document")
            .field("bytes", &self.text.len())
            .field("nodes", &self.nodes.len())
            .field("first_duplicate", &self.first_duplicate())
            .finish()
    }
}
