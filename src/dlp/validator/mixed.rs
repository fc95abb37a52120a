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
            .is_some_and(|random| distinct(random) >= LEAST_DISTINCT && Classes::of(random).are_mixed())
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
    let (mut low, mut high) = (0_u64, 0_u64);
    for byte in text {
        let bit = 1 << (byte & 0x3f);
        let is_high = u64::from(byte >> 6 & 1).wrapping_neg();
        low |= bit & !is_high;
        high |= bit & is_high;
    }
    low.count_ones() + high.count_ones()
}
