//! Behind the anchor stands what somebody drew at random, and no words.

use std::ops::Range;

use super::entropy::{Classes, entropy};
use super::{Candidate, Judged, Validator};

/// In bits a byte; words that are joined have less, or one class of characters.
const LEAST_ENTROPY: f64 = 3.0;
/// So many different bytes have that entropy where each stands there as often as the others: fewer are told at once.
const LEAST_DISTINCT: u32 = 8;
/// The bytes that are judged: what else follows a secret makes it no less random.
const SAMPLE: usize = 32;

pub(super) struct Mixed;

impl Validator for Mixed {
    /// What ends earlier has no more classes, and no more different bytes.
    fn may_follow(&self, text: &[u8], anchor: &Range<usize>) -> bool {
        let most = text.len().min(anchor.end.saturating_add(SAMPLE));
        text.get(anchor.end..most)
            .is_some_and(|random| Classes::of(random).are_mixed() && distinct(random) >= LEAST_DISTINCT)
    }

    fn judge(&self, candidate: &Candidate<'_>) -> Option<Judged> {
        let random = candidate.behind_anchor();
        let random = random.get(..SAMPLE).unwrap_or(random);
        let is_random = distinct(random) >= LEAST_DISTINCT
            && Classes::of(random).are_mixed()
            && entropy(random) >= LEAST_ENTROPY;
        is_random.then(|| Judged::found(candidate.range.clone()))
    }
}

/// How many different characters of ASCII stand in a text.
fn distinct(text: &[u8]) -> u32 {
    let mut seen = [0_u8; 128];
    text.iter().for_each(|byte| seen[usize::from(byte & 0x7f)] = 1);
    seen.iter().sum::<u8>().into()
}
