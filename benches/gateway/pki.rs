//! The upstream's authority and leaf, and the roots of a client that trusts it and Postern's CA.

use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use postern::tls::init;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, KeyUsagePurpose};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use rustls::{ClientConfig, RootCertStore, ServerConfig};

/// The file of the upstream's authority.
pub(crate) const UPSTREAM_CA: &str = "upstream-ca.pem";

pub(crate) struct Pki {
    upstream: CertifiedIssuer<'static, KeyPair>,
    roots: Arc<RootCertStore>,
}

impl Pki {
    /// Writes both authorities into a directory.
    pub(crate) fn new(directory: &Path) -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "Bench Upstream CA");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let upstream = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        std::fs::write(directory.join(UPSTREAM_CA), upstream.pem()).unwrap();
        init::init(directory, SystemTime::now()).unwrap();
        let mut roots = RootCertStore::empty();
        for file in [UPSTREAM_CA, init::CERTIFICATE] {
            roots.add(CertificateDer::from_pem_file(directory.join(file)).unwrap()).unwrap();
        }
        Self { upstream, roots: Arc::new(roots) }
    }

    /// A server for these names that speaks h2 and HTTP/1.1.
    pub(crate) fn server(&self, names: &[&str]) -> Arc<ServerConfig> {
        let params = CertificateParams::new(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
        let key = KeyPair::generate().unwrap();
        let leaf = params.unwrap().signed_by(&key, &self.upstream).unwrap();
        let key = PrivatePkcs8KeyDer::from(key.serialize_der());
        let mut config = ServerConfig::builder()
            .with_no_client_auth()
            .with_single_cert(vec![leaf.der().clone()], key.into())
            .unwrap();
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Arc::new(config)
    }

    /// A client that makes a full handshake each time, as many agents do.
    pub(crate) fn client(&self, protocol: &str) -> Arc<ClientConfig> {
        let mut config =
            ClientConfig::builder().with_root_certificates(Arc::clone(&self.roots)).with_no_client_auth();
        config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
        config.resumption = rustls::client::Resumption::disabled();
        Arc::new(config)
    }
}
