//! Runs of the digits of a coding, also over line breaks: `base64`, `base32` and `xxd -p` break their lines.

use std::borrow::Cow;
use std::ops::Range;

use super::Source;
use crate::dlp::runs::{Set, runs};

/// The shortest line that goes on in the next.
const LINE: usize = 40;
/// Whole lines hold whole bytes of base64 and hex.
const STEP: usize = 4;
/// The deepest indentation.
const INDENT: usize = 16;

/// The digits of a run.
pub(super) struct Coded<'t> {
    pub(super) range: Range<usize>,
    pub(super) digits: Cow<'t, [u8]>,
}

impl Coded<'_> {
    /// Where the digits stand without some of the first, and with the signs that fill up the last ones.
    pub(super) fn range(&self, text: &[u8], skipped: usize, most_padding: usize) -> Range<usize> {
        let after = text.get(self.range.end..).unwrap_or_default();
        let padding = after.iter().take(most_padding).take_while(|byte| **byte == b'=').count();
        self.range.start + skipped..self.range.end + padding
    }
}

/// The runs of digits in the runs of a text.
pub(super) fn runs_of<'t>(
    source: &'t Source<'_>,
    least: usize,
    set: &'t Set,
) -> impl Iterator<Item = Coded<'t>> + 't {
    let text = source.text;
    let mut done = 0;
    source.runs.iter().flat_map(move |run| runs(text, run.clone(), least, set)).filter_map(move |range| {
        if range.start < done {
            return None;
        }
        let coded = joined(text, &range, set).unwrap_or_else(|| Coded {
            digits: Cow::Borrowed(text.get(range.clone()).unwrap_or_default()),
            range,
        });
        done = coded.range.end;
        Some(coded)
    })
}

/// Lines of one length, and a last one that may be shorter.
fn joined<'t>(text: &'t [u8], first: &Range<usize>, set: &Set) -> Option<Coded<'t>> {
    let width = first.len();
    if width < LINE || !width.is_multiple_of(STEP) {
        return None;
    }
    let (mut digits, mut end) = (Vec::new(), first.end);
    while let Some(start) = next_line(text, end) {
        let rest = text.get(start..).unwrap_or_default();
        let length = rest.iter().take(width + 1).take_while(|byte| set[usize::from(**byte)]).count();
        if length == 0 || length > width {
            break;
        }
        if digits.is_empty() {
            digits.extend_from_slice(text.get(first.clone())?);
        }
        digits.extend_from_slice(rest.get(..length)?);
        end = start + length;
        if length < width {
            break;
        }
    }
    (!digits.is_empty()).then_some(Coded { range: first.start..end, digits: Cow::Owned(digits) })
}

/// Where the next line's text begins, if this one ends there.
fn next_line(text: &[u8], end: usize) -> Option<usize> {
    let rest = text.get(end..)?;
    let line = rest.strip_prefix(b"\r\n").or_else(|| rest.strip_prefix(b"\n"))?;
    let indent = line.iter().take(INDENT).take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    Some(end + (rest.len() - line.len()) + indent)
}
