//! The upstream side of TLS: what is trusted, and what is shown, for each host.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, RootCertStore};
use serde::{Deserialize, Serialize};

use super::file::{self, Flaw};
pub use super::trust::{BaseRoots, system_bundle};
use super::trust::{NO_CERTIFICATE, Trust};
use super::{PROVIDER, VERSIONS};
use crate::file_path::FilePath;
use crate::name::host::Host;
use crate::problem::Problem;

/// How many upstream names a configuration keeps sessions of, to resume them.
const SESSIONS: usize = 256;

/// `upstream.roots` and `upstream.tls` of the settings, with absolute paths, and the roots of the environment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TlsSettings {
    /// PEM files whose certificates are trusted besides the system's.
    pub roots: Vec<PathBuf>,
    /// The same of the environment (`SSL_CERT_FILE` and the like): a file that cannot be used is skipped.
    pub of_environment: Vec<PathBuf>,
    /// By host, as users write it.
    pub hosts: BTreeMap<String, HostTls>,
}

/// What holds for one upstream host alone.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HostTls {
    /// PEM files whose certificates are trusted for this host besides all others.
    pub roots: Vec<FilePath>,
    /// The client certificate with its chain, PEM.
    pub certificate: Option<FilePath>,
    /// Its key, PEM, not encrypted.
    pub key: Option<FilePath>,
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
        let (mut trust, base) = Trust::of_system(own).map_err(|problem| vec![problem])?;
        if let Err(found) = trust.add_files("upstream.roots", &settings.roots) {
            problems.extend(found);
        }
        problems.extend(trust.add_environment(&settings.of_environment).err());
        let mut hosts = BTreeMap::new();
        for (name, host) in &settings.hosts {
            match load_host(name, host, trust.clone()) {
                Ok((host, offers)) => {
                    if hosts.insert(host, offers).is_some() {
                        problems
                            .push(Problem::at(entry(name), "this host stands here twice, in two spellings"));
                    }
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

fn entry(name: &str) -> String {
    format!("upstream.tls[{name}]")
}

fn load_host(name: &str, settings: &HostTls, mut trust: Trust) -> Result<(Host, Offers), Vec<Problem>> {
    let path = entry(name);
    let mut problems = Vec::new();
    let host = Host::parse(name).map_err(|error| {
        problems.push(Problem::at(&path, format!("expected a host name or an address: {error}")))
    });
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
        (Some(_), None) => {
            return Err(Problem::at(format!("{path}.key"), "missing: the certificate needs its key"));
        }
        (None, Some(_)) => {
            return Err(Problem::at(format!("{path}.certificate"), "missing: the key needs its certificate"));
        }
    };
    let chain =
        client_chain(certificate).map_err(|flaw| flaw.at(format!("{path}.certificate"), certificate))?;
    let private = client_key(key).map_err(|flaw| flaw.at(format!("{path}.key"), key))?;
    CertifiedKey::from_der(chain, private, &PROVIDER).map(|identity| Some(Arc::new(identity))).map_err(
        |error| {
            let reason = format!("it cannot be used with the certificate ({error})");
            Flaw::from(reason).at(format!("{path}.key"), key)
        },
    )
}

fn client_chain(path: &Path) -> Result<Vec<CertificateDer<'static>>, Flaw> {
    let text = file::read(path)?;
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text.as_bytes()).collect();
    match chain {
        Ok(chain) if chain.is_empty() => Err(NO_CERTIFICATE.to_owned().into()),
        Ok(chain) => Ok(chain),
        Err(error) => Err(format!("it is broken ({error})").into()),
    }
}

fn client_key(path: &Path) -> Result<PrivateKeyDer<'static>, Flaw> {
    let text = file::read(path)?;
    PrivateKeyDer::from_pem_slice(text.as_bytes()).map_err(|error| {
        format!("it holds no private key that is not encrypted ({error}): expected PEM").into()
    })
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

#[cfg(test)]
mod tests {
    use rustls::{CertificateError, HandshakeKind, ServerConfig};

    use super::*;
    use crate::tls::testing::{TestCa, handshake, server};

    /// Files in a directory that ends with the test.
    struct Files(tempfile::TempDir);

    impl Files {
        fn new() -> Self {
            Self(tempfile::tempdir().unwrap())
        }

        fn write(&self, name: &str, text: &str) -> PathBuf {
            let path = self.0.path().join(name);
            std::fs::write(&path, text).unwrap();
            path
        }
    }

    fn host(text: &str) -> Host {
        Host::parse(text).unwrap()
    }

    fn meet(
        tls: &UpstreamTls,
        name: &str,
        server: &Arc<ServerConfig>,
    ) -> Result<Option<HandshakeKind>, rustls::Error> {
        let config = tls.client_config(&host(name), Alpn::H1);
        handshake(config, Arc::clone(server), name).map(|(client, _)| client.handshake_kind())
    }

    #[test]
    fn an_added_root_is_trusted_for_every_host_and_a_hosts_own_for_it_alone() {
        let files = Files::new();
        let (corp, partner) = (TestCa::root("Corp"), TestCa::root("Partner"));
        let own =
            HostTls { roots: vec![files.write("partner.pem", &partner.pem()).into()], ..HostTls::default() };
        let settings = TlsSettings {
            roots: vec![files.write("corp.pem", &corp.pem())],
            hosts: BTreeMap::from([("Llm.Partner.test".to_owned(), own)]),
            ..TlsSettings::default()
        };
        let tls = UpstreamTls::load(&settings, &[]).unwrap();
        assert!(meet(&tls, "a.test", &server(&corp, "a.test", None)).is_ok());
        assert!(meet(&tls, "llm.partner.test", &server(&corp, "llm.partner.test", None)).is_ok());
        assert!(meet(&tls, "llm.partner.test", &server(&partner, "llm.partner.test", None)).is_ok());
        let refused = meet(&tls, "a.test", &server(&partner, "a.test", None)).unwrap_err();
        assert_eq!(refused, rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer));
    }

    #[test]
    fn an_upstream_with_another_name_is_refused() {
        let files = Files::new();
        let corp = TestCa::root("Corp");
        let settings =
            TlsSettings { roots: vec![files.write("corp.pem", &corp.pem())], ..TlsSettings::default() };
        let tls = UpstreamTls::load(&settings, &[]).unwrap();
        let refused = meet(&tls, "a.test", &server(&corp, "b.test", None)).unwrap_err();
        assert!(matches!(refused, rustls::Error::InvalidCertificate(_)), "{refused}");
    }

    #[test]
    fn a_client_certificate_is_shown_to_its_host_alone() {
        let files = Files::new();
        let corp = TestCa::root("Corp");
        let (certificate, key) = corp.issue("gateway.test");
        let own = HostTls {
            roots: vec![],
            certificate: Some(files.write("c.pem", &certificate.pem()).into()),
            key: Some(files.write("k.pem", &key.serialize_pem()).into()),
        };
        let settings = TlsSettings {
            roots: vec![files.write("corp.pem", &corp.pem())],
            hosts: BTreeMap::from([("llm.test".to_owned(), own)]),
            ..TlsSettings::default()
        };
        let tls = UpstreamTls::load(&settings, &[]).unwrap();
        assert!(meet(&tls, "llm.test", &server(&corp, "llm.test", Some(&corp))).is_ok());
        let refused = meet(&tls, "a.test", &server(&corp, "a.test", Some(&corp))).unwrap_err();
        assert_eq!(refused, rustls::Error::NoCertificatesPresented);
    }

    #[test]
    fn sessions_are_resumed_within_one_hosts_settings() {
        let files = Files::new();
        let corp = TestCa::root("Corp");
        let settings = TlsSettings {
            roots: vec![files.write("corp.pem", &corp.pem())],
            hosts: BTreeMap::from([("own.test".to_owned(), HostTls::default())]),
            ..TlsSettings::default()
        };
        let tls = UpstreamTls::load(&settings, &[]).unwrap();
        for name in ["a.test", "own.test"] {
            let server = server(&corp, name, None);
            assert_ne!(meet(&tls, name, &server), Ok(Some(HandshakeKind::Resumed)), "{name}");
            assert_eq!(meet(&tls, name, &server), Ok(Some(HandshakeKind::Resumed)), "{name}");
        }
    }

    #[test]
    fn what_is_asked_is_what_is_offered_and_the_configuration_is_shared() {
        let tls = UpstreamTls::load(&TlsSettings::default(), &[]).unwrap();
        let offered = |alpn| tls.client_config(&host("a.test"), alpn).alpn_protocols.clone();
        assert_eq!(offered(Alpn::H1), [b"http/1.1".to_vec()]);
        assert_eq!(offered(Alpn::H2OrH1), [b"h2".to_vec(), b"http/1.1".to_vec()]);
        assert!(offered(Alpn::None).is_empty());
        let twice = [host("a.test"), host("b.test")].map(|host| tls.client_config(&host, Alpn::H2OrH1));
        assert!(Arc::ptr_eq(&twice[0], &twice[1]));
        assert!(!twice[0].enable_early_data);
    }

    #[test]
    fn posterns_own_ca_is_refused_among_added_roots() {
        let files = Files::new();
        let root = TestCa::root("Root");
        let issuing = root.intermediate("Issuing", |_| {});
        let own = HostTls { roots: vec![files.write("i.pem", &issuing.pem()).into()], ..HostTls::default() };
        let settings = TlsSettings {
            roots: vec![files.write("r.pem", &root.reissued())],
            hosts: BTreeMap::from([("a.test".to_owned(), own)]),
            ..TlsSettings::default()
        };
        let problems = UpstreamTls::load(&settings, &[issuing.der(), root.der()]).unwrap_err();
        let said: Vec<&str> = problems.iter().map(|problem| problem.path.as_str()).collect();
        assert_eq!(said, ["upstream.roots[0]", "upstream.tls[a.test].roots[0]"]);
        assert!(problems.iter().all(|problem| problem.message.contains("Postern's own CA")), "{problems:?}");
    }

    #[test]
    fn everything_wrong_with_a_hosts_settings_is_said_at_once() {
        let files = Files::new();
        let ca = TestCa::root("Corp");
        let (certificate, _) = ca.issue("gateway.test");
        let certificate = files.write("c.pem", &certificate.pem());
        let with = |certificate: Option<&PathBuf>, key: Option<PathBuf>| HostTls {
            roots: vec![],
            certificate: certificate.cloned().map(FilePath::from),
            key: key.map(FilePath::from),
        };
        let hosts = [
            ("a.test", with(Some(&certificate), None)),
            ("b.test", with(None, Some("/nonexistent/k.pem".into()))),
            ("c.test", with(Some(&certificate), Some("/nonexistent/k.pem".into()))),
            ("d.test", with(Some(&certificate), Some(files.write("other.pem", &ca.key_pem())))),
            ("e.test", with(Some(&certificate), Some(certificate.clone()))),
            ("f.test", HostTls::default()),
            ("F.test", HostTls::default()),
        ];
        let hosts = hosts.into_iter().map(|(name, host)| (name.to_owned(), host)).collect();
        let problems = UpstreamTls::load(&TlsSettings { hosts, ..TlsSettings::default() }, &[]).unwrap_err();
        let said: Vec<String> = problems.iter().map(ToString::to_string).collect();
        let expected = [
            ("upstream.tls[a.test].key: ", "missing"),
            ("upstream.tls[b.test].certificate: ", "missing"),
            ("upstream.tls[c.test].key: ", "cannot be read"),
            ("upstream.tls[d.test].key: ", "cannot be used with the certificate"),
            ("upstream.tls[e.test].key: ", "holds no private key"),
            ("upstream.tls[f.test]: ", "twice"),
        ];
        assert_eq!(said.len(), expected.len(), "{said:#?}");
        for (said, (path, word)) in said.iter().zip(expected) {
            assert!(said.starts_with(path) && said.contains(word), "{said}");
        }
    }
}
