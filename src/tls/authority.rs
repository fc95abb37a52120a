//! The CA that vouches for inspected hosts: loaded with every check, then it mints leaves.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rcgen::string::Ia5String;
use rcgen::{
    CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair, KeyUsagePurpose, SanType,
    SerialNumber,
};
use rustls::RootCertStore;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::sign::{CertifiedKey, SigningKey};
use time::OffsetDateTime;

use super::chain::Chain;
pub use super::defect::{AuthorityError, MintError};
use super::sign::Signer;
use super::{PROVIDER, fingerprint, key};
use crate::policy::name::Host;

/// Clients' clocks may be this much behind.
const BACKDATED: Duration = Duration::from_secs(5 * 60);
/// A leaf lives 24 hours in all; both of its ends are inclusive.
const LIFETIME: Duration = Duration::from_secs(24 * 60 * 60 - 1);
/// The longest common name (RFC 5280, `ub-common-name`).
const COMMON_NAME: usize = 64;

/// A CA that was found fit to issue: its key, its chain, and one leaf key.
///
/// All leaves of one `Authority` share a P-256 key that is drawn when it is loaded and never leaves memory: whoever
/// could read one leaf key there could read them all, and the CA's beside them. A key for each would more than double
/// the cost of a leaf.
pub struct Authority {
    chain: Chain,
    fingerprint: String,
    signer: Signer,
    leaf_key: KeyPair,
    /// The same key as rustls signs with it.
    leaf_signing_key: Arc<dyn SigningKey>,
}

/// A certificate for one host, ready to be presented.
#[derive(Debug, Clone)]
pub struct Leaf {
    /// The leaf and the intermediates after it, never the root; and the leaf's key.
    pub certified: Arc<CertifiedKey>,
    pub not_before: SystemTime,
    pub not_after: SystemTime,
}

impl Authority {
    /// Loads a CA from PEM texts: the issuing certificate followed by its chain up to the root, and its key. Every
    /// certificate is checked, the key must be the issuing one's, and a leaf is minted and verified against the root
    /// as a client would.
    pub fn load(certificate_pem: &str, key_pem: &str, now: SystemTime) -> Result<Self, AuthorityError> {
        let chain = Chain::read(certificate_pem, now.into())?;
        let key = key::read(key_pem)?;
        chain.is_of_key(key.public_key_raw())?;
        let signer = Signer::new(chain.name.clone(), chain.identifier.as_deref(), key);
        let failed = |cause| AuthorityError::NotMinting { subject: chain.subject.clone(), cause };
        let leaf_key = KeyPair::generate().map_err(|error| failed(MintError::Signing(error)))?;
        let leaf_signing_key = PROVIDER
            .key_provider
            .load_private_key(PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(leaf_key.serialized_der().to_vec())))
            .map_err(|error| failed(MintError::Configuration(error)))?;
        let fingerprint = chain.certificates.first().map(|der| fingerprint(der)).unwrap_or_default();
        let authority = Self { chain, fingerprint, signer, leaf_key, leaf_signing_key };
        authority.check_itself(now)?;
        Ok(authority)
    }

    /// Names the issuing certificate: `sha256:` and 64 hex digits of its DER.
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    /// The issuing certificate's subject, for people.
    pub fn subject(&self) -> &str {
        &self.chain.subject
    }

    /// The issuing certificate, its issuer and so on, the root last.
    pub fn certificates(&self) -> &[CertificateDer<'static>] {
        &self.chain.certificates
    }

    /// When the first certificate of the chain becomes, and the first of it ceases to be, valid.
    pub fn validity(&self) -> (SystemTime, SystemTime) {
        (self.chain.not_before.into(), self.chain.not_after.into())
    }

    /// Whether X.509 name constraints limit what it may vouch for.
    pub fn is_constrained(&self) -> bool {
        !self.chain.constraints.is_empty()
    }

    /// What works, but will be refused by some clients, for people.
    pub fn caveats(&self) -> &[String] {
        &self.chain.caveats
    }

    /// Whether the name constraints of every certificate of the chain permit a leaf for `host`.
    pub fn permits(&self, host: &Host) -> bool {
        self.chain.constraints.iter().all(|constraints| constraints.permit(host))
    }

    /// Mints a leaf for one host: ECDSA P-256, at most 24 hours, backdated by five minutes, within the validity of the
    /// whole chain; never a wildcard.
    pub fn mint(&self, host: &Host, now: SystemTime) -> Result<Leaf, MintError> {
        if !self.permits(host) {
            return Err(MintError::NotPermitted(host.clone()));
        }
        let (not_before, not_after) = self.leaf_validity(now.into())?;
        let params = leaf_params(host, not_before, not_after).map_err(MintError::Signing)?;
        let leaf = self.signer.sign(&params, &self.leaf_key).map_err(MintError::Signing)?;
        let (_root, sent) = self.chain.certificates.split_last().unwrap_or((&leaf, &[]));
        let presented = std::iter::once(leaf.clone()).chain(sent.iter().cloned()).collect();
        Ok(Leaf {
            certified: Arc::new(CertifiedKey::new(presented, Arc::clone(&self.leaf_signing_key))),
            not_before: not_before.into(),
            not_after: not_after.into(),
        })
    }

    fn leaf_validity(&self, now: OffsetDateTime) -> Result<(OffsetDateTime, OffsetDateTime), MintError> {
        let Chain { not_before, not_after, .. } = self.chain;
        if now < not_before {
            return Err(MintError::NotYetValid(not_before));
        }
        if now > not_after {
            return Err(MintError::Expired(not_after));
        }
        let from = now - BACKDATED;
        Ok((from.max(not_before), (from + LIFETIME).min(not_after)))
    }

    /// Mints a leaf for a host that the constraints permit and verifies it as rustls's clients do.
    fn check_itself(&self, now: SystemTime) -> Result<(), AuthorityError> {
        let subject = || self.chain.subject.clone();
        let host = self.permitted_host().ok_or_else(|| AuthorityError::PermitsNothing { subject: subject() })?;
        let leaf =
            self.mint(&host, now).map_err(|cause| AuthorityError::NotMinting { subject: subject(), cause })?;
        self.verify(&host, &leaf, now).map_err(|cause| AuthorityError::NotAccepted {
            subject: subject(),
            host,
            cause,
        })
    }

    fn permitted_host(&self) -> Option<Host> {
        let unconstrained = Host::parse("postern-self-check.invalid").ok();
        let examples = self.chain.constraints.iter().flat_map(|constraints| constraints.examples());
        examples.chain(unconstrained).find(|host| self.permits(host))
    }

    fn verify(&self, host: &Host, leaf: &Leaf, now: SystemTime) -> Result<(), rustls::Error> {
        let mut roots = RootCertStore::empty();
        if let Some(root) = self.chain.certificates.last() {
            roots.add(root.clone())?;
        }
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&PROVIDER))
            .build()
            .map_err(|error| rustls::Error::General(error.to_string()))?;
        let name = ServerName::try_from(host.to_string()).map_err(|error| rustls::Error::General(error.to_string()))?;
        let at = UnixTime::since_unix_epoch(now.duration_since(UNIX_EPOCH).unwrap_or_default());
        let [end_entity, intermediates @ ..] = leaf.certified.cert.as_slice() else {
            return Err(rustls::Error::NoCertificatesPresented);
        };
        verifier.verify_server_cert(end_entity, intermediates, &name, &[], at).map(|_verified| ())
    }
}

impl fmt::Debug for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { chain, fingerprint, .. } = self;
        f.debug_struct("Authority").field("subject", &chain.subject).field("fingerprint", fingerprint).finish()
    }
}

/// What a leaf says (RFC 5280 section 4.2). The name stands in the alternative names; the common name repeats it where
/// it fits, but never an address: OpenSSL would hold it against the CA's DNS constraints.
fn leaf_params(
    host: &Host,
    not_before: OffsetDateTime,
    not_after: OffsetDateTime,
) -> Result<CertificateParams, rcgen::Error> {
    let mut params = CertificateParams::default();
    params.not_before = not_before;
    params.not_after = not_after;
    params.serial_number = Some(serial_number()?);
    params.distinguished_name = DistinguishedName::new();
    match host {
        Host::Name(name) => {
            params.subject_alt_names = vec![SanType::DnsName(Ia5String::try_from(name.as_str())?)];
            match name.as_str().len() <= COMMON_NAME {
                true => params.distinguished_name.push(DnType::CommonName, name.as_str()),
                false => params.distinguished_name.push(DnType::OrganizationName, "Postern"),
            }
        }
        Host::Ip(ip) => {
            params.subject_alt_names = vec![SanType::IpAddress(*ip)];
            params.distinguished_name.push(DnType::OrganizationName, "Postern");
        }
    }
    // Not "no CA" alone: this one also writes the subject key identifier.
    params.is_ca = IsCa::ExplicitNoCa;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    Ok(params)
}

/// 128 random bits but the two first, which make it positive and always 16 octets long.
pub(super) fn serial_number() -> Result<SerialNumber, rcgen::Error> {
    let mut octets = [0; 16];
    aws_lc_rs::rand::fill(&mut octets).map_err(|_| rcgen::Error::RingUnspecified)?;
    octets[0] = octets[0] & 0x3f | 0x40;
    Ok(SerialNumber::from_slice(&octets))
}
