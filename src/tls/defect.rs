//! What can be wrong with a CA, by name and with what to do about it.

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::policy::name::Host;

/// Why a CA cannot be used. Every message is whole, with its cause, and says what to do.
#[derive(Debug, thiserror::Error)]
pub enum AuthorityError {
    #[error(
        "the CA certificate file holds no certificate{hint}: expected PEM, which begins with \
         `-----BEGIN CERTIFICATE-----`; `openssl x509 -inform DER` turns DER into PEM"
    )]
    NoCertificate { hint: &'static str },
    #[error("certificate {position} of the CA certificate file is broken ({reason}): copy the file again, whole")]
    BrokenCertificate { position: usize, reason: String },
    #[error(
        "the CA key file holds no private key{hint}: expected PEM, which begins with `-----BEGIN PRIVATE KEY-----`, \
         `-----BEGIN EC PRIVATE KEY-----` or `-----BEGIN RSA PRIVATE KEY-----`"
    )]
    NoKey { hint: &'static str },
    #[error("the CA key file is broken ({reason}): copy the file again, whole")]
    BrokenKey { reason: String },
    #[error(
        "the CA key is encrypted, and there is nobody to ask for its passphrase: decrypt it with \
         `openssl pkey -in KEY -out ca-key.pem`, and keep that file at mode 0600"
    )]
    EncryptedKey,
    #[error(
        "the CA key is of a kind that cannot sign here: use ECDSA P-256 (every client accepts it), P-384 or P-521, \
         RSA of 2048 to 8192 bits, or Ed25519"
    )]
    UnsupportedKey,
    #[error(
        "the CA key does not belong to the certificate `{subject}`: both files must come from the same issuance; \
         compare `openssl x509 -noout -pubkey -in CERT` with `openssl pkey -pubout -in KEY`"
    )]
    KeyMismatch { subject: String },
    #[error(
        "the CA key belongs to certificate {position} of the file, `{subject}`: put that one first, then its issuer, \
         and so on to the root"
    )]
    KeyNotOfFirst { position: usize, subject: String },
    #[error(
        "`{subject}` is not a CA certificate (no basicConstraints CA:TRUE): give one that may issue certificates, \
         not a server's; `postern ca init` makes one"
    )]
    NotACa { subject: String },
    #[error(
        "`{subject}` may not sign certificates (no keyCertSign in its keyUsage): issue it again with \
         `keyUsage = critical, keyCertSign, cRLSign`"
    )]
    NoKeyCertSign { subject: String },
    #[error("`{subject}` expired at {}: renew the CA", rfc3339(*at))]
    Expired { subject: String, at: OffsetDateTime },
    #[error("`{subject}` is not valid before {}: check this machine's clock, or wait", rfc3339(*at))]
    NotYetValid { subject: String, at: OffsetDateTime },
    #[error(
        "the certificates stand in the wrong order: `{issuer}`, which issued `{subject}`, must follow it at once; \
         put the issuing CA first, then its issuer, and so on, the root last"
    )]
    WrongOrder { subject: String, issuer: String },
    #[error(
        "certificate {position}, `{subject}`, stands after the root and belongs to no chain: remove it, the root is \
         the last"
    )]
    AfterRoot { position: usize, subject: String },
    #[error(
        "the chain leads to no root: `{issuer}`, which issued `{subject}`, is not in the file; append it (and its \
         issuers, up to the self-signed root, which is never sent)"
    )]
    NoRoot { subject: String, issuer: String },
    #[error("the name constraints of `{subject}` cannot be read: issue it with names and addresses that are well formed")]
    BrokenConstraints { subject: String },
    #[error("the name constraints of `{subject}` permit no host at all: issue it for the names that policies inspect")]
    PermitsNothing { subject: String },
    #[error(
        "clients will not accept what `{subject}` issues ({cause}): a leaf for {host} was minted and did not verify \
         against the root; look at path length, extended key usage, name constraints and signatures of the chain"
    )]
    NotAccepted { subject: String, host: Host, cause: rustls::Error },
    #[error("`{subject}` cannot issue a leaf: {cause}")]
    NotMinting { subject: String, cause: MintError },
}

/// Why no leaf was issued for a host.
#[derive(Debug, thiserror::Error)]
pub enum MintError {
    #[error("the name constraints of the CA do not permit {0}: reissue the CA for it")]
    NotPermitted(Host),
    #[error("the CA expired at {}: renew it", rfc3339(*.0))]
    Expired(OffsetDateTime),
    #[error("the CA is not valid before {}: check this machine's clock", rfc3339(*.0))]
    NotYetValid(OffsetDateTime),
    #[error("the leaf could not be signed ({0})")]
    Signing(rcgen::Error),
    #[error("the leaf could not be put into a TLS configuration ({0})")]
    Configuration(rustls::Error),
}

/// `2026-11-21T08:00:00Z`, or nothing for a year that cannot be written so.
pub(super) fn rfc3339(at: OffsetDateTime) -> String {
    at.format(&Rfc3339).unwrap_or_default()
}
