//! Reads an output line by line, and keeps the numbers of the lines that say what failed.

use std::collections::HashSet;

use super::catalogue::{Kind, Kinds};

/// How much a line says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Weight {
    Failure,
    Detail,
}

/// A line that may still come to count: its number and its text.
type Candidate<'a> = (usize, &'a str);

/// What was read so far. It holds texts of at most twice as many lines as are asked for.
#[derive(Debug)]
pub(super) struct Scan<'a> {
    most: usize,
    failures: Vec<usize>,
    details: Vec<usize>,
    kept: HashSet<&'a str>,
    /// How much the line above counts, if it does, and whether it stands below another.
    above: Option<(Weight, bool)>,
    /// Whether the line above is a head whose words stand in this one.
    is_message: bool,
    heading: Option<Candidate<'a>>,
    /// The indentation of the line that began a block, and the last frame of the block.
    block: Option<(usize, Option<Candidate<'a>>)>,
}

impl<'a> Scan<'a> {
    pub(super) fn new(most: usize) -> Self {
        Self {
            most,
            failures: Vec::new(),
            details: Vec::new(),
            kept: HashSet::new(),
            above: None,
            is_message: false,
            heading: None,
            block: None,
        }
    }

    /// Whether no line that follows can count.
    pub(super) fn is_full(&self) -> bool {
        self.failures.len() >= self.most
    }

    /// Reads the next line: its number, its text, what of it is looked at, and what the patterns say of that.
    pub(super) fn read(&mut self, number: usize, line: &'a str, plain: &[u8], kinds: Kinds) {
        let ends_block = self.ends_block(number, line, plain, kinds);
        let is_message = std::mem::replace(&mut self.is_message, false) && !is_blank(plain);
        let weight = if ends_block || is_message || kinds.is_failure() {
            Some((Weight::Failure, false))
        } else if kinds.counts_alone() {
            Some((Weight::Detail, false))
        } else {
            self.below(kinds)
        };
        self.above = weight;
        if kinds.has(Kind::Heading) {
            self.heading = Some((number, line));
        }
        let Some((weight, _)) = weight else { return };
        self.is_message = kinds.has(Kind::Message);
        if kinds.has(Kind::Headed)
            && let Some(heading) = self.heading.take()
        {
            self.keep(heading, weight);
        }
        self.keep((number, line), weight);
    }

    /// The numbers of the lines that were kept, in their order.
    pub(super) fn selected(mut self) -> Vec<usize> {
        let room = self.most.saturating_sub(self.failures.len());
        self.failures.extend(self.details.iter().take(room));
        self.failures.sort_unstable();
        self.failures.truncate(self.most);
        self.failures
    }

    /// Whether a line ends a block, and so says what the block is about; its last frame is kept with it.
    fn ends_block(&mut self, number: usize, line: &'a str, plain: &[u8], kinds: Kinds) -> bool {
        if kinds.has(Kind::Block) {
            self.block = Some((indentation(plain), None));
            return false;
        }
        let Some((indented, frame)) = &mut self.block else { return false };
        if kinds.has(Kind::Frame) {
            *frame = Some((number, line));
        }
        if !is_blank(plain) && indentation(plain) > *indented {
            return false;
        }
        let frame = frame.take();
        self.block = None;
        if let Some(frame) = frame.filter(|_| !is_blank(plain)) {
            self.keep(frame, Weight::Failure);
        }
        !is_blank(plain)
    }

    /// How much a line counts by what stands above it.
    fn below(&self, kinds: Kinds) -> Option<(Weight, bool)> {
        let (weight, is_below) = self.above?;
        let counts = kinds.has(Kind::More) || (kinds.has(Kind::Below) && !is_below);
        counts.then_some((weight, true))
    }

    fn keep(&mut self, (number, line): Candidate<'a>, weight: Weight) {
        let kept = match weight {
            Weight::Failure => &mut self.failures,
            Weight::Detail => &mut self.details,
        };
        if kept.len() < self.most && self.kept.insert(line) {
            kept.push(number);
        }
    }
}

/// How far a line is indented; what groups of exceptions draw in front of their lines counts as indentation.
fn indentation(line: &[u8]) -> usize {
    line.iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'|' | b'+')).count()
}

fn is_blank(line: &[u8]) -> bool {
    line.iter().all(u8::is_ascii_whitespace)
}
