//! Signs a certificate under its issuer's name exactly as the issuer's own certificate spells it.
//!
//! rcgen keeps one value for each attribute of a name. Corporate CAs have several of one kind (`DC=corp, DC=example`,
//! two `OU`) and string types of their own, and clients compare names byte by byte. So rcgen writes the certificate
//! without an issuer, the issuer's name is put in as it is, and only then it is signed.

use rcgen::{
    CertificateParams, DistinguishedName, Error, Issuer, KeyIdMethod, KeyPair, PublicKeyData,
    SignatureAlgorithm, SigningKey,
};
use rustls::pki_types::CertificateDer;
use x509_parser::asn1_rs::{Any, FromDer};

const SEQUENCE: u8 = 0x30;
const BIT_STRING: u8 = 0x03;

/// A name and a key that issue certificates.
pub(super) struct Signer {
    /// DER of the issuer's `Name`.
    name: Vec<u8>,
    key: KeyPair,
    draft: Issuer<'static, UnsignedIssuer>,
}

impl Signer {
    /// A signer under `name` (DER of a `Name`), whose certificate has the subject key identifier `identifier`; where
    /// it has none, one is derived from the key.
    pub(super) fn new(name: Vec<u8>, identifier: Option<&[u8]>, key: KeyPair) -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        if let Some(identifier) = identifier {
            params.key_identifier_method = KeyIdMethod::PreSpecified(identifier.to_vec());
        }
        let draft = UnsignedIssuer { algorithm: key.algorithm(), public_key: key.public_key_raw().to_vec() };
        Self { name, key, draft: Issuer::new(params, draft) }
    }

    /// Issues a certificate as `params` describes it for the holder of `subject_key`.
    pub(super) fn sign(
        &self,
        params: &CertificateParams,
        subject_key: &KeyPair,
    ) -> Result<CertificateDer<'static>, Error> {
        let draft = params.signed_by(subject_key, &self.draft)?;
        let (body, algorithm) =
            with_issuer(draft.der(), &self.name).map_err(|_| Error::CouldNotParseCertificate)?;
        let signature = self.key.sign(&body)?;
        Ok(element(SEQUENCE, &[&body, &algorithm, &element(BIT_STRING, &[&[0], &signature])]).into())
    }
}

/// Stands for the signer while rcgen writes, and signs nothing.
struct UnsignedIssuer {
    algorithm: &'static SignatureAlgorithm,
    public_key: Vec<u8>,
}

impl PublicKeyData for UnsignedIssuer {
    fn der_bytes(&self) -> &[u8] {
        &self.public_key
    }

    fn algorithm(&self) -> &'static SignatureAlgorithm {
        self.algorithm
    }
}

impl SigningKey for UnsignedIssuer {
    fn sign(&self, _body: &[u8]) -> Result<Vec<u8>, Error> {
        Ok(Vec::new())
    }
}

/// The to-be-signed part of `certificate` with `name` as its issuer, and the signature algorithm (RFC 5280 section
/// 4.1: version, serial number and algorithm stand before the issuer).
fn with_issuer(certificate: &[u8], name: &[u8]) -> Result<(Vec<u8>, Vec<u8>), x509_parser::asn1_rs::Error> {
    let (_, whole) = Any::from_der(certificate).map_err(flat)?;
    let (after_body, body) = Any::from_der(whole.data).map_err(flat)?;
    let mut rest = body.data;
    for _ in ["version", "serialNumber", "signature"] {
        (rest, _) = Any::from_der(rest).map_err(flat)?;
    }
    let before = &body.data[..body.data.len() - rest.len()];
    let (after, _no_issuer) = Any::from_der(rest).map_err(flat)?;
    let (after_algorithm, _) = Any::from_der(after_body).map_err(flat)?;
    let algorithm = &after_body[..after_body.len() - after_algorithm.len()];
    Ok((element(SEQUENCE, &[before, name, after]), algorithm.to_vec()))
}

fn flat(error: x509_parser::nom::Err<x509_parser::asn1_rs::Error>) -> x509_parser::asn1_rs::Error {
    match error {
        x509_parser::nom::Err::Error(error) | x509_parser::nom::Err::Failure(error) => error,
        x509_parser::nom::Err::Incomplete(needed) => x509_parser::asn1_rs::Error::Incomplete(needed),
    }
}

/// One DER element: tag, length, and the parts as its content (X.690 section 8.1).
fn element(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    let mut der = Vec::with_capacity(length + 6);
    der.push(tag);
    if length < 0x80 {
        der.push(length as u8);
    } else {
        let octets = length.to_be_bytes();
        let significant = &octets[length.leading_zeros() as usize / 8..];
        der.push(0x80 | significant.len() as u8);
        der.extend_from_slice(significant);
    }
    for part in parts {
        der.extend_from_slice(part);
    }
    der
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_takes_as_many_octets_as_it_needs() {
        assert_eq!(element(0x04, &[&[7; 3]]), [4, 3, 7, 7, 7]);
        assert_eq!(element(0x04, &[&[7; 0x80]])[..3], [4, 0x81, 0x80]);
        assert_eq!(element(0x04, &[&[7; 300]])[..4], [4, 0x82, 0x01, 0x2c]);
    }
}
