//! Reads when a certificate expires.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use x509_parser::pem::Pem;

/// The end of the first certificate of a PEM file; none if it holds no certificate.
pub(super) fn not_after(pem: &[u8]) -> Option<SystemTime> {
    let pem = Pem::iter_from_buffer(pem).next()?.ok()?;
    let seconds = pem.parse_x509().ok()?.validity().not_after.timestamp();
    UNIX_EPOCH.checked_add(Duration::from_secs(u64::try_from(seconds).ok()?))
}
