//! Proves identity: towards the agent a CA and the leaves it issues, towards upstreams the roots that are trusted.

pub mod authority;
pub mod defect;
pub mod gate;
pub mod init;
pub mod java;
pub mod leaf;
pub mod roots;
pub mod serving;

mod chain;
pub(crate) mod constraint;
mod file;
mod key;
mod sign;
mod trust;

#[cfg(test)]
mod testing;

use std::fmt::Write as _;
use std::sync::{Arc, LazyLock};

use aws_lc_rs::digest;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls::crypto::{CryptoProvider, aws_lc_rs as provider};

/// The one cryptographic provider of the process, given to every configuration by hand: nothing depends on which
/// one a library installed as its default.
static PROVIDER: LazyLock<Arc<CryptoProvider>> = LazyLock::new(|| Arc::new(provider::default_provider()));

/// The versions spoken on both sides.
const VERSIONS: &[&rustls::SupportedProtocolVersion] = &[&rustls::version::TLS13, &rustls::version::TLS12];

/// Names a certificate by the SHA-256 of its DER: `sha256:` and 64 lower-case hex digits.
pub fn fingerprint(der: &[u8]) -> String {
    let mut text = String::from("sha256:");
    for byte in digest::digest(&digest::SHA256, der).as_ref() {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// A certificate as PEM (RFC 7468), from its DER.
pub fn certificate_pem(der: &[u8]) -> String {
    let mut pem = String::from("-----BEGIN CERTIFICATE-----\n");
    for line in STANDARD.encode(der).as_bytes().chunks(64) {
        pem.extend(line.iter().map(|byte| char::from(*byte)));
        pem.push('\n');
    }
    pem + "-----END CERTIFICATE-----\n"
}
