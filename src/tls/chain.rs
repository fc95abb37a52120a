//! The certificates of a CA, read and checked one by one: the issuing one first, the root last.

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use time::OffsetDateTime;
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::ParsedExtension;
use x509_parser::prelude::FromDer;

use super::constraint::Constraints;
use super::defect::AuthorityError;

/// A chain that leads from an issuing CA to a self-signed root (both may be one certificate).
pub(super) struct Chain {
    /// The issuing CA, its issuer, and so on; the root last.
    pub(super) certificates: Vec<CertificateDer<'static>>,
    /// The issuing CA's subject, for people.
    pub(super) subject: String,
    /// The issuing CA's subject, as DER.
    pub(super) name: Vec<u8>,
    /// The issuing CA's public key, the bits alone.
    pub(super) public_key: Vec<u8>,
    /// The issuing CA's subject key identifier.
    pub(super) identifier: Option<Vec<u8>>,
    /// From when to when the whole chain is valid.
    pub(super) not_before: OffsetDateTime,
    pub(super) not_after: OffsetDateTime,
    /// Of every certificate that has some; all of them hold.
    pub(super) constraints: Vec<Constraints>,
    /// What some clients will refuse, for people.
    pub(super) caveats: Vec<String>,
}

/// What is read of one certificate.
struct Link {
    subject: String,
    subject_der: Vec<u8>,
    issuer: String,
    issuer_der: Vec<u8>,
    public_key: Vec<u8>,
    identifier: Option<Vec<u8>>,
    not_before: OffsetDateTime,
    not_after: OffsetDateTime,
    constraints: Option<Constraints>,
    caveats: Vec<String>,
}

impl Chain {
    /// Reads PEM certificates and checks each: a CA, that may sign, now, in the order of issuance, up to a root.
    /// Signatures are left to the self-check of the leaf.
    pub(super) fn read(pem: &str, now: OffsetDateTime) -> Result<Self, AuthorityError> {
        let certificates = certificates(pem)?;
        let mut links = Vec::with_capacity(certificates.len());
        for (index, der) in certificates.iter().enumerate() {
            links.push(Link::read(index + 1, der)?);
        }
        in_order(&links)?;
        for link in &links {
            link.is_valid(now)?;
        }
        let not_before = links.iter().map(|link| link.not_before).max().unwrap_or(now);
        let not_after = links.iter().map(|link| link.not_after).min().unwrap_or(now);
        let caveats = links.iter_mut().flat_map(|link| std::mem::take(&mut link.caveats)).collect();
        let constraints = links.iter_mut().filter_map(|link| link.constraints.take()).collect();
        let issuing = links.swap_remove(0);
        Ok(Self {
            certificates,
            subject: issuing.subject,
            name: issuing.subject_der,
            public_key: issuing.public_key,
            identifier: issuing.identifier,
            not_before,
            not_after,
            constraints,
            caveats,
        })
    }

    /// Whether the issuing CA has this public key; where another of the file has it, that is said.
    pub(super) fn is_of_key(&self, public_key: &[u8]) -> Result<(), AuthorityError> {
        if self.public_key == public_key {
            return Ok(());
        }
        for (index, der) in self.certificates.iter().enumerate().skip(1) {
            let link = Link::read(index + 1, der)?;
            if link.public_key == public_key {
                return Err(AuthorityError::KeyNotOfFirst { position: index + 1, subject: link.subject });
            }
        }
        Err(AuthorityError::KeyMismatch { subject: self.subject.clone() })
    }
}

impl Link {
    fn read(position: usize, der: &[u8]) -> Result<Self, AuthorityError> {
        let broken = |reason: String| AuthorityError::BrokenCertificate { position, reason };
        let (rest, x509) = X509Certificate::from_der(der).map_err(|error| broken(error.to_string()))?;
        if !rest.is_empty() {
            return Err(broken("it is followed by other bytes".to_owned()));
        }
        let subject = x509.subject().to_string();
        may_issue(&x509, &subject)?;
        let constraints = match x509.name_constraints() {
            Ok(None) => None,
            Ok(Some(extension)) => match Constraints::read(extension.value) {
                Some(constraints) => Some(constraints),
                None => return Err(AuthorityError::BrokenConstraints { subject }),
            },
            Err(_) => return Err(AuthorityError::BrokenConstraints { subject }),
        };
        let identifier = identifier(&x509);
        let mut caveats = caveats(&x509, &subject, identifier.is_some());
        if constraints.as_ref().is_some_and(Constraints::permit_networks) {
            caveats.push(format!("`{subject}` permits addresses: Bun refuses leaves for them"));
        }
        Ok(Self {
            caveats,
            subject,
            subject_der: x509.subject().as_raw().to_vec(),
            issuer: x509.issuer().to_string(),
            issuer_der: x509.issuer().as_raw().to_vec(),
            public_key: x509.public_key().subject_public_key.data.to_vec(),
            identifier,
            not_before: x509.validity().not_before.to_datetime(),
            not_after: x509.validity().not_after.to_datetime(),
            constraints,
        })
    }

    fn is_root(&self) -> bool {
        self.subject_der == self.issuer_der
    }

    fn is_valid(&self, now: OffsetDateTime) -> Result<(), AuthorityError> {
        let subject = || self.subject.clone();
        if now < self.not_before {
            return Err(AuthorityError::NotYetValid { subject: subject(), at: self.not_before });
        }
        if now > self.not_after {
            return Err(AuthorityError::Expired { subject: subject(), at: self.not_after });
        }
        Ok(())
    }
}

fn certificates(pem: &str) -> Result<Vec<CertificateDer<'static>>, AuthorityError> {
    let mut read = Vec::new();
    for (index, certificate) in CertificateDer::pem_slice_iter(pem.as_bytes()).enumerate() {
        read.push(certificate.map_err(|error| AuthorityError::BrokenCertificate {
            position: index + 1,
            reason: error.to_string(),
        })?);
    }
    if read.is_empty() {
        let hint =
            if pem.contains("PRIVATE KEY-----") { " but a key (are the two files swapped?)" } else { "" };
        return Err(AuthorityError::NoCertificate { hint });
    }
    Ok(read)
}

/// RFC 5280 sections 4.2.1.9 and 4.2.1.3. A CA without keyUsage is refused too: OpenSSL's strict mode, which Python
/// 3.13 has on, refuses what it issues.
fn may_issue(x509: &X509Certificate<'_>, subject: &str) -> Result<(), AuthorityError> {
    if !matches!(x509.basic_constraints(), Ok(Some(extension)) if extension.value.ca) {
        return Err(AuthorityError::NotACa { subject: subject.to_owned() });
    }
    if !matches!(x509.key_usage(), Ok(Some(extension)) if extension.value.key_cert_sign()) {
        return Err(AuthorityError::NoKeyCertSign { subject: subject.to_owned() });
    }
    Ok(())
}

/// Whether each certificate is followed by its issuer, and the last is a root.
fn in_order(links: &[Link]) -> Result<(), AuthorityError> {
    for (index, link) in links.iter().enumerate() {
        let next = links.get(index + 1);
        if link.is_root() {
            let Some(stray) = next else { return Ok(()) };
            return Err(AuthorityError::AfterRoot { position: index + 2, subject: stray.subject.clone() });
        }
        if next.is_some_and(|next| next.subject_der == link.issuer_der) {
            continue;
        }
        let (subject, issuer) = (link.subject.clone(), link.issuer.clone());
        return Err(match links.iter().any(|other| other.subject_der == link.issuer_der) {
            true => AuthorityError::WrongOrder { subject, issuer },
            false => AuthorityError::NoRoot { subject, issuer },
        });
    }
    Ok(())
}

fn identifier(x509: &X509Certificate<'_>) -> Option<Vec<u8>> {
    x509.iter_extensions().find_map(|extension| {
        let ParsedExtension::SubjectKeyIdentifier(identifier) = extension.parsed_extension() else {
            return None;
        };
        Some(identifier.0.to_vec())
    })
}

/// What the specification forbids and only strict clients refuse.
fn caveats(x509: &X509Certificate<'_>, subject: &str, has_identifier: bool) -> Vec<String> {
    let mut found = Vec::new();
    if !has_identifier {
        found.push(format!(
            "`{subject}` has no subjectKeyIdentifier: Python 3.13 and other strict clients refuse it"
        ));
    }
    if !matches!(x509.basic_constraints(), Ok(Some(extension)) if extension.critical) {
        found.push(format!(
            "basicConstraints of `{subject}` are not critical: Python 3.13 and other strict clients refuse it"
        ));
    }
    found
}
