//! The root: read from its Secret with every check, or made.

use std::fmt;
use std::time::{Duration, SystemTime};

use rcgen::{BasicConstraints, CertificateParams, DistinguishedName, DnType, IsCa, KeyPair, KeyUsagePurpose};
use zeroize::Zeroizing;

use super::certificate::{self, Certificate};
use super::{AuthorityError, Data, Slot};
use crate::tls::authority::Authority;
use crate::tls::{certificate_pem, fingerprint};

/// Keys of the root's Secret. What agents trust beside `tls.crt`: `next.crt` and `previous.crt`. What they trust no
/// longer, though a Secret of a namespace still tells them to: `distrusted.crt`.
pub(super) const ROOT: Slot = ("tls.crt", "tls.key");
pub(super) const NEXT: Slot = ("next.crt", "next.key");
pub(super) const PREVIOUS: &str = "previous.crt";
pub(super) const DISTRUSTED: &str = "distrusted.crt";
/// Where cert-manager puts the root that `tls.crt` leads to.
const ISSUER: &str = "ca.crt";

/// How long a root lives that is made here.
const LIFETIME: Duration = Duration::from_secs(3652 * 24 * 60 * 60);
/// Clocks may be this much behind; a root was made this long after its certificate says.
pub(super) const BACKDATED: Duration = Duration::from_secs(5 * 60);
/// For how long agents are given the next root before anything is issued by it, unless something else is set.
const DISTRIBUTION: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// The root that issues intermediates, and all roots that agents are to trust. A Given root may itself be issued by
/// others; then the root that agents trust is the one its chain ends in.
pub struct Root {
    pub(super) authority: Authority,
    pub(super) key: Zeroizing<Vec<u8>>,
    pub(super) next: Option<Next>,
    pub(super) previous: Vec<Certificate>,
    pub(super) distrusted: Vec<Certificate>,
    pub(super) distribution: Duration,
}

/// What agents trust already and nothing is issued by yet.
pub(super) struct Next {
    pub(super) certificates: Vec<Certificate>,
    /// Absent where somebody else announces the root that they will give.
    pub(super) key: Option<Zeroizing<Vec<u8>>>,
}

impl Root {
    /// Reads the Secret of the root: `tls.crt` and `tls.key` (and `ca.crt`, where `tls.crt` does not reach the root);
    /// while it rotates also `next.crt` and `next.key`, which agents trust already and nothing is issued by yet;
    /// `previous.crt`, which they still trust; `distrusted.crt`, which they are no longer to.
    pub fn load(data: &Data, now: SystemTime) -> Result<Self, AuthorityError> {
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
        if is_trusted { Ok(root) } else { Err(AuthorityError::Distrusted) }
    }

    /// The same root, whose successor is given to agents for this long before anything is issued by it.
    #[must_use]
    pub fn distributing(mut self, distribution: Duration) -> Self {
        self.distribution = distribution;
        self
    }

    /// Makes a root: the data of its Secret.
    pub fn generate(now: SystemTime) -> Result<Data, AuthorityError> {
        let (certificate, key) = make(now).map_err(AuthorityError::Unmakable)?;
        let data = Data::from([(ROOT.0.to_owned(), certificate), (ROOT.1.to_owned(), key.to_vec())]);
        Self::load(&data, now).map(|_usable| data)
    }

    /// The roots that agents are to trust, the one in force first.
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

impl fmt::Debug for Root {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Root").field("authority", &self.authority).finish_non_exhaustive()
    }
}

/// Makes a self-signed CA: PEM of the certificate, and of its key as PKCS#8.
pub(super) fn make(now: SystemTime) -> Result<(Vec<u8>, Zeroizing<Vec<u8>>), rcgen::Error> {
    let key = KeyPair::generate()?;
    let mut params = CertificateParams::default();
    params.not_before = (now - BACKDATED).into();
    params.not_after = (now + LIFETIME).into();
    // A namespace's CA stands below it, and below that leaves alone.
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(1));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    // A root and its successor differ by name too: some trust stores look no further.
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

/// Loads a CA that issues, and its key as it stands in the Secret.
fn issuing(
    data: &Data,
    slot: Slot,
    now: SystemTime,
) -> Result<(Authority, Zeroizing<Vec<u8>>), AuthorityError> {
    let mut chain = text(data, slot.0)?.ok_or(AuthorityError::Absent(slot.0))?.to_owned();
    let key = text(data, slot.1)?.ok_or(AuthorityError::Absent(slot.1))?;
    if slot == ROOT
        && let Some(issuer) = text(data, ISSUER)?
        && Certificate::all(&chain).is_ok_and(|all| all.last().is_some_and(|last| !last.is_root))
    {
        chain = format!("{}\n{issuer}", chain.trim_end());
    }
    let authority = Authority::load(&chain, key, now)
        .map_err(|cause| AuthorityError::Unusable { slot, cause: Box::new(cause) })?;
    has_room(slot.0, &authority)?;
    Ok((authority, Zeroizing::new(key.as_bytes().to_vec())))
}

/// Whether a CA and then leaves may stand below each certificate of the chain (RFC 5280 section 4.2.1.9). Of a root
/// rustls does not ask that, and others do.
fn has_room(key: &'static str, authority: &Authority) -> Result<(), AuthorityError> {
    for (der, needed) in authority.certificates().iter().zip(1..) {
        let Ok(Certificate { path_length: Some(most), subject, .. }) = Certificate::read(der.clone()) else {
            continue;
        };
        if most < needed {
            return Err(AuthorityError::PathLength { key, subject, most, needed });
        }
    }
    Ok(())
}

fn next(data: &Data, now: SystemTime) -> Result<Option<Next>, AuthorityError> {
    let announced = certificates(data, NEXT.0)?;
    if announced.is_empty() {
        return Ok(None);
    }
    if !data.contains_key(NEXT.1) {
        return Ok(Some(Next { certificates: announced, key: None }));
    }
    let (_usable, key) = issuing(data, NEXT, now)?;
    Ok(Some(Next { certificates: announced, key: Some(key) }))
}

/// The certificates under a key that need not be there; a text without any is a mistake.
fn certificates(data: &Data, key: &'static str) -> Result<Vec<Certificate>, AuthorityError> {
    let Some(text) = text(data, key)? else { return Ok(Vec::new()) };
    let all = Certificate::all(text).map_err(|reason| AuthorityError::Unreadable { key, reason })?;
    if !all.iter().any(|certificate| certificate.is_root) {
        let reason = "there is no self-signed certificate in it".to_owned();
        return Err(AuthorityError::Unreadable { key, reason });
    }
    Ok(all)
}

fn text<'a>(data: &'a Data, key: &'static str) -> Result<Option<&'a str>, AuthorityError> {
    let Some(bytes) = data.get(key).filter(|bytes| !bytes.is_empty()) else { return Ok(None) };
    str::from_utf8(bytes).map(Some).map_err(|_| AuthorityError::NotText(key))
}

/// The texts of these certificates as data of a Secret.
pub(super) fn written<'a>(certificates: impl IntoIterator<Item = &'a Certificate>) -> Vec<u8> {
    certificate::pem(certificates).into_bytes()
}
