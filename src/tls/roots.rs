//! The upstream side of TLS: what is trusted, and what is shown, for each host.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, RootCertStore};

pub use super::trust::BaseRoots;
use super::trust::Trust;
use super::{PROVIDER, VERSIONS, file};
use crate::policy::name::Host;
use crate::problem::Problem;

/// How many upstream names a configuration keeps sessions of, to resume them.
const SESSIONS: usize = 256;

/// `upstream.roots` and `upstream.tls` of the settings, with absolute paths.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TlsSettings {
    /// PEM files whose certificates are trusted besides the system's.
    pub roots: Vec<PathBuf>,
    /// By host, as users write it.
    pub hosts: BTreeMap<String, HostTls>,
}

/// What holds for one upstream host alone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostTls {
    /// PEM files whose certificates are trusted for this host besides all others.
    pub roots: Vec<PathBuf>,
    /// The client certificate with its chain, PEM.
    pub certificate: Option<PathBuf>,
    /// Its key, PEM, not encrypted.
    pub key: Option<PathBuf>,
}

/// Which protocols are offered to an upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Alpn {
    /// `http/1.1` alone.
    H1,
    /// `h2` before `http/1.1`.
    H2OrH1,
    /// No ALPN extension.
    None,
}

/// The TLS configurations towards upstreams, made once and shared: for each host that has settings of its own, and
/// for all others. There is no way to switch verification off.
#[derive(Debug)]
pub struct UpstreamTls {
    others: Offers,
    hosts: BTreeMap<Host, Offers>,
    base: BaseRoots,
}

/// One set of roots and one client certificate behind every offer of protocols.
#[derive(Debug)]
struct Offers {
    http1: Arc<ClientConfig>,
    http2: Arc<ClientConfig>,
    none: Arc<ClientConfig>,
}

impl UpstreamTls {
    /// Reads all roots and client certificates. `own` is the chain of Postern's own CA, where it has one: a root with
    /// one of its keys is dropped from the system's roots, and an error among those that settings add.
    pub fn load(settings: &TlsSettings, own: &[CertificateDer<'_>]) -> Result<Self, Vec<Problem>> {
        let mut problems = Vec::new();
        let (mut trust, base) = Trust::of_system(own);
        if let Err(found) = trust.add_files("upstream.roots", &settings.roots) {
            problems.extend(found);
        }
        let mut hosts = BTreeMap::new();
        for (name, host) in &settings.hosts {
            match load_host(name, host, trust.clone()) {
                Ok((host, offers)) => {
                    hosts.insert(host, offers);
                }
                Err(found) => problems.extend(found),
            }
        }
        let others = offers(trust.into_store(), None)
            .map_err(|error| problems.push(Problem::at("upstream.roots", error.to_string())));
        match others {
            Ok(others) if problems.is_empty() => Ok(Self { others, hosts, base }),
            Ok(_) | Err(()) => Err(problems),
        }
    }

    /// The configuration for one upstream host. Upstreams are verified against their roots and their name, sessions
    /// are resumed within one configuration, and no early data is sent.
    pub fn client_config(&self, host: &Host, alpn: Alpn) -> Arc<ClientConfig> {
        let offers = self.hosts.get(host).unwrap_or(&self.others);
        Arc::clone(match alpn {
            Alpn::H1 => &offers.http1,
            Alpn::H2OrH1 => &offers.http2,
            Alpn::None => &offers.none,
        })
    }

    /// Where the base of trust comes from.
    pub fn base(&self) -> &BaseRoots {
        &self.base
    }
}

fn load_host(name: &str, settings: &HostTls, mut trust: Trust) -> Result<(Host, Offers), Vec<Problem>> {
    let path = format!("upstream.tls.{name}");
    let mut problems = Vec::new();
    let host = Host::parse(name)
        .map_err(|error| problems.push(Problem::at(&path, format!("expected a host name or an address: {error}"))));
    if let Err(found) = trust.add_files(&format!("{path}.roots"), &settings.roots) {
        problems.extend(found);
    }
    let identity = identity(&path, settings).map_err(|problem| problems.push(problem));
    if let (Ok(host), Ok(identity), true) = (host, identity, problems.is_empty()) {
        match offers(trust.into_store(), identity) {
            Ok(offers) => return Ok((host, offers)),
            Err(error) => problems.push(Problem::at(path, error.to_string())),
        }
    }
    Err(problems)
}

/// The client certificate, if one is set.
fn identity(path: &str, settings: &HostTls) -> Result<Option<Arc<CertifiedKey>>, Problem> {
    let (certificate, key) = match (&settings.certificate, &settings.key) {
        (None, None) => return Ok(None),
        (Some(certificate), Some(key)) => (certificate, key),
        (Some(_), None) => return Err(Problem::at(format!("{path}.key"), "missing: the certificate needs its key")),
        (None, Some(_)) => {
            return Err(Problem::at(format!("{path}.certificate"), "missing: the key needs its certificate"));
        }
    };
    let chain = client_chain(certificate).map_err(|reason| at_file(path, "certificate", certificate, &reason))?;
    let private = client_key(key).map_err(|reason| at_file(path, "key", key, &reason))?;
    CertifiedKey::from_der(chain, private, &PROVIDER)
        .map(|identity| Some(Arc::new(identity)))
        .map_err(|error| at_file(path, "key", key, &format!("it cannot be used with the certificate ({error})")))
}

fn at_file(path: &str, field: &str, file: &Path, reason: &str) -> Problem {
    Problem::at(format!("{path}.{field}"), format!("{}: {reason}", file.display()))
}

fn client_chain(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let text = file::read(path).map_err(|error| format!("it cannot be read ({error})"))?;
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text.as_bytes()).collect();
    match chain {
        Ok(chain) if chain.is_empty() => {
            Err("it holds no certificate: expected PEM, `-----BEGIN CERTIFICATE-----`".to_owned())
        }
        Ok(chain) => Ok(chain),
        Err(error) => Err(format!("it is broken ({error})")),
    }
}

fn client_key(path: &Path) -> Result<PrivateKeyDer<'static>, String> {
    let text = file::read(path).map_err(|error| format!("it cannot be read ({error})"))?;
    PrivateKeyDer::from_pem_slice(text.as_bytes())
        .map_err(|error| format!("it holds no private key that is not encrypted ({error}): expected PEM"))
}

fn offers(roots: RootCertStore, identity: Option<Arc<CertifiedKey>>) -> Result<Offers, rustls::Error> {
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&PROVIDER))
        .build()
        .map_err(|error| rustls::Error::General(error.to_string()))?;
    let builder = ClientConfig::builder_with_provider(Arc::clone(&PROVIDER))
        .with_protocol_versions(VERSIONS)?
        .with_webpki_verifier(verifier);
    let mut config = match identity {
        Some(identity) => {
            builder.with_client_cert_resolver(Arc::new(rustls::sign::SingleCertAndKey::from(identity)))
        }
        None => builder.with_no_client_auth(),
    };
    // Clones share it: the same roots and the same client certificate stand behind every offer.
    config.resumption = Resumption::in_memory_sessions(SESSIONS);
    Ok(Offers {
        http1: offering(&config, &["http/1.1"]),
        http2: offering(&config, &["h2", "http/1.1"]),
        none: Arc::new(config),
    })
}

fn offering(config: &ClientConfig, protocols: &[&str]) -> Arc<ClientConfig> {
    let mut config = config.clone();
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
    Arc::new(config)
}
