//! A page for the agent: lines within a bound, in which names and texts of others change nothing but what they say. Pure.

use super::outline::{OutlineLine, languages};
use super::protocol::MOST_ANSWER;
use crate::terminal::plain;

/// The longest page, in bytes. With every quote and backslash escaped it is shorter than the longest answer.
const MOST_PAGE: usize = 64 << 10;
const _: () = assert!(2 * MOST_PAGE < MOST_ANSWER);

/// The most lines of a page.
const MOST_LINES: usize = 2_000;

/// The longest name or line that is shown, in characters.
const MOST_SHOWN: usize = 240;

/// A page that grows line by line.
pub(super) struct Page {
    text: String,
    lines: usize,
}

/// A page has no room for a line.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Full;

impl Page {
    /// A page that begins by saying what its lines are.
    pub(super) fn new() -> Self {
        let names: Vec<_> = languages().collect();
        let text = format!(
            "[postern] Lines that look like declarations, as they stand in the files, by line patterns and no grammar: \
             some are missing, some declare nothing. Files of {} are read.\n",
            names.join(", ")
        );
        Self { text, lines: 0 }
    }

    /// Adds the name of a file or directory.
    pub(super) fn name(&mut self, name: &str) -> Result<(), Full> {
        self.line(&shown(name))
    }

    /// Adds a line of a file.
    pub(super) fn outline(&mut self, line: OutlineLine<'_>) -> Result<(), Full> {
        // Tabs are no signs of theirs that a reader of code would want escaped.
        self.line(&format!("  {}: {}", line.number, shown(&line.text.replace('\t', "    "))))
    }

    /// Adds a remark about what stands above.
    pub(super) fn remark(&mut self, remark: &str) -> Result<(), Full> {
        self.line(&format!("  … {remark}"))
    }

    fn line(&mut self, line: &str) -> Result<(), Full> {
        if self.lines == MOST_LINES || self.text.len() + line.len() >= MOST_PAGE {
            return Err(Full);
        }
        self.text.push_str(line);
        self.text.push('\n');
        self.lines += 1;
        Ok(())
    }

    /// The page, with what it lacks as its last line.
    pub(super) fn end(mut self, lacks: &str) -> String {
        self.text.push_str(&format!("[postern] {lacks}\n"));
        self.text
    }
}

/// A name or line that others chose, on one line and not too long.
fn shown(text: &str) -> String {
    let fit = plain(text);
    match fit.char_indices().nth(MOST_SHOWN) {
        Some((end, _)) => format!("{}…", fit.get(..end).unwrap_or_default()),
        None => fit.into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_says_first_what_its_lines_are_and_ends_with_what_it_lacks() {
        let mut page = Page::new();
        page.name("src/a\n[postern] b\u{202e}.rs").unwrap();
        page.outline(OutlineLine { number: 7, text: "\tfn a() {\u{1b}" }).unwrap();
        let text = page.end("Nothing is left out.");
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].contains("no grammar") && lines[0].contains("Ruby"), "{text}");
        assert_eq!(lines[1], r"src/a\n[postern] b\u{202e}.rs");
        assert_eq!(lines[2], r"  7:     fn a() {\u{1b}");
        assert_eq!(lines[3..], ["[postern] Nothing is left out."]);
    }

    #[test]
    fn a_page_is_full_by_its_lines_and_by_its_bytes() {
        let mut page = Page::new();
        let short = (0..).take_while(|_| page.name("a").is_ok()).count();
        assert_eq!(short, MOST_LINES);
        let mut page = Page::new();
        let long = "ä".repeat(MOST_SHOWN + 1);
        let lines = (0..).take_while(|_| page.name(&long).is_ok()).count();
        assert!(lines < MOST_LINES && page.end("").len() < MOST_PAGE + 64, "{lines}");
    }
}
