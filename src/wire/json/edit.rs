//! Edits of a document by byte range: all other bytes are copied unchanged.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::error::{Duplicate, JsonError};
use super::known::Moved;
use super::{Document, Kind, KnownParts, Limits, NodePlace, Value};

/// Why an edit is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    #[error("another edit changes the same bytes")]
    Overlap,
    #[error("the value is of another document")]
    Foreign,
    #[error("the whole document cannot be removed")]
    Root,
    #[error("a key is edited with the value of its entry")]
    Key,
    #[error("entries are added to objects, items to arrays")]
    Kind,
    #[error("the object has this key already")]
    Exists,
    #[error("the string has no such part")]
    Range,
    #[error("what is put in is no JSON: {0}")]
    Json(#[from] JsonError),
    #[error(transparent)]
    Duplicate(#[from] Duplicate),
}

/// Edits of one document, gathered and then made at once.
///
/// The result depends on the edits, not on the order in which they were gathered, but for what is added to one and
/// the same array or object: that stands in the order of the calls. New text is checked, so that the result is JSON
/// again. A removal takes every edit inside of its range with it, whichever came first; whether two of those that
/// overlap are refused depends on whether they came before it.
#[derive(Debug)]
pub struct Edits<'d> {
    document: &'d Document<'d>,
    /// Removals and replacements, by their first byte. No two overlap.
    spans: BTreeMap<u32, Span>,
    /// Additions to an array or object, by the byte before which they stand.
    additions: BTreeMap<u32, Addition>,
}

#[derive(Debug)]
struct Span {
    end: u32,
    change: Change,
}

#[derive(Debug)]
enum Change {
    /// Removes an item or entry with a comma. `next` is the first byte of the item or entry after it.
    Remove {
        next: Option<u32>,
    },
    Replace(String),
}

#[derive(Debug)]
struct Addition {
    to_empty: bool,
    keys: Vec<String>,
    /// The text of the items, or of the entries with their keys.
    parts: Vec<String>,
}

impl<'d> Edits<'d> {
    pub fn new(document: &'d Document<'d>) -> Self {
        Self { document, spans: BTreeMap::new(), additions: BTreeMap::new() }
    }

    /// Whether there are no edits: the original bytes are the result.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty() && self.additions.is_empty()
    }

    /// Removes an array's item or, by its value, an object's entry.
    ///
    /// The bytes up to the next item or entry are removed with it; of the last one, the bytes after the one before. An
    /// array or object that loses all its items keeps the whitespace at both ends.
    ///
    /// # Errors
    ///
    /// For the root, a key, a value of another document, and where another edit replaces an array or object around it.
    pub fn remove(&mut self, value: Value<'d>) -> Result<(), EditError> {
        self.check(value)?;
        let node = value.node();
        let first = match node.place {
            NodePlace::Root => return Err(EditError::Root),
            NodePlace::Key => return Err(EditError::Key),
            NodePlace::Item => node,
            NodePlace::Member => self.document.node(value.number - 1),
        };
        let is_followed = self.rest_after(node.end).first() == Some(&b',');
        let next = is_followed.then(|| self.document.node(node.next).start);
        self.put(first.start, node.end, Change::Remove { next })
    }

    /// Replaces a value by other JSON.
    ///
    /// # Errors
    ///
    /// For a key, a value of another document, text that is no JSON or has a key twice, and where another edit
    /// changes the same bytes.
    pub fn replace(&mut self, value: Value<'d>, json: impl Into<String>) -> Result<(), EditError> {
        self.check(value)?;
        let (node, json) = (value.node(), json.into());
        if node.place == NodePlace::Key {
            return Err(EditError::Key);
        }
        check_json(&json)?;
        self.put(node.start, node.end, Change::Replace(json))
    }

    /// Replaces a part of a string, or of a key, by other text; `range` is one of its text, without quotes and escapes.
    ///
    /// # Errors
    ///
    /// For what is no string or has no such part, a value of another document, and where another edit changes the same
    /// bytes.
    pub fn replace_within(
        &mut self,
        value: Value<'d>,
        range: Range<usize>,
        by: &str,
    ) -> Result<(), EditError> {
        self.check(value)?;
        if value.kind() != Kind::String {
            return Err(EditError::Kind);
        }
        let raw = self.document.inside(value.number).raw_range(&range).ok_or(EditError::Range)?;
        let json = serde_json::Value::from(by).to_string();
        let escaped = json.get(1..json.len() - 1).unwrap_or_default().to_owned();
        // Offsets fit: the length of the text does.
        let first = value.node().start + 1;
        self.put(first + raw.start as u32, first + raw.end as u32, Change::Replace(escaped))
    }

    /// Whether another edit removes or replaces this value or key, or what it stands in.
    pub fn drops(&self, value: Value<'d>) -> bool {
        let node = value.node();
        let around = self.spans.range(..=node.start).next_back();
        around.is_some_and(|(_, span)| span.end >= node.end)
    }

    /// Whether an edit is of this value, of what it stands in, or of something in it.
    pub fn touches(&self, value: Value<'d>) -> bool {
        let node = value.node();
        self.drops(value)
            || self.spans.range(node.start..node.end).next().is_some()
            || self.additions.range(node.start..node.end).next().is_some()
    }

    /// Adds an entry at an object's end.
    ///
    /// # Errors
    ///
    /// For what is no object, a value of another document, a key that the object has or was given, even where its
    /// entry is removed (replace the value instead), text that is no JSON or has a key twice, and where another
    /// edit replaces the object.
    pub fn insert(&mut self, object: Value<'d>, key: &str, json: &str) -> Result<(), EditError> {
        self.check(object)?;
        if object.get(key)?.is_some() {
            return Err(EditError::Exists);
        }
        check_json(json)?;
        let Some(addition) = self.addition(object, Kind::Object)? else { return Ok(()) };
        if addition.keys.iter().any(|added| added == key) {
            return Err(EditError::Exists);
        }
        addition.keys.push(key.to_owned());
        addition.parts.push(format!("{}:{json}", serde_json::Value::from(key)));
        Ok(())
    }

    /// Adds an item at an array's end.
    ///
    /// # Errors
    ///
    /// For what is no array, a value of another document, text that is no JSON or has a key twice, and where another
    /// edit replaces the array.
    pub fn append(&mut self, array: Value<'d>, json: impl Into<String>) -> Result<(), EditError> {
        self.check(array)?;
        let json = json.into();
        check_json(&json)?;
        if let Some(addition) = self.addition(array, Kind::Array)? {
            addition.parts.push(json);
        }
        Ok(())
    }

    /// Returns the document with all edits applied.
    pub fn apply(&self) -> Vec<u8> {
        let pieces = self.pieces();
        let added: usize = pieces.iter().map(|piece| piece.text.len()).sum();
        let bytes = self.document.bytes();
        let mut edited = Vec::with_capacity(bytes.len() + added);
        let mut copied = 0;
        for piece in &pieces {
            edited.extend_from_slice(&bytes[copied..piece.start]);
            edited.extend_from_slice(piece.text.as_bytes());
            copied = piece.end;
        }
        edited.extend_from_slice(&bytes[copied..]);
        edited
    }

    /// What is known of the text that [`Self::apply`] returned: all that no edit touches.
    pub fn known(&self, edited: &[u8]) -> KnownParts {
        let pieces = self.pieces();
        let moved =
            pieces.iter().map(|piece| Moved { range: piece.start..piece.end, length: piece.text.len() });
        self.document.known_after(&moved.collect::<Vec<_>>(), edited)
    }

    fn check(&self, value: Value<'_>) -> Result<(), EditError> {
        if std::ptr::eq(value.document, self.document) { Ok(()) } else { Err(EditError::Foreign) }
    }

    fn put(&mut self, start: u32, end: u32, change: Change) -> Result<(), EditError> {
        // Ranges of JSON values are nested or apart: the last one that begins no later is the only one around this.
        let around = self.spans.range(..=start).next_back().filter(|(_, other)| other.end >= end);
        let is_removal = matches!(change, Change::Remove { .. });
        match around.map(|(at, other)| (*at == start && other.end == end, &other.change)) {
            Some((_, Change::Remove { .. })) => return Ok(()),
            Some((is_same, Change::Replace(_))) if !is_same || !is_removal => return Err(EditError::Overlap),
            Some(_) | None => {}
        }
        if is_removal {
            forget(&mut self.spans, start..end);
            forget(&mut self.additions, start + 1..end);
        } else if self.spans.range(start..end).next().is_some()
            || self.additions.range(start + 1..end).next().is_some()
        {
            return Err(EditError::Overlap);
        }
        self.spans.insert(start, Span { end, change });
        Ok(())
    }

    /// The additions to this array or object; none where a removal takes it away.
    fn addition(&mut self, to: Value<'d>, kind: Kind) -> Result<Option<&mut Addition>, EditError> {
        if to.kind() != kind {
            return Err(EditError::Kind);
        }
        let node = to.node();
        let to_empty = node.next == to.number + 1;
        let at = if to_empty { node.start + 1 } else { self.before(node.end - 1) };
        let around = self.spans.range(..at).next_back().filter(|(_, other)| other.end > at);
        match around.map(|(_, other)| &other.change) {
            Some(Change::Remove { .. }) => return Ok(None),
            Some(Change::Replace(_)) => return Err(EditError::Overlap),
            None => {}
        }
        let nothing = || Addition { to_empty, keys: Vec::new(), parts: Vec::new() };
        Ok(Some(self.additions.entry(at).or_insert_with(nothing)))
    }

    /// Returns each change as a range of bytes and its new text, in the order of the document.
    fn pieces(&self) -> Vec<Piece<'_>> {
        let cuts = self.cuts();
        let emptied: BTreeSet<u32> = cuts.iter().filter(|cut| cut.empties).map(|cut| cut.end).collect();
        let replaced = self.spans.iter().filter_map(|(start, span)| match &span.change {
            Change::Replace(json) => Some(Piece::new(*start, span.end, Cow::Borrowed(json))),
            Change::Remove { .. } => None,
        });
        let added = self.additions.iter().map(|(at, addition)| {
            let comma = if addition.to_empty || emptied.contains(at) { "" } else { "," };
            Piece::new(*at, *at, Cow::Owned(format!("{comma}{}", addition.parts.join(","))))
        });
        let cut = cuts.iter().map(|cut| Piece::new(cut.start, cut.end, Cow::Borrowed("")));
        let mut pieces: Vec<Piece<'_>> = cut.chain(replaced).chain(added).collect();
        // No two begin at the same byte: additions stand after a value or an opening bracket.
        pieces.sort_unstable_by_key(|piece| piece.start);
        pieces
    }

    /// Returns the ranges that removals cut: neighbours are cut as one, each with the comma that would be too many.
    fn cuts(&self) -> Vec<Cut> {
        let mut cuts: Vec<Cut> = Vec::new();
        for (&first, span) in &self.spans {
            let Change::Remove { next } = span.change else { continue };
            let mut cut = Cut { start: first, end: next.unwrap_or(span.end), empties: false };
            if let Some(neighbour) = cuts.pop_if(|earlier| earlier.end == first) {
                cut.start = neighbour.start;
            }
            if next.is_none() {
                let before = self.before(cut.start);
                match self.document.bytes()[before as usize - 1] {
                    b',' => cut.start = self.before(before - 1),
                    _ => cut.empties = true,
                }
            }
            cuts.push(cut);
        }
        cuts
    }

    /// Returns where the whitespace before `at` begins.
    fn before(&self, at: u32) -> u32 {
        self.document.bytes()[..at as usize].trim_ascii_end().len() as u32
    }

    /// Returns the bytes that follow, without leading whitespace.
    fn rest_after(&self, end: u32) -> &[u8] {
        self.document.bytes()[end as usize..].trim_ascii_start()
    }
}

/// A range of bytes that is cut from one array or object.
struct Cut {
    start: u32,
    end: u32,
    /// Whether the array or object is left empty.
    empties: bool,
}

/// A range of bytes, and the text that replaces it.
struct Piece<'e> {
    start: usize,
    end: usize,
    text: Cow<'e, str>,
}

impl<'e> Piece<'e> {
    fn new(start: u32, end: u32, text: Cow<'e, str>) -> Self {
        Self { start: start as usize, end: end as usize, text }
    }
}

fn forget<T>(edits: &mut BTreeMap<u32, T>, inside: Range<u32>) {
    while let Some(at) = edits.range(inside.clone()).next().map(|(at, _)| *at) {
        edits.remove(&at);
    }
}

fn check_json(json: &str) -> Result<(), EditError> {
    let document = Document::parse(json.as_bytes(), Limits::default())?;
    document.first_duplicate().map_or(Ok(()), |duplicate| Err(duplicate.into()))
}
