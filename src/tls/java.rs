//! Writes Java key stores (JKS) that hold trusted certificates and nothing else.

use std::time::{SystemTime, UNIX_EPOCH};

use aws_lc_rs::digest::{Context, SHA1_FOR_LEGACY_USE_ONLY};
use rustls::pki_types::CertificateDer;

use crate::digest::sha256_hex;

const MAGIC: u32 = 0xFEED_FEED;
const VERSION: u32 = 2;
/// The tag of an entry that is a certificate without a key.
const TRUSTED_CERTIFICATE: u32 = 2;
/// What the digest at the end is salted with, behind the password (`sun.security.provider.JavaKeyStore`).
const SALT: &[u8] = b"Mighty Aphrodite";

/// A key store of these certificates, each under its SHA-256 as alias and said to be of this moment. The password
/// guards nothing secret: the digest at the end tells a store that was damaged.
pub fn key_store(certificates: &[CertificateDer<'_>], made: SystemTime, password: &str) -> Vec<u8> {
    let milliseconds = made.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    let milliseconds = u64::try_from(milliseconds).unwrap_or(u64::MAX);
    let mut store = Vec::new();
    store.extend(MAGIC.to_be_bytes());
    store.extend(VERSION.to_be_bytes());
    store.extend(length(certificates.len()).to_be_bytes());
    for certificate in certificates {
        store.extend(TRUSTED_CERTIFICATE.to_be_bytes());
        text(&mut store, &sha256_hex(certificate));
        store.extend(milliseconds.to_be_bytes());
        text(&mut store, "X.509");
        store.extend(length(certificate.len()).to_be_bytes());
        store.extend_from_slice(certificate);
    }
    let digest = integrity(&store, password);
    store.extend(digest);
    store
}

fn length(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

/// Short ASCII, of which Java's modified UTF-8 is the same.
fn text(store: &mut Vec<u8>, text: &str) {
    store.extend(u16::try_from(text.len()).unwrap_or(u16::MAX).to_be_bytes());
    store.extend_from_slice(text.as_bytes());
}

/// SHA-1 over the password as UTF-16, the salt, and all that stands before.
fn integrity(store: &[u8], password: &str) -> Vec<u8> {
    let mut digest = Context::new(&SHA1_FOR_LEGACY_USE_ONLY);
    password.encode_utf16().for_each(|unit| digest.update(&unit.to_be_bytes()));
    digest.update(SALT);
    digest.update(store);
    digest.finish().as_ref().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::hex;

    #[test]
    fn a_store_is_what_java_writes() {
        let made = UNIX_EPOCH + std::time::Duration::from_millis(0x0102_0304);
        let store = key_store(&[CertificateDer::from(vec![0x30, 0x00])], made, "changeit");
        let alias = hex(sha256_hex(&[0x30, 0x00]).as_bytes());
        let (head, digest) = store.split_at(store.len() - 20);
        assert_eq!(
            hex(head),
            format!("feedfeed0000000200000001{}{}", "00000002", "0040")
                + &alias
                + "0000000001020304"
                + "0005582e353039"
                + "000000023000"
        );
        assert_eq!(digest, integrity(head, "changeit"));
        assert_ne!(digest, integrity(head, "other"));
    }

    /// `keytool` of OpenJDK 17 makes a store with this digest when its last certificate is deleted.
    #[test]
    fn an_empty_store_has_the_digest_that_java_gives_it() {
        let store = key_store(&[], UNIX_EPOCH, "changeit");
        assert_eq!(hex(&store), "feedfeed0000000200000000e2686e45fb43dfa4d992dd41ceb6b21c6330d792");
    }
}
