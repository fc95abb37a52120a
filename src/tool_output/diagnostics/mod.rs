//! KNOWS lines that say what failed: the patterns of `diagnostics.yaml`, one row a tool. Pure.
//!
//! [`is_diagnostic`] judges a line alone. [`select`] reads a whole output, and so finds more: the message below a head that
//! has none, the place of an error, the file that a failure stands under.
//!
//! A line is looked at without its colours, and only its first bytes (`LOOKED_AT`), so that an output of any shape is read
//! in time that is linear in its length.

mod catalogue;
mod line;
mod scan;

#[cfg(test)]
mod tests;

use std::sync::LazyLock;

use catalogue::Patterns;
use scan::Scan;

/// How many bytes of a line are looked at.
const LOOKED_AT: usize = 1024;

static PATTERNS: LazyLock<Patterns> = LazyLock::new(|| Patterns::built_in().unwrap_or_default());

/// Whether a line, without its line break, looks like one that says what failed.
pub fn is_diagnostic(line: &str) -> bool {
    PATTERNS.read(&line::plain(line)).1.counts_alone()
}

/// The numbers of the lines that say what failed, counted from 0 and in their order: at most `most`, equal lines once.
///
/// Where more lines count than may be told, the first failures go before what says more of them.
pub fn select<'a>(lines: impl IntoIterator<Item = &'a str>, most: usize) -> Vec<usize> {
    let mut scan = Scan::new(most);
    for (number, line) in lines.into_iter().enumerate() {
        if scan.is_full() {
            break;
        }
        let plain = line::plain(line);
        let (text, kinds) = PATTERNS.read(&plain);
        scan.read(number, line, text, kinds);
    }
    scan.selected()
}
