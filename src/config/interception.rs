//! The part of the interception gate that the settings decide; `tls::gate` and the environment decide the rest.

use super::section::Field;
use crate::tls::gate::{GateSettings, Mode, OnError};

/// The words of `interception.mode`.
pub(super) const MODES: [(&str, Mode); 2] = [("Required", Mode::Required), ("Off", Mode::Off)];
/// The words of `interception.onError`.
pub(super) const ON_ERROR: [(&str, OnError); 2] =
    [("FailClosed", OnError::FailClosed), ("Passthrough", OnError::Passthrough)];

/// The CA's files have their default names beside the settings file.
pub(super) fn read(field: &Field<'_>) -> GateSettings {
    field.section(|s| GateSettings {
        mode: s.field("mode").choice_or(&MODES, Mode::Required),
        certificate: Some(s.field("caCertificate").path_or("ca-cert.pem")),
        key: Some(s.field("caKey").path_or("ca-key.pem")),
        approval: s.field("caApproval").parsed(fingerprint),
        on_error: s.field("onError").choice_or(&ON_ERROR, OnError::FailClosed),
    })
}

fn fingerprint(text: &str) -> Result<String, String> {
    let digits = text.strip_prefix("sha256:").unwrap_or_default();
    if digits.len() == 64 && digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        return Ok(text.to_ascii_lowercase());
    }
    Err("expected the CA's fingerprint, \"sha256:\" and 64 hex digits, as `postern ca status` prints it"
        .to_owned())
}
