//! Parts of a text that are known before it is read: they were read where the same bytes stood before.

use std::ops::Range;
use std::sync::Arc;

use super::{Document, Kind, Limits, Node, NodePlace, Value};

/// A shorter part is read in less time than it is looked up.
const LEAST: usize = 64;

/// A value of a text, and its nodes as those of another one.
#[derive(Debug, Clone, PartialEq, Eq)]
struct KnownPart {
    /// Its first byte.
    at: u32,
    nodes: Range<u32>,
}

/// What is known of one text, in its order. Whoever reads the text passes over it.
#[derive(Debug, Clone, Default)]
pub struct KnownParts {
    /// Of the text, in bytes.
    length: usize,
    /// The limits that its depth is within; none where nothing in a part stands deeper than the part.
    limits: Option<Limits>,
    parts: Vec<KnownPart>,
    /// Of the text in which they were read, or of what was copied.
    nodes: Arc<[Node]>,
}

impl Document<'_> {
    /// All of it, for whoever reads the same bytes again.
    pub fn known(&self) -> KnownParts {
        self.known_parts(
            [KnownPart { at: self.nodes[0].start, nodes: 0..self.nodes.len() as u32 }],
            self.text.len(),
        )
    }

    /// What edits leave of it in the text that they make: the values that stand there byte for byte.
    pub(super) fn known_after(&self, edits: &[Moved], edited: &[u8]) -> KnownParts {
        let (mut edits, mut parts, mut number) = (edits.iter().peekable(), Vec::new(), 0);
        // How many bytes were put in and cut out before.
        let (mut added, mut cut) = (0, 0);
        while let Some(node) = self.nodes.get(number as usize) {
            while let Some(edit) = edits.next_if(|edit| edit.range.end <= node.start as usize) {
                added += edit.length;
                cut += edit.range.len();
            }
            let is_edited = edits.peek().is_some_and(|edit| edit.range.start < node.end as usize);
            if is_edited || node.place == NodePlace::Key {
                number += 1;
                continue;
            }
            let at = node.start as usize + added - cut;
            let raw = &self.text.as_bytes()[node.start as usize..node.end as usize];
            let is_there = raw.len() >= LEAST && edited.get(at..).is_some_and(|rest| rest.starts_with(raw));
            if let Some(at) = u32::try_from(at).ok().filter(|_| is_there) {
                parts.push(KnownPart { at, nodes: number..node.next });
            }
            number = node.next;
        }
        self.known_parts(parts, edited.len())
    }

    fn known_parts(&self, parts: impl Into<Vec<KnownPart>>, length: usize) -> KnownParts {
        // In which object a key stands twice is not known of parts.
        let parts = if self.duplicates.is_empty() { parts.into() } else { Vec::new() };
        let nodes = if parts.is_empty() { Arc::default() } else { self.nodes.as_slice().into() };
        KnownParts { length, limits: Some(self.limits), parts, nodes }
    }
}

/// A range of bytes, and how many bytes replace it.
pub(super) struct Moved {
    pub(super) range: Range<usize>,
    pub(super) length: usize,
}

/// Looks up the parts of one text while it is read.
#[derive(Debug)]
pub(super) struct Lookup<'k> {
    parts: &'k [KnownPart],
    nodes: &'k [Node],
}

impl<'k> Lookup<'k> {
    /// In a text of which nothing is known.
    pub(super) const NOTHING: Self = Self { parts: &[], nodes: &[] };

    /// In a text that is read within these limits. Of one with another length, nothing is known.
    pub(super) fn of(known: &'k KnownParts, text: &[u8], limits: Limits) -> Self {
        let fits = text.len() == known.length && known.limits.is_none_or(|within| within == limits);
        if fits { Self { parts: &known.parts, nodes: &known.nodes } } else { Self::NOTHING }
    }

    /// The nodes of the value that begins there; each call asks about a later place.
    pub(super) fn value(&mut self, at: usize) -> Option<(&'k [Node], Range<u32>)> {
        while let Some((first, behind)) = self.parts.split_first() {
            if first.at as usize > at {
                return None;
            }
            self.parts = behind;
            if first.at as usize == at {
                let numbers = first.nodes.clone();
                let nodes = self.nodes.get(numbers.start as usize..numbers.end as usize)?;
                return Some((nodes, numbers));
            }
        }
        None
    }
}

/// Strings of a document that are copied into another text, each with where its opening quote is put.
#[derive(Debug, Default)]
pub struct Copies<'d>(Vec<(usize, Value<'d>)>);

impl<'d> Copies<'d> {
    /// A string is put there, behind all that were put before.
    pub fn add(&mut self, at: usize, string: Value<'d>) {
        if string.kind() == Kind::String && string.node().length() >= LEAST {
            self.0.push((at, string));
        }
    }

    /// Those that stand in the text byte for byte. A token of JSON that is the same as a string that was read is that string,
    /// whoever wrote the text.
    pub fn found_in(&self, text: &[u8]) -> KnownParts {
        let is_there = |(at, string): &&(usize, Value<'d>)| {
            text.get(*at..).is_some_and(|rest| rest.starts_with(string.raw().as_bytes()))
        };
        let found = self.0.iter().filter(is_there).filter_map(|(at, string)| {
            // A node alone stands at its own place.
            Some((u32::try_from(*at).ok()?, Node { next: 0, ..*string.node() }))
        });
        let (places, nodes): (Vec<u32>, Vec<Node>) = found.unzip();
        let parts =
            places.into_iter().zip(0..).map(|(at, number)| KnownPart { at, nodes: number..number + 1 });
        KnownParts { length: text.len(), limits: None, parts: parts.collect(), nodes: nodes.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::read;
    use super::super::{Edits, Limits};
    use super::*;

    fn text() -> String {
        let long = r#"a \"line\" of source\n"#.repeat(9);
        format!(r#"{{"a":"{long}","short":[1,"x"],"{long}":"{}","z":{{"b":"{long}"}}}}"#, "plain ".repeat(30))
    }

    fn nodes(document: &Document<'_>) -> Vec<String> {
        document.nodes.iter().map(|node| format!("{node:?}")).collect()
    }

    fn again<'a>(text: &'a [u8], known: &KnownParts) -> Document<'a> {
        Document::parse_known(text, Limits::default(), known).unwrap()
    }

    #[test]
    fn a_text_that_is_known_is_read_as_any_other() {
        let text = text();
        let document = read(&text);
        assert_eq!(nodes(&again(text.as_bytes(), &document.known())), nodes(&document));
    }

    #[test]
    fn edits_know_the_values_that_they_leave() {
        let text = text();
        let document = read(&text);
        let (root, mut edits) = (document.root(), Edits::new(&document));
        edits.remove(root.get("short").unwrap().unwrap()).unwrap();
        edits.insert(root, "new", r#""value""#).unwrap();
        edits.replace_within(root.get("a").unwrap().unwrap(), 3..5, "other").unwrap();
        let edited = edits.apply();
        let known = edits.known(&edited);
        assert_eq!(known.parts.len(), 2, "neither the one that was edited, nor what it stands in");
        let plain = Document::parse(&edited, Limits::default()).unwrap();
        assert_eq!(nodes(&again(&edited, &known)), nodes(&plain));
    }

    #[test]
    fn copies_are_known_where_the_bytes_are_the_same_and_nowhere_else() {
        let text = text();
        let document = read(&text);
        let string = document.root().get("a").unwrap().unwrap();
        let mut copies = Copies::default();
        copies.add(1, string);
        copies.add(2 + string.raw().len(), string);
        let other = string.raw().replace("source", "sourc\\n");
        let copied = format!("[{},{other}]", string.raw());
        let known = copies.found_in(copied.as_bytes());
        assert_eq!(known.parts.len(), 1);
        let plain = Document::parse(copied.as_bytes(), Limits::default()).unwrap();
        assert_eq!(nodes(&again(copied.as_bytes(), &known)), nodes(&plain));
    }

    #[test]
    fn what_is_known_of_another_text_or_within_other_limits_is_not_used() {
        let (text, short) = (text(), r#"["x"]"#);
        let known = read(&text).known();
        assert_eq!(again(short.as_bytes(), &known).root().raw(), short);
        let shallow = Limits { depth: 1, ..Limits::default() };
        assert!(Document::parse_known(text.as_bytes(), shallow, &known).is_err());
        let few = Limits { nodes: 3, ..Limits::default() };
        let copied = format!("[1,2,{text}]");
        let mut copies = Copies::default();
        let document = read(&text);
        copies.add(6, document.root().get("a").unwrap().unwrap());
        assert!(Document::parse_known(copied.as_bytes(), few, &copies.found_in(copied.as_bytes())).is_err());
    }

    #[test]
    fn of_a_text_with_a_key_twice_nothing_is_known() {
        let text = format!(r#"{{"a":"{0}","a":"{0}"}}"#, "plain ".repeat(30));
        let known = read(&text).known();
        assert!(again(text.as_bytes(), &known).first_duplicate().is_some());
    }

    #[test]
    fn what_stands_inside_of_a_string_is_no_value_of_its_own() {
        let (text, inner) = (text(), format!("[{}]", "1".repeat(80)));
        let outer = format!("[{}]", serde_json::Value::from(inner.as_str()));
        let document = read(&text);
        let parts = vec![KnownPart { at: 2, nodes: 0..document.nodes.len() as u32 }];
        let known = KnownParts { length: outer.len(), ..document.known_parts(parts, 0) };
        assert_eq!(nodes(&again(outer.as_bytes(), &known)), nodes(&read(&outer)));
    }
}
