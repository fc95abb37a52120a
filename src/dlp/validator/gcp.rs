//! The id of a service account's key: 40 hexadecimal digits by the name of `private_key_id`.

use std::ops::RangeInclusive;

use super::named::name_of;
use super::{Candidate, Judged, Validator};

const DIGITS: usize = 40;
const NAME: &[u8] = b"private_key_id";

pub(super) struct KeyId;

impl Validator for KeyId {
    fn lengths(&self) -> RangeInclusive<usize> {
        DIGITS..=DIGITS
    }

    fn judge(&self, candidate: &Candidate<'_>) -> Option<Judged> {
        let value = candidate.value();
        let is_id = value.len() == DIGITS && value.iter().all(u8::is_ascii_hexdigit);
        let is_named = is_id && name_of(candidate.text, candidate.range.start)?.ends_with(NAME);
        is_named.then(|| Judged::found(candidate.range.clone()))
    }
}
