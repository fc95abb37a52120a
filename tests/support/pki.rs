//! A certificate authority for tests: its files, the leaves it signs, and the roots that trust it.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, GeneralSubtree,
    IsCa, KeyPair, KeyUsagePurpose, NameConstraints, SanType,
};
use rustls::RootCertStore;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tempfile::TempDir;
use time::{Duration, OffsetDateTime};

/// A root authority, with `ca-cert.pem` and `ca-key.pem` in a directory of its own.
pub(crate) struct Pki {
    directory: TempDir,
    issuer: CertifiedIssuer<'static, KeyPair>,
}

/// A leaf with its key, for a server or for a client.
pub(crate) struct Identity {
    pub(crate) certificate: CertificateDer<'static>,
    pub(crate) certificate_pem: String,
    key: KeyPair,
}

impl Pki {
    /// An ECDSA P-256 root, valid from an hour ago for a year.
    pub(crate) fn new(common_name: &str) -> Self {
        Self::with(common_name, |_| ())
    }

    /// The same root, changed before it is signed: expired, no authority at all, …
    pub(crate) fn with(common_name: &str, change: impl FnOnce(&mut CertificateParams)) -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, common_name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        params.not_before = OffsetDateTime::now_utc() - Duration::hours(1);
        params.not_after = OffsetDateTime::now_utc() + Duration::days(365);
        change(&mut params);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("ca-cert.pem"), issuer.pem()).unwrap();
        std::fs::write(directory.path().join("ca-key.pem"), issuer.key().serialize_pem()).unwrap();
        Self { directory, issuer }
    }

    /// The same root, which may vouch for these names alone.
    pub(crate) fn permitting(common_name: &str, names: &[&str]) -> Self {
        Self::with(common_name, |params| {
            let permitted = names.iter().map(|name| GeneralSubtree::DnsName((*name).to_owned()));
            params.name_constraints = Some(NameConstraints {
                permitted_subtrees: permitted.collect(),
                excluded_subtrees: Vec::new(),
            });
        })
    }

    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }

    pub(crate) fn certificate_path(&self) -> PathBuf {
        self.directory.path().join("ca-cert.pem")
    }

    pub(crate) fn key_path(&self) -> PathBuf {
        self.directory.path().join("ca-key.pem")
    }

    /// `sha256:` and 64 hex digits of the certificate.
    pub(crate) fn fingerprint(&self) -> String {
        let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, self.issuer.der());
        let hex: String = digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        format!("sha256:{hex}")
    }

    /// Roots that trust this authority and nobody else.
    pub(crate) fn roots(&self) -> Arc<RootCertStore> {
        let mut roots = RootCertStore::empty();
        roots.add(self.issuer.der().clone()).unwrap();
        Arc::new(roots)
    }

    /// A leaf for these names, DNS names or addresses, for servers and clients alike.
    pub(crate) fn leaf(&self, names: &[&str]) -> Identity {
        self.leaf_with(names, |_| ())
    }

    /// The same leaf, changed before it is signed.
    pub(crate) fn leaf_with(&self, names: &[&str], change: impl FnOnce(&mut CertificateParams)) -> Identity {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, names[0]);
        params.subject_alt_names = names.iter().map(|name| subject_alternative_name(name)).collect();
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.use_authority_key_identifier_extension = true;
        params.not_before = OffsetDateTime::now_utc() - Duration::hours(1);
        params.not_after = OffsetDateTime::now_utc() + Duration::days(1);
        change(&mut params);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        Identity { certificate: certificate.der().clone(), certificate_pem: certificate.pem(), key }
    }
}

impl Identity {
    pub(crate) fn chain(&self) -> Vec<CertificateDer<'static>> {
        vec![self.certificate.clone()]
    }

    pub(crate) fn key(&self) -> PrivateKeyDer<'static> {
        PrivatePkcs8KeyDer::from(self.key.serialize_der()).into()
    }

    pub(crate) fn key_pem(&self) -> String {
        self.key.serialize_pem()
    }
}

fn subject_alternative_name(name: &str) -> SanType {
    match name.parse::<IpAddr>() {
        Ok(address) => SanType::IpAddress(address),
        Err(_) => SanType::DnsName(name.try_into().unwrap()),
    }
}
