//! PyPI's tokens are macaroons, whose first packet names the place: version 2, field 1, length, `pypi.org`
//! (docs.pypi.org/api/macaroons).

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;

use super::{Candidate, Judged, Validator};

const PREFIX: &[u8] = b"pypi-";
/// The characters that hold the first packet.
const HEAD: usize = 24;
const PLACES: &[&[u8]] = &[b"\x02\x01\x08pypi.org", b"\x02\x01\x0dtest.pypi.org"];

pub(super) struct Macaroon;

impl Validator for Macaroon {
    fn judge(&self, candidate: &Candidate<'_>) -> Option<Judged> {
        let head = candidate.value().get(PREFIX.len()..PREFIX.len() + HEAD)?;
        let head = BASE64_URL_SAFE_NO_PAD.decode(head).ok()?;
        let is_pypis = PLACES.iter().any(|place| head.starts_with(place));
        is_pypis.then(|| Judged::found(candidate.range.clone()))
    }
}
