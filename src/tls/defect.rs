//! What can be wrong with a CA, by name and with what to do about it.

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::name::host::Host;

/// Why a CA cannot be used. Every message is whole, with its cause, and says what to do.
#[derive(Debug, thiserror::Error)]
pub enum AuthorityError {
    #[error(
        "the CA certificate file holds no certificate{hint}: expected PEM, which begins with \
         `-----BEGIN CERTIFICATE-----`; `openssl x509 -inform DER` turns DER into PEM"
    )]
    NoCertificate { hint: &'static str },
    #[error(
        "certificate {position} of the CA certificate file is broken ({reason}): copy the file again, whole"
    )]
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
        "certificate {position}, `{subject}`, stands after the root: put the issuing CA first, then its issuer, and so \
         on, the root last, and nothing after it"
    )]
    AfterRoot { position: usize, subject: String },
    #[error(
        "the chain leads to no root: `{issuer}`, which issued `{subject}`, is not in the file; append it (and its \
         issuers, up to the self-signed root, which is never sent)"
    )]
    NoRoot { subject: String, issuer: String },
    #[error(
        "the name constraints of `{subject}` cannot be read: issue it with names and addresses that are well formed"
    )]
    BrokenConstraints { subject: String },
    #[error(
        "the name constraints of `{subject}` permit no host at all: issue it for the names that policies inspect"
    )]
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
    #[error("too many leaves were asked for that would carry a refusal alone: {0} a second are minted")]
    TooMany(u32),
    #[error("the leaf could not be signed ({0})")]
    Signing(rcgen::Error),
    #[error("the leaf could not be put into a TLS configuration ({0})")]
    Configuration(rustls::Error),
}

/// `2026-11-21T08:00:00Z`, or nothing for a year that cannot be written so.
pub(super) fn rfc3339(at: OffsetDateTime) -> String {
    at.format(&Rfc3339).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use rcgen::{
        BasicConstraints, CidrSubnet, ExtendedKeyUsagePurpose, GeneralSubtree, IsCa, KeyPair,
        KeyUsagePurpose, NameConstraints,
    };

    use super::*;
    use crate::tls::authority::Authority;
    use crate::tls::testing::TestCa;

    fn load(certificates: &str, key: &str) -> AuthorityError {
        Authority::load(certificates, key, SystemTime::now()).unwrap_err()
    }

    fn root_with(edit: impl FnOnce(&mut rcgen::CertificateParams)) -> AuthorityError {
        let ca = TestCa::root_with("Odd", KeyPair::generate().unwrap(), edit);
        load(&ca.pem(), &ca.key_pem())
    }

    #[test]
    fn a_file_without_a_certificate_is_said_also_when_the_files_are_swapped() {
        let ca = TestCa::root("A");
        let swapped = load(&ca.key_pem(), &ca.pem());
        assert!(
            matches!(swapped, AuthorityError::NoCertificate { hint } if hint.contains("swapped")),
            "{swapped}"
        );
        assert!(matches!(load("", &ca.key_pem()), AuthorityError::NoCertificate { hint: "" }));
    }

    #[test]
    fn a_broken_certificate_is_said_with_its_position() {
        let ca = TestCa::root("A");
        let broken = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n";
        for text in [format!("{}{broken}", ca.pem()), ca.pem() + "-----BEGIN CERTIFICATE-----\n!!\n"] {
            let error = load(&text, &ca.key_pem());
            assert!(matches!(error, AuthorityError::BrokenCertificate { position: 2, .. }), "{error}");
        }
    }

    #[test]
    fn a_file_without_a_usable_key_is_said_with_the_reason() {
        let ca = TestCa::root("A");
        assert!(matches!(load(&ca.pem(), ""), AuthorityError::NoKey { hint: "" }));
        assert!(
            matches!(load(&ca.pem(), &ca.pem()), AuthorityError::NoKey { hint } if hint.contains("swapped"))
        );
        for header in ["ENCRYPTED PRIVATE KEY-----\n", "EC PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\n"] {
            let text = format!("-----BEGIN {header}AAAA\n-----END {}", header.lines().next().unwrap());
            assert!(matches!(load(&ca.pem(), &text), AuthorityError::EncryptedKey), "{text}");
        }
        let no_key = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";
        assert!(matches!(load(&ca.pem(), no_key), AuthorityError::UnsupportedKey));
        let cut = "-----BEGIN PRIVATE KEY-----\nAAAA\n";
        assert!(matches!(load(&ca.pem(), cut), AuthorityError::BrokenKey { .. }));
    }

    #[test]
    fn a_key_of_another_ca_is_said() {
        let error = load(&TestCa::root("A").pem(), &TestCa::root("B").key_pem());
        assert!(matches!(error, AuthorityError::KeyMismatch { subject } if subject == "CN=A"));
    }

    #[test]
    fn a_certificate_that_may_not_issue_is_said() {
        let error = root_with(|params| params.is_ca = IsCa::ExplicitNoCa);
        assert!(matches!(error, AuthorityError::NotACa { subject } if subject == "CN=Odd"));
        for usages in [vec![], vec![KeyUsagePurpose::DigitalSignature]] {
            let error = root_with(|params| params.key_usages = usages);
            assert!(matches!(error, AuthorityError::NoKeyCertSign { .. }), "{error}");
        }
    }

    #[test]
    fn a_ca_outside_its_time_is_said_with_the_date() {
        let day = Duration::from_secs(24 * 60 * 60);
        let error = root_with(|params| params.not_after = (SystemTime::now() - day).into());
        assert!(matches!(error, AuthorityError::Expired { .. }), "{error}");
        assert!(error.to_string().contains("T"), "{error}");
        let error = root_with(|params| params.not_before = (SystemTime::now() + day).into());
        assert!(matches!(error, AuthorityError::NotYetValid { .. }), "{error}");
    }

    #[test]
    fn a_chain_out_of_order_or_without_its_root_is_said() {
        let root = TestCa::root("Root");
        let middle = root.intermediate("Middle", |_| {});
        let issuing = middle.intermediate("Issuing", |_| {});
        let (r, m, i, key) = (root.pem(), middle.pem(), issuing.pem(), issuing.key_pem());
        assert!(
            matches!(load(&format!("{i}{m}"), &key), AuthorityError::NoRoot { issuer, .. } if issuer == "CN=Root")
        );
        assert!(matches!(load(&i, &key), AuthorityError::NoRoot { .. }));
        assert!(matches!(load(&format!("{i}{r}{m}"), &key), AuthorityError::WrongOrder { .. }));
        assert!(matches!(load(&format!("{m}{i}{r}"), &key), AuthorityError::WrongOrder { .. }));
        assert!(matches!(load(&format!("{r}{m}{i}"), &key), AuthorityError::AfterRoot { position: 2, .. }));
        assert!(matches!(
            load(&format!("{i}{m}{r}"), &middle.key_pem()),
            AuthorityError::KeyNotOfFirst { position: 2, .. }
        ));
    }

    #[test]
    fn a_chain_whose_signatures_or_limits_do_not_hold_is_said() {
        let root = TestCa::root("Root");
        let forged = TestCa::root("Root").intermediate("Issuing", |_| {});
        let error = load(&(forged.pem() + &root.pem()), &forged.key_pem());
        assert!(matches!(error, AuthorityError::NotAccepted { .. }), "{error}");

        let narrow =
            root.intermediate("Narrow", |params| params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0)));
        let below = narrow.intermediate("Below", |_| {});
        let error = load(&below.chain_pem(), &below.key_pem());
        assert!(matches!(error, AuthorityError::NotAccepted { .. }), "{error}");

        let mail = root.intermediate("Mail", |params| {
            params.extended_key_usages = vec![ExtendedKeyUsagePurpose::EmailProtection];
        });
        let error = load(&mail.chain_pem(), &mail.key_pem());
        assert!(matches!(error, AuthorityError::NotAccepted { .. }), "{error}");
    }

    #[test]
    fn a_ca_that_permits_no_host_is_said() {
        let error = root_with(|params| {
            params.name_constraints = Some(NameConstraints {
                permitted_subtrees: vec![],
                excluded_subtrees: vec![
                    GeneralSubtree::DnsName(String::new()),
                    GeneralSubtree::IpAddress(CidrSubnet::V4([0; 4], [0; 4])),
                ],
            });
        });
        assert!(matches!(error, AuthorityError::PermitsNothing { .. }), "{error}");
    }
}
