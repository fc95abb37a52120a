//! The parser: one pass over the bytes, an explicit stack, one node per value.

use std::collections::BTreeMap;
use std::ops::Range;

use super::error::{Duplicate, JsonError, Reason};
use super::keys::{KeyMarks, find_duplicate};
use super::known::Lookup;
use super::{Document, Kind, Limits, Node, NodePlace, string};

/// The fewest bytes per node in usual bodies, by which the nodes are allocated at once.
const BYTES_PER_NODE: usize = 64;
/// What a short document needs, so that nothing is allocated twice for it.
const FEW_NODES: usize = 32;
const FEW_OPEN: usize = 8;
const FEW_KEYS: usize = 16;

/// Memory that is reused from document to document, so that a stream of small ones allocates nothing.
#[derive(Debug, Default)]
pub struct Scratch {
    nodes: Vec<Node>,
    open: Vec<OpenNode>,
    keys: Vec<u32>,
}

impl Scratch {
    /// Takes back the memory of a document.
    pub(super) fn keep(&mut self, mut nodes: Vec<Node>) {
        if nodes.capacity() <= MOST_KEPT {
            nodes.clear();
            self.nodes = nodes;
        }
    }
}

/// The most nodes whose memory is kept, so that one large document does not cost memory forever.
const MOST_KEPT: usize = 4096;

/// Reads a document; see [`Document::parse_with`]. `known` is what is known of it.
pub(super) fn parse<'a>(
    bytes: &'a [u8],
    limits: Limits,
    known: Lookup<'_>,
    scratch: &mut Scratch,
) -> Result<Document<'a>, JsonError> {
    #[cfg(test)]
    super::testing::count(bytes.len());
    if u32::try_from(bytes.len()).is_err() {
        return Err(JsonError::new(u32::MAX as usize, Reason::TooLong));
    }
    let text = checked(bytes)?;
    if text.starts_with('\u{feff}') {
        return Err(JsonError::new(0, Reason::ByteOrderMark));
    }
    let mut nodes = std::mem::take(&mut scratch.nodes);
    nodes.reserve((bytes.len() / BYTES_PER_NODE).max(FEW_NODES).min(limits.nodes));
    scratch.open.reserve(FEW_OPEN);
    scratch.keys.reserve(FEW_KEYS);
    let mut parser = Parser {
        text,
        bytes,
        at: 0,
        nodes,
        open: std::mem::take(&mut scratch.open),
        keys: std::mem::take(&mut scratch.keys),
        duplicates: BTreeMap::new(),
        limits,
        known,
    };
    let mut step = ParseStep::Value;
    while step != ParseStep::End {
        step = match step {
            ParseStep::Value => parser.value()?,
            ParseStep::Key => parser.key()?,
            ParseStep::After => parser.after()?,
            ParseStep::End => ParseStep::End,
        };
    }
    // Both are empty once a document was read to its end.
    (scratch.open, scratch.keys) = (parser.open, parser.keys);
    Ok(Document { text, nodes: parser.nodes, duplicates: parser.duplicates, limits })
}

/// The bytes as text.
///
/// # Errors
/// Where they are not UTF-8.
fn checked(bytes: &[u8]) -> Result<&str, JsonError> {
    // On long bodies of coding agents, which are not all ASCII, the standard library's check takes an eighth of the
    // time.
    simdutf8::basic::from_utf8(bytes).or_else(|_| {
        // The slower check knows the offset.
        str::from_utf8(bytes).map_err(|error| JsonError::new(error.valid_up_to(), Reason::NotUtf8))
    })
}

/// What is expected next.
#[derive(PartialEq, Eq)]
enum ParseStep {
    Value,
    /// The key of an object's entry, and its colon.
    Key,
    /// What may follow a value: a comma or the end of what it stands in.
    After,
    End,
}

struct Parser<'a, 'k> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    nodes: Vec<Node>,
    /// The arrays and objects that are not closed yet.
    open: Vec<OpenNode>,
    /// The keys of all open objects, the innermost last.
    keys: Vec<u32>,
    duplicates: BTreeMap<u32, Duplicate>,
    limits: Limits,
    known: Lookup<'k>,
}

#[derive(Debug, Clone, Copy)]
struct OpenNode {
    node: u32,
    is_object: bool,
    /// How many of [`Parser::keys`] are of objects around this.
    keys: usize,
}

impl Parser<'_, '_> {
    fn value(&mut self) -> Result<ParseStep, JsonError> {
        let first = self.next_byte()?;
        if let Some((nodes, numbers)) = self.known.value(self.at) {
            return self.take_over(nodes, &numbers);
        }
        match first {
            b'"' => self.string(self.place_of_value()),
            b'{' => return self.open(Kind::Object, b'}', ParseStep::Key),
            b'[' => return self.open(Kind::Array, b']', ParseStep::Value),
            b'-' | b'0'..=b'9' => self.number(),
            b't' => self.literal(b"true", Kind::Bool),
            b'f' => self.literal(b"false", Kind::Bool),
            b'n' => self.literal(b"null", Kind::Null),
            _ => Err(self.error(Reason::Value)),
        }?;
        Ok(ParseStep::After)
    }

    fn key(&mut self) -> Result<ParseStep, JsonError> {
        if self.next_byte()? != b'"' {
            return Err(self.error(Reason::Key));
        }
        self.keys.push(self.node_count());
        self.string(NodePlace::Key)?;
        if self.next_byte()? != b':' {
            return Err(self.error(Reason::Colon));
        }
        self.at += 1;
        Ok(ParseStep::Value)
    }

    fn after(&mut self) -> Result<ParseStep, JsonError> {
        self.skip_whitespace();
        let Some(&OpenNode { is_object, .. }) = self.open.last() else {
            let is_end = self.at == self.bytes.len();
            return if is_end { Ok(ParseStep::End) } else { Err(self.error(Reason::Trailing)) };
        };
        let step = match (self.next_byte()?, is_object) {
            (b',', true) => ParseStep::Key,
            (b',', false) => ParseStep::Value,
            (b'}', true) | (b']', false) => return Ok(self.close()),
            (_, true) => return Err(self.error(Reason::Entry)),
            (_, false) => return Err(self.error(Reason::Item)),
        };
        self.at += 1;
        Ok(step)
    }

    fn open(&mut self, kind: Kind, closing: u8, first: ParseStep) -> Result<ParseStep, JsonError> {
        if self.open.len() >= self.limits.depth {
            return Err(self.error(Reason::TooDeep));
        }
        let (node, keys) = (self.node_count(), self.keys.len());
        self.push(kind, self.place_of_value(), self.at + 1, false)?;
        self.open.push(OpenNode { node, is_object: kind == Kind::Object, keys });
        let is_empty = self.next_byte()? == closing;
        Ok(if is_empty { self.close() } else { first })
    }

    /// Closes the innermost array or object; the parser is at its last byte.
    fn close(&mut self) -> ParseStep {
        self.at += 1;
        let next = self.node_count();
        if let Some(open) = self.open.pop() {
            let marks = self.keys[open.keys..].iter().map(|key| self.marks_of(*key));
            let marks = marks.fold(KeyMarks::NONE, KeyMarks::and);
            let node = &mut self.nodes[open.node as usize];
            node.end = self.at as u32;
            node.next = next;
            node.marks = marks;
            let duplicate = find_duplicate(self.text, &self.nodes, &self.keys[open.keys..]);
            if let Some(duplicate) = duplicate {
                self.duplicates.insert(open.node, duplicate);
            }
            self.keys.truncate(open.keys);
        }
        ParseStep::After
    }

    /// The mark of a key; all of them where a character has more than one case, or may have one (by an escape or outside
    /// of ASCII).
    fn marks_of(&self, key: u32) -> KeyMarks {
        let node = &self.nodes[key as usize];
        let is_cased = |byte: &u8| byte.is_ascii_uppercase() | !byte.is_ascii();
        let text = &self.bytes[node.start as usize + 1..node.end as usize - 1];
        // Without an early exit this compiles to vector instructions.
        let is_other = node.is_escaped() || text.iter().fold(false, |found, byte| found | is_cased(byte));
        if is_other { KeyMarks::ANY } else { KeyMarks::of(text) }
    }

    fn string(&mut self, place: NodePlace) -> Result<(), JsonError> {
        let string::StringEnd { end, escaped } = string::find_end(self.bytes, self.at + 1)?;
        self.push(Kind::String, place, end, escaped)
    }

    /// Takes over the nodes of a value that begins here and is known.
    fn take_over(&mut self, nodes: &[Node], numbers: &Range<u32>) -> Result<ParseStep, JsonError> {
        if self.nodes.len() + nodes.len() > self.limits.nodes {
            return Err(self.error(Reason::TooMany));
        }
        let (place, first) = (self.place_of_value(), self.node_count());
        let start = nodes.first().map_or(0, |node| node.start);
        let moved = |at: u32| (at - start).wrapping_add(self.at as u32);
        self.nodes.extend(nodes.iter().map(|node| Node {
            start: moved(node.start),
            end: moved(node.end),
            // Of a copied string the number is not its own.
            next: if nodes.len() == 1 { first + 1 } else { node.next - numbers.start + first },
            ..*node
        }));
        if let Some(node) = self.nodes.get_mut(first as usize) {
            node.place = place;
            self.at = node.end as usize;
        }
        Ok(ParseStep::After)
    }

    fn literal(&mut self, literal: &[u8], kind: Kind) -> Result<(), JsonError> {
        if !self.bytes[self.at..].starts_with(literal) {
            return Err(self.error(Reason::Value));
        }
        self.push(kind, self.place_of_value(), self.at + literal.len(), false)
    }

    /// Reads a number (RFC 8259, section 6). The next step checks what follows it.
    fn number(&mut self) -> Result<(), JsonError> {
        let mut end = self.at + usize::from(self.bytes[self.at] == b'-');
        end = match self.bytes.get(end) {
            Some(b'0') => end + 1,
            _ => self.digits(end)?,
        };
        if self.bytes.get(end) == Some(&b'.') {
            end = self.digits(end + 1)?;
        }
        if matches!(self.bytes.get(end), Some(b'e' | b'E')) {
            let signed = matches!(self.bytes.get(end + 1), Some(b'+' | b'-'));
            end = self.digits(end + 1 + usize::from(signed))?;
        }
        self.push(Kind::Number, self.place_of_value(), end, false)
    }

    /// The offset after the digits at `from`, of which there must be at least one.
    fn digits(&self, from: usize) -> Result<usize, JsonError> {
        let digits = self.bytes[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let reason = if from == self.bytes.len() { Reason::End } else { Reason::Number };
        if digits == 0 { Err(JsonError::new(from, reason)) } else { Ok(from + digits) }
    }

    /// Records a node from here to `end`, and moves there.
    fn push(&mut self, kind: Kind, place: NodePlace, end: usize, escaped: bool) -> Result<(), JsonError> {
        if self.nodes.len() >= self.limits.nodes {
            return Err(self.error(Reason::TooMany));
        }
        // Offsets fit: the length of the text does.
        let (start, end, next) = (self.at as u32, end as u32, self.node_count() + 1);
        let marks = if escaped { KeyMarks::ANY } else { KeyMarks::NONE };
        self.nodes.push(Node { start, end, next, kind, place, marks });
        self.at = end as usize;
        Ok(())
    }

    fn place_of_value(&self) -> NodePlace {
        match self.open.last() {
            None => NodePlace::Root,
            Some(OpenNode { is_object: true, .. }) => NodePlace::Member,
            Some(OpenNode { is_object: false, .. }) => NodePlace::Item,
        }
    }

    /// The number of the next node. There are no more nodes than bytes.
    fn node_count(&self) -> u32 {
        self.nodes.len() as u32
    }

    /// The next byte that is no whitespace, which is not consumed.
    fn next_byte(&mut self) -> Result<u8, JsonError> {
        self.skip_whitespace();
        self.bytes.get(self.at).copied().ok_or(self.error(Reason::End))
    }

    fn skip_whitespace(&mut self) {
        while matches!(self.bytes.get(self.at), Some(b' ' | b'\n' | b'\r' | b'\t')) {
            self.at += 1;
        }
    }

    fn error(&self, reason: Reason) -> JsonError {
        JsonError::new(self.at, reason)
    }
}
