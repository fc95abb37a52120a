//! Puts the decoded surroundings of escapes together, so that a text with few of them is not copied whole.

use super::{Origin, Steps};

/// How much in front of a word with an escape belongs to it, in bytes: the name that a value is given to.
pub(super) const CONTEXT: usize = 64;

/// A character that an escape stands for: how long the escape is, and the bytes.
pub(super) struct Escape {
    pub(super) length: usize,
    pub(super) bytes: [u8; 4],
    pub(super) count: usize,
}

/// Decoded pieces of a text, each on a line of its own.
#[derive(Default)]
pub(super) struct Assembly {
    pub(super) bytes: Vec<u8>,
    steps: Steps,
}

impl Assembly {
    /// Begins a piece that stands there.
    pub(super) fn begin(&mut self, at: usize) {
        if !self.bytes.is_empty() {
            self.bytes.push(b'\n');
        }
        self.steps.add(self.bytes.len(), at);
    }

    /// Adds bytes that stand so in the text.
    pub(super) fn copy(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Adds bytes that stand for others, of which the next one stands there.
    pub(super) fn replace(&mut self, from: usize, bytes: &[u8], to: usize) {
        self.steps.add(self.bytes.len(), from);
        match bytes {
            [byte] => self.bytes.push(*byte),
            _ => self.bytes.extend_from_slice(bytes),
        }
        self.steps.add(self.bytes.len(), to);
    }

    pub(super) fn into_part(self) -> (Vec<u8>, Origin) {
        (self.bytes, Origin::Steps(self.steps))
    }
}

fn space(text: &[u8], from: usize) -> usize {
    let rest = text.get(from..).unwrap_or_default();
    memchr::memchr3(b' ', b'\n', b'\t', rest).map_or(text.len(), |length| from + length)
}

/// The next sign. Where there are many, they often follow each other.
fn find(text: &[u8], sign: u8, from: usize) -> Option<usize> {
    let rest = text.get(from..).unwrap_or_default();
    if rest.first() == Some(&sign) {
        return Some(from);
    }
    memchr::memchr(sign, rest).map(|length| from + length)
}

/// Decodes the words in which there are escapes, which all begin with one sign. Returns nothing of a text without any.
pub(super) fn undo(text: &[u8], sign: u8, escape: impl Fn(&[u8]) -> Option<Escape>) -> Option<Assembly> {
    let mut assembly = Assembly::default();
    let (mut done, mut is_changed) = (0, false);
    let mut next = memchr::memchr(sign, text);
    while let Some(first) = next {
        let before = text.get(done..first).unwrap_or_default();
        let word = memchr::memrchr3(b' ', b'\n', b'\t', before).map_or(0, |at| at + 1);
        let mut at = done + word.saturating_sub(CONTEXT);
        assembly.begin(at);
        let (mut escaped, mut end) = (first, 0);
        loop {
            if at < escaped {
                assembly.copy(text.get(at..escaped).unwrap_or_default());
            }
            at = escaped + 1;
            match escape(text.get(escaped..).unwrap_or_default()) {
                Some(Escape { length, bytes, count }) => {
                    at = escaped + length;
                    assembly.replace(escaped, bytes.get(..count).unwrap_or_default(), at);
                    is_changed = true;
                }
                None => assembly.copy(&[sign]),
            }
            next = find(text, sign, at);
            // The word ends there or behind it, which need not be known where the next escape is near.
            if next.is_none_or(|next| next > at + CONTEXT) && end < at {
                end = space(text, at);
            }
            match next {
                Some(near) if near <= at.max(end) + CONTEXT => escaped = near,
                _ => break,
            }
        }
        assembly.copy(text.get(at..end).unwrap_or_default());
        done = end;
    }
    is_changed.then_some(assembly)
}
