//! Reads the private key of a CA in every encoding that issuers write: PKCS#8, PKCS#1 and SEC1.

use rcgen::KeyPair;
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::{Error as PemError, PemObject};

use super::defect::AuthorityError;

/// Reads the first private key of a PEM text; other blocks (`EC PARAMETERS`, certificates) may stand before it.
pub(super) fn read(pem: &str) -> Result<KeyPair, AuthorityError> {
    let der = match PrivateKeyDer::from_pem_slice(pem.as_bytes()) {
        Ok(der) => der,
        // Both forms, `BEGIN ENCRYPTED PRIVATE KEY` and the older `Proc-Type: 4,ENCRYPTED`.
        Err(_) if pem.contains("ENCRYPTED") => return Err(AuthorityError::EncryptedKey),
        Err(PemError::NoItemsFound) if pem.contains("BEGIN CERTIFICATE") => {
            return Err(AuthorityError::NoKey { hint: " but a certificate (are the two files swapped?)" });
        }
        Err(PemError::NoItemsFound) => return Err(AuthorityError::NoKey { hint: "" }),
        Err(broken) => return Err(AuthorityError::BrokenKey { reason: broken.to_string() }),
    };
    KeyPair::try_from(&der).map_err(|_| AuthorityError::UnsupportedKey)
}
