//! The root: read from its Secret with every check, or created.

use std::fmt;
use std::time::{Duration, SystemTime};

use rcgen::{BasicConstraints, CertificateParams, DistinguishedName, DnType, IsCa, KeyPair, KeyUsagePurpose};
use zeroize::Zeroizing;

use super::certificate::{self, Certificate};
use super::{Data, IssuingError, Slot};
use crate::tls::authority::Authority;
use crate::tls::{certificate_pem, fingerprint};

/// Keys of the root's Secret. Besides `tls.crt`, agents trust `next.crt` and `previous.crt`. They must not trust
/// `distrusted.crt` any more, though a namespace's Secret may still contain it.
pub(super) const ROOT: Slot = ("tls.crt", "tls.key");
pub(super) const NEXT: Slot = ("next.crt", "next.key");
pub(super) const PREVIOUS: &str = "previous.crt";
pub(super) const DISTRUSTED: &str = "distrusted.crt";
/// The key under which cert-manager stores the root that `tls.crt` leads to.
const ISSUER: &str = "ca.crt";

/// How long a root lives that is created here.
const LIFETIME: Duration = Duration::from_secs(3652 * 24 * 60 * 60);
/// How far certificates are backdated, since clocks may be behind: a root was created this long after its `notBefore`.
pub(super) const BACKDATED: Duration = Duration::from_secs(5 * 60);
/// For how long agents get the next root before it issues anything, by default.
const DISTRIBUTION: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// The root that issues intermediates, and all roots that agents shall trust. A given root may be issued by others;
/// then agents trust the end of its chain.
pub struct RootCa {
    pub(super) authority: Authority,
    pub(super) key: Zeroizing<Vec<u8>>,
    pub(super) next: Option<NextRoot>,
    pub(super) previous: Vec<Certificate>,
    pub(super) distrusted: Vec<Certificate>,
    pub(super) distribution: Duration,
}

/// The next root: agents trust it already, and it issues nothing yet.
pub(super) struct NextRoot {
    pub(super) certificates: Vec<Certificate>,
    /// Absent if somebody else only announces the root that they will give.
    pub(super) key: Option<Zeroizing<Vec<u8>>>,
}

impl RootCa {
    /// Reads the Secret of the root: `tls.crt` and `tls.key` (and `ca.crt`, if `tls.crt` does not reach the root);
    /// during a rotation also `next.crt` and `next.key`; `previous.crt`, which agents still trust; and
    /// `distrusted.crt`, which they must not trust any more.
    pub fn load(data: &Data, now: SystemTime) -> Result<Self, IssuingError> {
        let (authority, key) = issuing(data, ROOT, now)?;
        let mut previous = certificates(data, PREVIOUS)?;
        previous.retain(|certificate| certificate.is_root && now <= certificate.not_after);
        let root = Self {
            authority,
            key,
            next: next(data, now)?,
            previous,
            distrusted: certificates(data, DISTRUSTED)?,
            distribution: DISTRIBUTION,
        };
        let is_trusted = root.authority.certificates().iter().all(|der| !root.distrusts(der));
        if is_trusted { Ok(root) } else { Err(IssuingError::Distrusted) }
    }

    /// Sets for how long agents get the next root before it issues anything.
    #[must_use]
    pub fn distributing(mut self, distribution: Duration) -> Self {
        self.distribution = distribution;
        self
    }

    /// Creates a root; returns the data of its Secret.
    pub fn generate(now: SystemTime) -> Result<Data, IssuingError> {
        let (certificate, key) = make(now).map_err(IssuingError::Unmakable)?;
        let data = Data::from([(ROOT.0.to_owned(), certificate), (ROOT.1.to_owned(), key.to_vec())]);
        Self::load(&data, now).map(|_usable| data)
    }

    /// The roots that agents shall trust, the present one first.
    pub(super) fn anchors(&self) -> Vec<Certificate> {
        let in_force = self.authority.certificates().last().cloned();
        let in_force = in_force.and_then(|der| Certificate::read(der).ok());
        let next = self.next.iter().flat_map(|next| &next.certificates).filter(|next| next.is_root);
        let mut anchors = Vec::new();
        for certificate in in_force.iter().chain(next).chain(&self.previous) {
            if !anchors.contains(certificate) && !self.distrusts(&certificate.der) {
                anchors.push(certificate.clone());
            }
        }
        anchors
    }

    pub(super) fn distrusts(&self, der: &[u8]) -> bool {
        self.distrusted.iter().any(|distrusted| distrusted.der.as_ref() == der)
    }
}

impl fmt::Debug for RootCa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Root").field("authority", &self.authority).finish_non_exhaustive()
    }
}

/// Creates a self-signed CA: its certificate as PEM, and its key as PEM (PKCS#8).
pub(super) fn make(now: SystemTime) -> Result<(Vec<u8>, Zeroizing<Vec<u8>>), rcgen::Error> {
    let key = KeyPair::generate()?;
    let mut params = CertificateParams::default();
    params.not_before = (now - BACKDATED).into();
    params.not_after = (now + LIFETIME).into();
    // One CA may stand below it (a namespace's), and below that only leaves.
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(1));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    // A root and its successor have different names: some trust stores compare nothing else.
    let mark = fingerprint(key.public_key_raw());
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::OrganizationName, "Postern");
    params
        .distinguished_name
        .push(DnType::CommonName, format!("Postern root {}", mark.get(7..15).unwrap_or_default()));
    let certificate = params.self_signed(&key)?;
    let pem = Zeroizing::new(key.serialize_pem());
    Ok((certificate_pem(certificate.der()).into_bytes(), Zeroizing::new(pem.as_bytes().to_vec())))
}

/// Loads an issuing CA, and its key as the Secret has it.
fn issuing(
    data: &Data,
    slot: Slot,
    now: SystemTime,
) -> Result<(Authority, Zeroizing<Vec<u8>>), IssuingError> {
    let mut chain = text(data, slot.0)?.ok_or(IssuingError::Absent(slot.0))?.to_owned();
    let key = text(data, slot.1)?.ok_or(IssuingError::Absent(slot.1))?;
    if slot == ROOT
        && let Some(issuer) = text(data, ISSUER)?
        && Certificate::all(&chain).is_ok_and(|chain| chain.last().is_some_and(|last| !last.is_root))
    {
        chain = format!("{}\n{issuer}", chain.trim_end());
    }
    let authority = Authority::load(&chain, key, now)
        .map_err(|cause| IssuingError::Unusable { slot, cause: Box::new(cause) })?;
    has_room(slot.0, &authority)?;
    Ok((authority, Zeroizing::new(key.as_bytes().to_vec())))
}

/// Checks the path lengths of the chain (RFC 5280 section 4.2.1.9): a namespace's CA and its leaves must be allowed
/// below. rustls ignores a root's, other clients do not.
fn has_room(key: &'static str, authority: &Authority) -> Result<(), IssuingError> {
    for (der, needed) in authority.certificates().iter().zip(1..) {
        let Ok(Certificate { path_length: Some(most), subject, .. }) = Certificate::read(der.clone()) else {
            continue;
        };
        if most < needed {
            return Err(IssuingError::PathLength { key, subject, most, needed });
        }
    }
    Ok(())
}

fn next(data: &Data, now: SystemTime) -> Result<Option<NextRoot>, IssuingError> {
    let announced = certificates(data, NEXT.0)?;
    if announced.is_empty() {
        return Ok(None);
    }
    if !data.contains_key(NEXT.1) {
        return Ok(Some(NextRoot { certificates: announced, key: None }));
    }
    let (_usable, key) = issuing(data, NEXT, now)?;
    Ok(Some(NextRoot { certificates: announced, key: Some(key) }))
}

/// The certificates under an optional key. A text without a root is an error.
fn certificates(data: &Data, key: &'static str) -> Result<Vec<Certificate>, IssuingError> {
    let Some(text) = text(data, key)? else { return Ok(Vec::new()) };
    let certificates = Certificate::all(text).map_err(|reason| IssuingError::Unreadable { key, reason })?;
    if !certificates.iter().any(|certificate| certificate.is_root) {
        let reason = "there is no self-signed certificate in it".to_owned();
        return Err(IssuingError::Unreadable { key, reason });
    }
    Ok(certificates)
}

fn text<'a>(data: &'a Data, key: &'static str) -> Result<Option<&'a str>, IssuingError> {
    let Some(bytes) = data.get(key).filter(|bytes| !bytes.is_empty()) else { return Ok(None) };
    str::from_utf8(bytes).map(Some).map_err(|_| IssuingError::NotText(key))
}

/// These certificates as PEM, for the data of a Secret.
pub(super) fn written<'a>(certificates: impl IntoIterator<Item = &'a Certificate>) -> Vec<u8> {
    certificate::pem(certificates).into_bytes()
}
