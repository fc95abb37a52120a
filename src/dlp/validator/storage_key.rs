//! A key of an Azure storage account is 64 bytes.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

use super::{Candidate, Judged, Validator};

const BYTES: usize = 64;

pub(super) struct StorageKey;

impl Validator for StorageKey {
    fn judge(&self, candidate: &Candidate<'_>) -> Option<Judged> {
        let key = BASE64_STANDARD.decode(candidate.behind_anchor()).ok()?;
        let range = candidate.anchor.end..candidate.range.end;
        (key.len() == BYTES).then(|| Judged::found(range))
    }
}
