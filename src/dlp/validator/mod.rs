//! What must hold of a text in the shape of a secret: one file per validator.

mod assigned;
mod aws;
mod checksum;
mod entropy;
mod gcp;
mod jwt;
mod macaroon;
mod mixed;
mod named;
mod private_key;
mod storage_key;
mod url_password;

#[cfg(test)]
pub(super) use checksum::base_62;

use std::ops::{Range, RangeInclusive};

use super::Confidence;

/// A text in the shape of a secret.
pub(super) struct Candidate<'a> {
    pub(super) text: &'a [u8],
    pub(super) anchor: Range<usize>,
    /// Where the shape was found; the anchor, or the value, where there is no shape.
    pub(super) range: Range<usize>,
}

impl<'a> Candidate<'a> {
    /// The text in the shape.
    fn value(&self) -> &'a [u8] {
        self.text.get(self.range.clone()).unwrap_or_default()
    }

    /// The same behind the anchor.
    fn behind_anchor(&self) -> &'a [u8] {
        self.text.get(self.anchor.end..self.range.end).unwrap_or_default()
    }
}

/// A secret, as a validator found it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Judged {
    pub(super) range: Range<usize>,
    pub(super) checksum: Option<bool>,
    /// How sure the finding is at most, whatever its detector says.
    pub(super) at_most: Confidence,
}

impl Judged {
    pub(super) fn found(range: Range<usize>) -> Self {
        Self { range, checksum: None, at_most: Confidence::High }
    }
}

/// Judges texts in the shape of one kind of secret.
pub(super) trait Validator: Sync {
    /// Whether there may be a secret behind this anchor, whatever is in its shape; asked before the shape is tried.
    fn may_follow(&self, _text: &[u8], _anchor: &Range<usize>) -> bool {
        true
    }

    /// How long the values are that it may find a secret in.
    fn lengths(&self) -> RangeInclusive<usize> {
        0..=usize::MAX
    }

    /// Returns the secret; none where the text is something else.
    fn judge(&self, candidate: &Candidate<'_>) -> Option<Judged>;
}

/// The validators by their names in the file.
const VALIDATORS: &[(&str, &dyn Validator)] = &[
    ("assigned", &assigned::Assigned),
    ("aws_id", &aws::AccessKeyId),
    ("aws_secret", &aws::SecretAccessKey),
    ("checksum", &checksum::Checksum),
    ("gcp_key_id", &gcp::KeyId),
    ("jwt", &jwt::Jwt),
    ("macaroon", &macaroon::Macaroon),
    ("mixed", &mixed::Mixed),
    ("private_key", &private_key::PrivateKey),
    ("storage_key", &storage_key::StorageKey),
    ("url_password", &url_password::UrlPassword),
];

/// Returns the validator of this name.
pub(super) fn named(name: &str) -> Option<&'static dyn Validator> {
    VALIDATORS.iter().find(|(known, _)| *known == name).map(|(_, validator)| *validator)
}
