//! One certificate of a Secret: its DER, its validity, and whether it is a root.

use std::time::SystemTime;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer as _;

use crate::tls::certificate_pem;

/// The parts of a certificate that matter for trust.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Certificate {
    pub(super) der: CertificateDer<'static>,
    pub(super) not_before: SystemTime,
    pub(super) not_after: SystemTime,
    /// It is self-issued: Python and Node accept no other certificate as an anchor.
    pub(super) is_root: bool,
    /// How many CAs may stand below it, if that is limited.
    pub(super) path_length: Option<u32>,
    /// For people.
    pub(super) subject: String,
}

impl Certificate {
    /// Reads one certificate; fails with the reason in words.
    pub(super) fn read(der: CertificateDer<'static>) -> Result<Self, String> {
        let (_, x509) = X509Certificate::from_der(&der).map_err(|error| error.to_string())?;
        let basic = x509.basic_constraints().ok().flatten();
        Ok(Self {
            path_length: basic.and_then(|basic| basic.value.path_len_constraint),
            subject: x509.subject().to_string(),
            not_before: x509.validity().not_before.to_datetime().into(),
            not_after: x509.validity().not_after.to_datetime().into(),
            is_root: x509.subject().as_raw() == x509.issuer().as_raw(),
            der,
        })
    }

    /// Reads all certificates of a PEM text; an empty text has none.
    pub(super) fn all(pem: &str) -> Result<Vec<Self>, String> {
        let each = CertificateDer::pem_slice_iter(pem.as_bytes());
        each.map(|der| der.map_err(|error| error.to_string()).and_then(Self::read)).collect()
    }

    pub(super) fn pem(&self) -> String {
        certificate_pem(&self.der)
    }
}

/// Several certificates as one PEM text.
pub(super) fn pem<'a>(certificates: impl IntoIterator<Item = &'a Certificate>) -> String {
    certificates.into_iter().map(Certificate::pem).collect()
}
