//! CAs of every shape, and handshakes in memory, for the tests of this module.

use std::sync::Arc;

use rcgen::{
    BasicConstraints, Certificate, CertificateParams, DistinguishedName, DnType, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use rustls::client::WebPkiServerVerifier;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::server::WebPkiClientVerifier;
use rustls::{
    ClientConfig, ClientConnection, Connection, RootCertStore, ServerConfig, ServerConnection,
    SupportedProtocolVersion,
};

use super::{PROVIDER, VERSIONS};

/// A CA with its issuers.
pub(super) struct TestCa {
    params: CertificateParams,
    key: KeyPair,
    certificate: Certificate,
    /// PEM of the issuers, the root last.
    above: String,
}

impl TestCa {
    pub(super) fn root(name: &str) -> Self {
        Self::root_with(name, KeyPair::generate().unwrap(), |_| {})
    }

    pub(super) fn root_with(name: &str, key: KeyPair, edit: impl FnOnce(&mut CertificateParams)) -> Self {
        let mut params = ca_params(name);
        edit(&mut params);
        let certificate = params.self_signed(&key).unwrap();
        Self { params, key, certificate, above: String::new() }
    }

    pub(super) fn intermediate(&self, name: &str, edit: impl FnOnce(&mut CertificateParams)) -> Self {
        let mut params = ca_params(name);
        params.use_authority_key_identifier_extension = true;
        edit(&mut params);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer()).unwrap();
        Self { params, key, certificate, above: self.chain_pem() }
    }

    /// Another certificate for the same name and key.
    pub(super) fn reissued(&self) -> String {
        let mut params = self.params.clone();
        params.serial_number = Some(4711.into());
        params.self_signed(&self.key).unwrap().pem()
    }

    /// A certificate for a server or client of this name, and its key.
    pub(super) fn issue(&self, name: &str) -> (Certificate, KeyPair) {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new([name.to_owned()]).unwrap();
        params.use_authority_key_identifier_extension = true;
        (params.signed_by(&key, &self.issuer()).unwrap(), key)
    }

    fn issuer(&self) -> Issuer<'_, &KeyPair> {
        Issuer::from_params(&self.params, &self.key)
    }

    pub(super) fn pem(&self) -> String {
        self.certificate.pem()
    }

    /// This certificate, its issuer and so on, the root last.
    pub(super) fn chain_pem(&self) -> String {
        self.pem() + &self.above
    }

    pub(super) fn key_pem(&self) -> String {
        self.key.serialize_pem()
    }

    pub(super) fn der(&self) -> CertificateDer<'static> {
        self.certificate.der().clone()
    }
}

fn ca_params(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params
}

/// A client that trusts one root and offers these protocols.
pub(super) fn client(root: CertificateDer<'static>, protocols: &[&str]) -> ClientConfig {
    let mut config = client_speaking(root, VERSIONS);
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
    config
}

/// A client that trusts one root, speaks these versions and offers no protocol.
pub(super) fn client_speaking(
    root: CertificateDer<'static>,
    versions: &[&'static SupportedProtocolVersion],
) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    roots.add(root).unwrap();
    let verifier =
        WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&PROVIDER)).build().unwrap();
    ClientConfig::builder_with_provider(Arc::clone(&PROVIDER))
        .with_protocol_versions(versions)
        .unwrap()
        .with_webpki_verifier(verifier)
        .with_no_client_auth()
}

/// A server with a certificate of this name, which asks for a client certificate where `clients` issue them.
pub(super) fn server(ca: &TestCa, name: &str, clients: Option<&TestCa>) -> Arc<ServerConfig> {
    let (certificate, key) = ca.issue(name);
    let builder =
        ServerConfig::builder_with_provider(Arc::clone(&PROVIDER)).with_protocol_versions(VERSIONS).unwrap();
    let builder = match clients {
        Some(clients) => {
            let mut roots = RootCertStore::empty();
            roots.add(clients.der()).unwrap();
            let verifier =
                WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&PROVIDER));
            builder.with_client_cert_verifier(verifier.build().unwrap())
        }
        None => builder.with_no_client_auth(),
    };
    Arc::new(builder.with_single_cert(vec![certificate.der().clone()], key.into()).unwrap())
}

/// A handshake in memory, up to the point where both sides are done and have read what the other sent.
pub(super) fn handshake(
    client: Arc<ClientConfig>,
    server: Arc<ServerConfig>,
    name: &str,
) -> Result<(ClientConnection, ServerConnection), rustls::Error> {
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let mut client = Connection::Client(ClientConnection::new(client, name)?);
    let mut server = Connection::Server(ServerConnection::new(server)?);
    loop {
        let moved = carry(&mut client, &mut server)? + carry(&mut server, &mut client)?;
        if moved == 0 {
            break;
        }
    }
    match (client, server) {
        (Connection::Client(client), Connection::Server(server)) => Ok((client, server)),
        _ => unreachable!("they were made above"),
    }
}

fn carry(from: &mut Connection, to: &mut Connection) -> Result<usize, rustls::Error> {
    let mut bytes = Vec::new();
    while from.wants_write() {
        from.write_tls(&mut bytes).unwrap();
    }
    let mut rest = bytes.as_slice();
    while !rest.is_empty() {
        to.read_tls(&mut rest).unwrap();
        to.process_new_packets()?;
    }
    Ok(bytes.len())
}
