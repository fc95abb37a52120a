//! The checksum of GitHub's and npm's tokens: their last six characters are the CRC32 of those before in base 62
//! (github.blog, "Behind GitHub's new authentication token formats").

use super::{Candidate, Judged, Validator};

/// The characters of the checksum.
const CHECKSUM: usize = 6;
/// The characters behind the prefix, the checksum among them.
const RANDOM: usize = 36;
const BASE_62: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

pub(super) struct Checksum;

impl Validator for Checksum {
    fn judge(&self, candidate: &Candidate<'_>) -> Option<Judged> {
        let random = candidate.behind_anchor();
        // A longer form has none.
        let checksum = (random.len() == RANDOM).then(|| {
            let (before, written) = random.split_at(RANDOM - CHECKSUM);
            written == base_62(crc32fast::hash(before))
        });
        Some(Judged { checksum, ..Judged::found(candidate.range.clone()) })
    }
}

/// A checksum as tokens have it.
pub(in crate::dlp) fn base_62(mut checksum: u32) -> [u8; CHECKSUM] {
    let mut written = [b'0'; CHECKSUM];
    for digit in written.iter_mut().rev() {
        *digit = BASE_62[(checksum % 62) as usize];
        checksum /= 62;
    }
    written
}
