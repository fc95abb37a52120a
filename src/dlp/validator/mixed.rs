//! Behind the anchor stands what somebody drew at random, and no words.

use super::entropy::{Classes, entropy};
use super::{Candidate, Judged, Validator};

/// In bits a byte; words that are joined have less, or one class of characters.
const LEAST_ENTROPY: f64 = 3.0;

pub(super) struct Mixed;

impl Validator for Mixed {
    fn judge(&self, candidate: &Candidate<'_>) -> Option<Judged> {
        let random = candidate.behind_anchor();
        let is_random = Classes::of(random).are_mixed() && entropy(random) >= LEAST_ENTROPY;
        is_random.then(|| Judged::found(candidate.range.clone()))
    }
}
