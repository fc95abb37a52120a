//! A signed JSON Web Token: its header is JSON and names an algorithm (RFC 7519).

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde_json::Value;

use super::{Candidate, Judged, Validator};

pub(super) struct Jwt;

impl Validator for Jwt {
    fn judge(&self, candidate: &Candidate<'_>) -> Option<Judged> {
        let header = candidate.value().split(|byte| *byte == b'.').next()?;
        let header: Value = serde_json::from_slice(&BASE64_URL_SAFE_NO_PAD.decode(header).ok()?).ok()?;
        let algorithm = header.get("alg")?.as_str()?;
        (!algorithm.eq_ignore_ascii_case("none")).then(|| Judged::found(candidate.range.clone()))
    }
}
