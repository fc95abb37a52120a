//! Cuts the middle out of a text, and names what was cut in a marker.
//!
//! All that is left are the text's own lines and the marker: no summary and no verdict, which would send agents into
//! retries that cost more than was saved.

use std::ops::Range;

use super::units::{lines, number, size, split};
use super::{Amount, Compress, diagnostics};

/// How every line of the gateway's begins.
pub const PREFIX: &str = "[postern] ";

/// The most bytes of a line that is shown among diagnostics.
const LONGEST_SHOWN: usize = 500;

/// Of a text, how many hundredths a cut leaves at most: one that gains less is none.
const MOST_LEFT: usize = 70;

/// What is left of a text.
#[derive(Debug, PartialEq, Eq)]
pub struct Cut<'t> {
    text: &'t str,
    /// What is left out.
    middle: Range<usize>,
    /// Of how many lines.
    lines: usize,
    /// Lines that are left out, whole or in part.
    lines_out: usize,
    /// Whether a line is left out in part.
    in_part: bool,
    /// The line in which the end begins that is left, from 1.
    tail_line: usize,
    /// Whether it begins within that line.
    tail_in_part: bool,
    /// The lines in the middle that look like diagnostics, with their numbers from 1.
    diagnostics: Vec<(usize, &'t str)>,
    /// Whether there may be more of them than are shown.
    may_have_more: bool,
}

/// What a cut did, for an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CutNote {
    pub lines: usize,
    pub lines_out: usize,
    pub diagnostics: usize,
}

impl<'t> Cut<'t> {
    /// Finds what is cut out of a text; nothing where it is short.
    pub fn of(text: &'t str, bounds: &Compress) -> Option<Self> {
        if !bounds.above.is_exceeded_by(text) {
            return None;
        }
        let head = head(text, bounds.head);
        let tail = tail(text, bounds.tail);
        let middle = head.end..tail.start;
        if middle.start >= middle.end {
            return None;
        }
        let lines = lines(text);
        let in_part = head.in_part || tail.in_part;
        let cut = Self {
            text,
            middle: middle.clone(),
            lines,
            lines_out: lines.saturating_sub(head.lines + tail.lines),
            in_part,
            tail_line: lines.saturating_sub(tail.lines) + usize::from(!tail.in_part),
            tail_in_part: tail.in_part,
            diagnostics: Vec::new(),
            may_have_more: false,
        };
        Some(cut.with_diagnostics(head.lines, head.in_part, bounds.diagnostics))
    }

    /// Finds the lines in the middle that look like diagnostics.
    fn with_diagnostics(mut self, lines_before: usize, starts_in_part: bool, most: usize) -> Self {
        let middle = self.text.get(self.middle.clone()).unwrap_or_default();
        // The rest of a line that is shown in part is none.
        let skipped = usize::from(starts_in_part);
        let lines: Vec<&str> = split(middle).skip(skipped).collect();
        let selected = if most == 0 { Vec::new() } else { diagnostics::select(lines.iter().copied(), most) };
        let shown =
            selected.into_iter().filter_map(|at| Some((lines_before + skipped + at + 1, *lines.get(at)?)));
        self.diagnostics = shown.collect();
        self.may_have_more = most > 0 && self.diagnostics.len() == most;
        self
    }

    /// Writes what is left, with the marker in the place of the middle. `place` is where all of the text is. Nothing where
    /// that gains too little.
    pub fn write(&self, place: &str) -> Option<String> {
        let (before, after) = (self.part(0..self.middle.start), self.part(self.middle.end..self.text.len()));
        let mut left = String::with_capacity(before.len() + after.len() + 256);
        left.push_str(before);
        if !before.is_empty() && !before.ends_with('\n') {
            left.push('\n');
        }
        left.push_str(&self.marker(place));
        for (at, line) in &self.diagnostics {
            left.push_str(&format!("{at}: {}", shown(line)));
            left.push_str(if line.len() > LONGEST_SHOWN { "…\n" } else { "\n" });
        }
        if !self.diagnostics.is_empty() && !after.is_empty() {
            left.push_str(&self.tail_marker());
        }
        left.push_str(after);
        (left.len() <= self.text.len() / 100 * MOST_LEFT).then_some(left)
    }

    fn part(&self, range: Range<usize>) -> &'t str {
        self.text.get(range).unwrap_or_default()
    }

    fn marker(&self, place: &str) -> String {
        let (out, all) = (number(self.lines_out), number(self.lines));
        let bytes = size(self.middle.len());
        let in_part = if self.in_part { ", long ones in part" } else { "" };
        let mut marker =
            format!("{PREFIX}{out} of {all} lines ({bytes}) left out{in_part}. All of it: {place}\n");
        if !self.diagnostics.is_empty() {
            let shown =
                if self.may_have_more { format!("{} ", self.diagnostics.len()) } else { String::new() };
            marker.push_str(&format!("{PREFIX}Of these, {shown}lines that look like diagnostics"));
            marker.push_str(if self.may_have_more { ", and there may be more:\n" } else { ":\n" });
        }
        marker
    }

    /// Keeps the end apart from diagnostics, which are not its neighbours: a line below an error would be read as its cause.
    fn tail_marker(&self) -> String {
        let from = if self.tail_in_part { "From within" } else { "From" };
        format!("{PREFIX}{from} line {} on:\n", number(self.tail_line))
    }

    pub fn note(&self) -> CutNote {
        CutNote { lines: self.lines, lines_out: self.lines_out, diagnostics: self.diagnostics.len() }
    }
}

/// A part of a text that is left, up to a byte.
struct Head {
    end: usize,
    /// Whole ones.
    lines: usize,
    /// Whether a part of another one follows.
    in_part: bool,
}

/// A part of a text that is left, from a byte.
struct Tail {
    start: usize,
    lines: usize,
    in_part: bool,
}

/// The first lines of a text. Where a long line would leave less than half of the room in use, its beginning is left, too.
fn head(text: &str, most: Amount) -> Head {
    let (mut end, mut lines) = (0, 0);
    let mut breaks = memchr::memchr_iter(b'\n', text.as_bytes());
    while lines < most.lines {
        let next = breaks.next().map_or(text.len(), |at| at + 1);
        if next > most.bytes {
            let in_part = end < most.bytes / 2;
            return Head {
                end: if in_part { text.floor_char_boundary(most.bytes) } else { end },
                lines,
                in_part,
            };
        }
        if next == end {
            break;
        }
        (end, lines) = (next, lines + 1);
    }
    Head { end, lines, in_part: false }
}

/// The last lines of a text, and in the same way the end of a long one.
fn tail(text: &str, most: Amount) -> Tail {
    let (mut start, mut lines) = (text.len(), 0);
    // The break at the end of the last line begins no other.
    let inner = text.strip_suffix('\n').unwrap_or(text);
    let mut breaks = memchr::memrchr_iter(b'\n', inner.as_bytes());
    while lines < most.lines {
        let next = breaks.next().map_or(0, |at| at + 1);
        if text.len() - next > most.bytes {
            let in_part = text.len() - start < most.bytes / 2;
            let part = text.ceil_char_boundary(text.len().saturating_sub(most.bytes));
            return Tail { start: if in_part { part } else { start }, lines, in_part };
        }
        if next == start {
            break;
        }
        (start, lines) = (next, lines + 1);
    }
    Tail { start, lines, in_part: false }
}

/// The beginning of a line.
fn shown(line: &str) -> &str {
    line.get(..line.floor_char_boundary(LONGEST_SHOWN)).unwrap_or(line)
}

#[cfg(test)]
#[path = "cut_tests.rs"]
mod tests;
