//! Reads blocks of `SEARCH` and `REPLACE` in a text, as Aider, Cline and Roo Code write them.

use crate::call::{EditBlock, Occurrences};

/// The blocks of a text; none where a marker stands where it may not, and where a search text is empty.
///
/// ```text
/// <<<<<<< SEARCH            (also ------- SEARCH, and with more or fewer signs)
/// :start_line:7             (Roo Code)
/// -------
/// what stands there
/// =======
/// what is to stand there
/// >>>>>>> REPLACE           (also +++++++ REPLACE)
/// ```
pub(super) fn of(diff: &str) -> Option<Vec<EditBlock>> {
    let mut blocks = Vec::new();
    let mut lines = diff.lines().map(|line| line.trim_end_matches('\r'));
    while let Some(line) = lines.next() {
        if !is_marker(line, ['<', '-'], "SEARCH") {
            // Text between blocks is for people, except what looks like the rest of one.
            if is_marker(line, ['>', '+'], "REPLACE") {
                return None;
            }
            continue;
        }
        blocks.push(block(&mut lines)?);
    }
    (!blocks.is_empty()).then_some(blocks)
}

fn block<'a>(lines: &mut impl Iterator<Item = &'a str>) -> Option<EditBlock> {
    let (mut search, mut replace) = (Vec::new(), Vec::new());
    let mut has_line = false;
    loop {
        match lines.next()? {
            line if is_divider(line) => break,
            line if search.is_empty() && is_hint(line) => has_line |= line.starts_with(":start_line:"),
            "-------" if search.is_empty() && has_line => {}
            line => search.push(line),
        }
    }
    loop {
        match lines.next()? {
            line if is_marker(line, ['>', '+'], "REPLACE") => break,
            line => replace.push(line),
        }
    }
    // The line tells which of several places is meant.
    let expected = if has_line { Occurrences::AtLeastOnce } else { Occurrences::Once };
    let (search, replace) = (search.join("\n"), replace.join("\n"));
    (!search.is_empty()).then_some(EditBlock::Text { search, replace, expected })
}

fn is_hint(line: &str) -> bool {
    line.starts_with(":start_line:") || line.starts_with(":end_line:")
}

fn is_divider(line: &str) -> bool {
    line.len() >= 5 && line.bytes().all(|byte| byte == b'=')
}

/// Whether a line is one of these signs, at least three times, and a word.
fn is_marker(line: &str, signs: [char; 2], word: &str) -> bool {
    let Some(before) = line.trim_end().trim_end_matches('>').strip_suffix(word) else { return false };
    let before = before.trim_end();
    before.len() >= 3 && signs.iter().any(|sign| before.chars().all(|c| c == *sign))
}
