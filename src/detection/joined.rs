//! The ends of texts that follow each other, so that a secret that was divided between two is found.

use std::ops::Range;

/// How much of each text is joined, in bytes.
const END: usize = 256;

/// The texts before.
#[derive(Default)]
pub(super) struct Neighbours {
    /// The end of the last value, whatever it is, and of the last text that somebody said: names stand between these.
    value: Vec<u8>,
    text: Vec<u8>,
}

/// Two texts at their seam.
pub(super) struct Joined {
    pub(super) bytes: Vec<u8>,
    /// Where the second one begins.
    pub(super) seam: usize,
}

impl Joined {
    /// Whether a part belongs to both.
    pub(super) fn divides(&self, range: &Range<usize>) -> bool {
        range.start < self.seam && range.end > self.seam
    }
}

impl Neighbours {
    /// The seams between the texts before and this one, of which these parts were found to be secrets. They are told by
    /// themselves, so they are no part of another.
    pub(super) fn join(&mut self, text: &str, found: &[Range<usize>], is_said: bool) -> Vec<Joined> {
        let first = found.iter().map(|range| range.start).min().unwrap_or(text.len());
        let last = found.iter().map(|range| range.end).max().unwrap_or(0);
        let begin = text.as_bytes().get(..first.min(END)).unwrap_or_default();
        let end = text.as_bytes().get(last.max(text.len().saturating_sub(END))..).unwrap_or_default();
        let mut seams = vec![join(&self.value, begin)];
        if is_said && self.text != self.value {
            seams.push(join(&self.text, begin));
        }
        end.clone_into(&mut self.value);
        if is_said {
            end.clone_into(&mut self.text);
        }
        seams.retain(|joined| joined.seam > 0 && joined.seam < joined.bytes.len());
        seams
    }
}

fn join(before: &[u8], begin: &[u8]) -> Joined {
    Joined { bytes: [before, begin].concat(), seam: before.len() }
}
