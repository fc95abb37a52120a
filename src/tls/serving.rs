//! The certificate that a server of Postern's own presents; it is replaced while connections live.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use arc_swap::ArcSwapOption;
use rcgen::string::Ia5String;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose, SanType,
};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{RootCertStore, ServerConfig};
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer;
use zeroize::Zeroizing;

use super::authority::serial_number;
use super::{PROVIDER, VERSIONS, certificate_pem, fingerprint};

/// Clients' clocks may be this much behind.
pub const BACKDATED: Duration = Duration::from_secs(5 * 60);

/// A certificate with its chain and key, ready to be presented.
#[derive(Clone)]
pub struct Serving {
    certified: Arc<CertifiedKey>,
    fingerprint: String,
    pub not_before: SystemTime,
    pub not_after: SystemTime,
}

/// Why a certificate cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum ServingError {
    #[error("it holds no certificate in PEM")]
    NoCertificate,
    #[error("its certificate is broken ({0})")]
    BrokenCertificate(String),
    #[error("it holds no private key in PEM")]
    NoKey,
    #[error("its key cannot be used with its certificate ({0})")]
    Key(rustls::Error),
    #[error("its certificate is refused by those who trust its CA ({0})")]
    Refused(rustls::Error),
}

impl Serving {
    /// Reads PEM texts: the certificate followed by its chain, and its key, which must be that certificate's.
    ///
    /// # Errors
    /// Which of the two cannot be used, and why.
    pub fn read(certificates: &[u8], key: &[u8]) -> Result<Self, ServingError> {
        let chain = read_certificates(certificates)?;
        let first = chain.first().ok_or(ServingError::NoCertificate)?;
        let (not_before, not_after) = validity(first)?;
        let fingerprint = fingerprint(first);
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|_| ServingError::NoKey)?;
        let certified = CertifiedKey::from_der(chain, key, &PROVIDER).map_err(ServingError::Key)?;
        Ok(Self { certified: Arc::new(certified), fingerprint, not_before, not_after })
    }

    /// Whether a client that trusts these PEM certificates and asks for `name` would accept it at that time.
    ///
    /// # Errors
    /// Why it would not.
    pub fn is_accepted(&self, roots: &[u8], name: &str, at: SystemTime) -> Result<(), ServingError> {
        let mut trusted = RootCertStore::empty();
        for root in read_certificates(roots)? {
            trusted.add(root).map_err(ServingError::Refused)?;
        }
        let general = |error: String| ServingError::Refused(rustls::Error::General(error));
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(trusted), Arc::clone(&PROVIDER))
            .build()
            .map_err(|error| general(error.to_string()))?;
        let name = ServerName::try_from(name.to_owned()).map_err(|error| general(error.to_string()))?;
        let at = UnixTime::since_unix_epoch(at.duration_since(UNIX_EPOCH).unwrap_or_default());
        let [first, chain @ ..] = self.certified.cert.as_slice() else {
            return Err(ServingError::NoCertificate);
        };
        verifier
            .verify_server_cert(first, chain, &name, &[], at)
            .map(|_verified| ())
            .map_err(ServingError::Refused)
    }

    /// `sha256:` and 64 hex digits.
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }
}

impl fmt::Debug for Serving {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Serving").field("fingerprint", &self.fingerprint).finish_non_exhaustive()
    }
}

/// The certificate in force; each handshake takes the newest. Until there is one, handshakes fail.
#[derive(Debug, Default)]
pub struct Presented(ArcSwapOption<Serving>);

impl Presented {
    pub fn present(&self, serving: Serving) {
        self.0.store(Some(Arc::new(serving)));
    }

    /// The certificate that the next handshake gets.
    pub fn newest(&self) -> Option<Arc<Serving>> {
        self.0.load_full()
    }
}

impl ResolvesServerCert for Presented {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.0.load().as_ref().map(|serving| Arc::clone(&serving.certified))
    }
}

/// TLS 1.2 and 1.3 for a server that offers these protocols, the most wanted first.
///
/// # Errors
/// None in practice: the provider speaks both versions.
pub fn server_config(
    presented: Arc<Presented>,
    protocols: &[&str],
) -> Result<Arc<ServerConfig>, rustls::Error> {
    let mut config = ServerConfig::builder_with_provider(Arc::clone(&PROVIDER))
        .with_protocol_versions(VERSIONS)?
        .with_no_client_auth()
        .with_cert_resolver(presented);
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
    Ok(Arc::new(config))
}

/// PEM of a new certificate, and of the CA that issued it and nothing else.
pub struct Issued {
    pub ca: String,
    pub certificate: String,
    /// PKCS#8.
    pub key: Zeroizing<String>,
}

/// Issues a server's certificate for these names, ECDSA P-256, by a CA made for it alone, whose key is forgotten at
/// once: nobody can issue another one by it.
///
/// # Errors
/// A name is no ASCII, or the system has no randomness.
pub fn issue(names: &[String], now: SystemTime, lifetime: Duration) -> Result<Issued, rcgen::Error> {
    let (ca_key, key) = (KeyPair::generate()?, KeyPair::generate()?);
    let mut ca = valid(now, lifetime)?;
    ca.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    ca.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    // Two CAs in one bundle differ by name too: some verifiers look no further.
    let mark = fingerprint(ca_key.public_key_raw());
    let name = format!("Postern webhook CA {}", mark.get(7..15).unwrap_or_default());
    ca.distinguished_name.push(DnType::CommonName, name);
    let mut leaf = valid(now, lifetime)?;
    for name in names {
        leaf.subject_alt_names.push(SanType::DnsName(Ia5String::try_from(name.as_str())?));
    }
    leaf.is_ca = IsCa::ExplicitNoCa;
    leaf.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    leaf.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    leaf.use_authority_key_identifier_extension = true;
    let certificate = leaf.signed_by(&key, &Issuer::from_params(&ca, &ca_key))?;
    Ok(Issued {
        ca: ca.self_signed(&ca_key)?.pem(),
        certificate: certificate.pem(),
        key: Zeroizing::new(key.serialize_pem()),
    })
}

/// The certificates of a PEM bundle that are valid at a time, each once, as PEM; what is no certificate is left out.
pub fn still_valid(bundle: &[u8], at: SystemTime) -> String {
    let read: BTreeMap<String, CertificateDer<'_>> = CertificateDer::pem_slice_iter(bundle)
        .filter_map(Result::ok)
        .filter(|certificate| validity(certificate).is_ok_and(|(_, not_after)| at <= not_after))
        .map(|certificate| (fingerprint(&certificate), certificate))
        .collect();
    read.values().map(|certificate| certificate_pem(certificate)).collect()
}

fn valid(now: SystemTime, lifetime: Duration) -> Result<CertificateParams, rcgen::Error> {
    let mut params = CertificateParams::default();
    params.not_before = (now - BACKDATED).into();
    params.not_after = (now + lifetime).into();
    params.serial_number = Some(serial_number()?);
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::OrganizationName, "Postern");
    Ok(params)
}

fn read_certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, ServingError> {
    let read: Vec<_> = CertificateDer::pem_slice_iter(pem)
        .collect::<Result<_, _>>()
        .map_err(|error| ServingError::BrokenCertificate(error.to_string()))?;
    if read.is_empty() { Err(ServingError::NoCertificate) } else { Ok(read) }
}

fn validity(certificate: &CertificateDer<'_>) -> Result<(SystemTime, SystemTime), ServingError> {
    let (_, x509) = X509Certificate::from_der(certificate)
        .map_err(|error| ServingError::BrokenCertificate(error.to_string()))?;
    let validity = x509.validity();
    Ok((validity.not_before.to_datetime().into(), validity.not_after.to_datetime().into()))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{client, handshake};
    use super::*;

    const DAY: Duration = Duration::from_secs(24 * 60 * 60);

    fn issued(name: &str) -> Issued {
        issue(&[name.to_owned()], SystemTime::now(), DAY).unwrap()
    }

    fn read(issued: &Issued) -> Serving {
        Serving::read(issued.certificate.as_bytes(), issued.key.as_bytes()).unwrap()
    }

    fn der(pem: &str) -> CertificateDer<'static> {
        CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()
    }

    #[test]
    fn what_is_issued_is_accepted_by_those_who_trust_its_ca_for_its_name_in_its_time() {
        let (mine, other) = (issued("a.svc"), issued("a.svc"));
        let (serving, now) = (read(&mine), SystemTime::now());
        assert!(serving.is_accepted(mine.ca.as_bytes(), "a.svc", now).is_ok());
        assert!(serving.is_accepted(mine.ca.as_bytes(), "b.svc", now).is_err());
        assert!(serving.is_accepted(other.ca.as_bytes(), "a.svc", now).is_err());
        assert!(serving.is_accepted(mine.ca.as_bytes(), "a.svc", now + 2 * DAY).is_err());
        assert!(serving.is_accepted((other.ca + &mine.ca).as_bytes(), "a.svc", now).is_ok());
    }

    #[test]
    fn each_handshake_gets_the_newest_certificate() {
        let (first, second) = (issued("a.svc"), issued("a.svc"));
        let presented = Arc::new(Presented::default());
        let config = server_config(Arc::clone(&presented), &["h2", "http/1.1"]).unwrap();
        let trusting = |issued: &Issued| Arc::new(client(der(&issued.ca), &["h2"]));
        assert!(handshake(trusting(&first), Arc::clone(&config), "a.svc").is_err(), "there is none yet");
        presented.present(read(&first));
        let (connection, _) = handshake(trusting(&first), Arc::clone(&config), "a.svc").unwrap();
        assert_eq!(connection.alpn_protocol(), Some(b"h2".as_slice()));
        presented.present(read(&second));
        assert!(handshake(trusting(&first), Arc::clone(&config), "a.svc").is_err());
        assert!(handshake(trusting(&second), config, "a.svc").is_ok());
    }

    #[test]
    fn what_cannot_be_served_is_said() {
        let (mine, other) = (issued("a.svc"), issued("a.svc"));
        let said = |certificate: &str, key: &str| {
            Serving::read(certificate.as_bytes(), key.as_bytes()).unwrap_err().to_string()
        };
        assert!(said("", &mine.key).contains("no certificate"));
        assert!(said(&mine.certificate, "").contains("no private key"));
        assert!(said(&mine.certificate, &other.key).contains("cannot be used with its certificate"));
        let broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        assert!(said(broken, &mine.key).contains("broken"));
    }

    #[test]
    fn a_bundle_loses_what_has_expired_what_is_double_and_what_is_no_certificate() {
        let now = SystemTime::now();
        let young = issue(&[], now, 10 * DAY).unwrap().ca;
        let old = issued("a.svc").ca;
        let bundle = format!("{old}garbage\n{young}{young}");
        assert_eq!(still_valid(bundle.as_bytes(), now + 2 * DAY), young);
        assert_eq!(still_valid(bundle.as_bytes(), now).matches("BEGIN").count(), 2);
        assert_eq!(still_valid(b"", now), "");
    }
}
