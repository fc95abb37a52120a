//! Counts how often the blocks of an edit stand in a text, each in what the blocks before it leave. Pure.

use std::borrow::Cow;

use memchr::memmem::{self, Finder};

use crate::call::{EditBlock, FileState, Occurrences};
use crate::digest::sha256_hex;

/// The longest text that replacements may make, in bytes.
const MOST_TEXT: usize = 4 << 20;

/// Says of a text what an edit needs to know; none where [`counts`] has none.
pub(crate) fn state(text: &str, blocks: &[EditBlock], is_late: impl Fn() -> bool) -> Option<FileState> {
    let counts = counts(text, blocks, is_late)?;
    Some(FileState::Text { bytes: text.len() as u64, sha256: sha256_hex(text.as_bytes()), counts })
}

/// Counts how often each block stands in the text, up to and including the first that does not fit. Line ends of Windows
/// count as those of Unix, as editing tools have it. None where `is_late` says so, and where the text grows too long.
fn counts(text: &str, blocks: &[EditBlock], is_late: impl Fn() -> bool) -> Option<Vec<u64>> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut reader = Reader { lines: None, line: 0, text: unix(text) };
    let mut counts = Vec::with_capacity(blocks.len());
    for (number, block) in blocks.iter().enumerate() {
        if is_late() {
            return None;
        }
        let is_last = number + 1 == blocks.len();
        let count = match block {
            EditBlock::Text { search, replace, expected } => {
                let count = reader.count(&unix(search));
                if expected.fits(count) && !is_last {
                    reader.replace(&unix(search), &unix(replace), *expected)?;
                }
                count
            }
            EditBlock::Lines { below, old } => u64::from(reader.seek(below, old, &is_late)?),
        };
        counts.push(count);
        if !block.expected().fits(count) {
            break;
        }
    }
    Some(counts)
}

/// A text in which blocks are looked for.
struct Reader<'a> {
    text: Cow<'a, str>,
    /// The lines of the text, where lines are sought, without white space at their ends.
    lines: Option<Vec<Box<str>>>,
    /// The line from which the next ones are sought.
    line: usize,
}

impl Reader<'_> {
    fn count(&self, search: &str) -> u64 {
        Finder::new(search).find_iter(self.text.as_bytes()).count() as u64
    }

    /// Replaces the text where it stands; none where the result is too long.
    fn replace(&mut self, search: &str, replace: &str, expected: Occurrences) -> Option<()> {
        let times = if expected == Occurrences::Once { 1 } else { self.count(search) };
        let grown = usize::try_from(times).ok()?.checked_mul(replace.len())?.checked_add(self.text.len())?;
        if grown > MOST_TEXT {
            return None;
        }
        self.text = Cow::Owned(self.text.replace(search, replace));
        self.lines = None;
        Some(())
    }

    /// Finds lines below the ones found before; whether they are there. None where that takes too long.
    fn seek(&mut self, below: &[String], old: &[String], is_late: impl Fn() -> bool) -> Option<bool> {
        let text = &self.text;
        let lines =
            self.lines.get_or_insert_with(|| text.lines().map(|line| line.trim_end().into()).collect());
        for header in below {
            let rest = lines.get(self.line..).unwrap_or_default();
            let Some(at) = rest.iter().position(|line| line.trim() == header.trim()) else {
                return Some(false);
            };
            self.line += at + 1;
        }
        // As Codex does: an empty line at the end may stand for the end of the file.
        let shorter = old.split_last().filter(|(last, rest)| last.is_empty() && !rest.is_empty());
        for old in [Some(old), shorter.map(|(_, rest)| rest)].into_iter().flatten() {
            let rest = lines.get(self.line..).unwrap_or_default();
            for (at, window) in rest.windows(old.len()).enumerate() {
                if is_late() {
                    return None;
                }
                if window.iter().zip(old).all(|(line, old)| **line == *old.trim_end()) {
                    self.line += at + old.len();
                    return Some(true);
                }
            }
        }
        Some(false)
    }
}

fn unix(text: &str) -> Cow<'_, str> {
    if memmem::find(text.as_bytes(), b"\r\n").is_some() {
        Cow::Owned(text.replace("\r\n", "\n"))
    } else {
        Cow::Borrowed(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(search: &str, replace: &str, expected: Occurrences) -> EditBlock {
        EditBlock::Text { search: search.to_owned(), replace: replace.to_owned(), expected }
    }

    fn once(search: &str, replace: &str) -> EditBlock {
        block(search, replace, Occurrences::Once)
    }

    fn lines(below: &[&str], old: &[&str]) -> EditBlock {
        let owned = |all: &[&str]| all.iter().map(|line| (*line).to_owned()).collect();
        EditBlock::Lines { below: owned(below), old: owned(old) }
    }

    fn counted(text: &str, blocks: &[EditBlock]) -> Vec<u64> {
        counts(text, blocks, || false).unwrap()
    }

    #[test]
    fn each_block_is_counted_in_what_the_blocks_before_leave() {
        let text = "one two two three";
        assert_eq!(counted(text, &[once("one", "1")]), [1]);
        assert_eq!(counted(text, &[once("two", "2")]), [2]);
        assert_eq!(counted(text, &[once("one", "four"), once("four", "4")]), [1, 1]);
        assert_eq!(counted(text, &[once("two three", ""), once("two", "")]), [1, 1]);
        assert_eq!(
            counted(text, &[once("none", "1"), once("one", "2")]),
            [0],
            "what follows is not looked for"
        );
        assert_eq!(counted(text, &[block("two", "2", Occurrences::AtLeastOnce), once("2", "")]), [2, 2]);
        assert_eq!(counted(text, &[block("two", "", Occurrences::Exactly(2)), once("two", "")]), [2, 0]);
        assert_eq!(counted("aaa", &[once("aa", "")]), [1], "places do not overlap");
        assert_eq!(counted("", &[once("a", "")]), [0]);
        assert_eq!(counted("a", &[]), [0; 0]);
    }

    #[test]
    fn line_ends_of_windows_and_a_mark_of_the_byte_order_make_no_difference() {
        assert_eq!(counted("\u{feff}a\r\nb\r\nc", &[once("a\nb", "")]), [1]);
        assert_eq!(counted("a\nb\nc", &[once("a\r\nb", "")]), [1]);
    }

    #[test]
    fn lines_of_a_patch_are_sought_below_those_before() {
        let text = "fn a() {\n    x();  \n}\nfn b() {\n    x();\n}\n";
        assert_eq!(counted(text, &[lines(&[], &["    x();", "}"]), lines(&[], &["    x();", "}"])]), [1, 1]);
        let three = [(); 3].map(|()| lines(&[], &["    x();"]));
        assert_eq!(counted(text, &three), [1, 1, 0]);
        assert_eq!(counted(text, &[lines(&["fn b() {"], &["    x();"]), lines(&[], &["fn b() {"])]), [1, 0]);
        assert_eq!(counted(text, &[lines(&["fn c() {"], &["    x();"])]), [0]);
        assert_eq!(counted(text, &[lines(&[], &["}", ""])]), [1], "the end of the file");
        assert_eq!(counted(text, &[lines(&[], &["x();"])]), [0], "white space before a line counts");
    }

    #[test]
    fn what_takes_too_long_or_grows_too_long_has_no_count() {
        assert_eq!(counts("a", &[once("a", "b")], || true), None);
        let long = "x".repeat(1 << 20);
        let grows = block("a", &long, Occurrences::AtLeastOnce);
        assert_eq!(counts("aaaaa", &[grows.clone(), once("b", "")], || false), None);
        assert_eq!(counts("aaaaa", &[grows], || false), Some(vec![5]), "what is last need not be made");
    }
}
