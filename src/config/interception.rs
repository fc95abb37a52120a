//! Whether TLS is ended here, with which CA, and what becomes of it when that CA cannot be used.

use std::path::PathBuf;

use super::section::Field;

/// The part of the interception gate that the settings decide; the environment decides the rest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interception {
    pub mode: Mode,
    pub ca_certificate: PathBuf,
    pub ca_key: PathBuf,
    /// `sha256:` and 64 lower-case hex digits: the only CA that may be used.
    pub ca_approval: Option<String>,
    pub on_error: OnError,
}

/// `interception.mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// TLS of destinations that say Inspect is ended with a minted leaf.
    Required,
    /// No TLS is ended.
    Off,
}

/// `interception.onError`: what becomes of Inspect destinations without a usable CA.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnError {
    /// The gateway does not start; at reload the last good CA stays.
    FailClosed,
    /// They are tunnelled, and everything says so. Never in Kubernetes.
    Passthrough,
}

impl Interception {
    pub(super) fn read(field: &Field<'_>) -> Self {
        field.section(|s| Self {
            mode: s
                .field("mode")
                .choice_or(&[("Required", Mode::Required), ("Off", Mode::Off)], Mode::Required),
            ca_certificate: s.field("caCertificate").path_or("ca-cert.pem"),
            ca_key: s.field("caKey").path_or("ca-key.pem"),
            ca_approval: s.field("caApproval").parsed(fingerprint),
            on_error: s.field("onError").choice_or(
                &[("FailClosed", OnError::FailClosed), ("Passthrough", OnError::Passthrough)],
                OnError::FailClosed,
            ),
        })
    }
}

fn fingerprint(text: &str) -> Result<String, String> {
    let digits = text.strip_prefix("sha256:").unwrap_or_default();
    if digits.len() == 64 && digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        return Ok(text.to_ascii_lowercase());
    }
    Err("expected the CA's fingerprint, \"sha256:\" and 64 hex digits, as `postern ca status` prints it"
        .to_owned())
}
