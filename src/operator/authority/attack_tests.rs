//! What a stolen intermediate can be used for (threats B16), and what a root's Secret may not hold.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose,
};
use rustls::RootCertStore;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier as _;
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};

use super::certificate::Certificate;
use super::testing::{inspecting, root, text};
use super::{CaConstraints, Data, IssuingError, RootCa};

/// Whoever has a namespace's Secret, and signs with its key whatever they like.
struct Thief {
    issuer: Issuer<'static, KeyPair>,
    intermediate: CertificateDer<'static>,
    roots: Arc<RootCertStore>,
}

impl Thief {
    fn of(hosts: &[&str]) -> Self {
        let now = SystemTime::now();
        let data = root(now).issue("team-a", &CaConstraints::of(&inspecting(hosts)), None, now).unwrap();
        let intermediate = Certificate::all(text(&data, "ca-cert.pem")).unwrap().remove(0).der;
        let key = KeyPair::from_pem(text(&data, "ca-key.pem")).unwrap();
        let mut roots = RootCertStore::empty();
        for root in Certificate::all(text(&data, "roots.pem")).unwrap() {
            roots.add(root.der).unwrap();
        }
        let issuer = Issuer::from_ca_cert_der(&intermediate, key).unwrap();
        Self { issuer, intermediate, roots: Arc::new(roots) }
    }

    /// Whether a client that asks for `wanted` accepts a leaf for these names.
    fn passes_for(&self, wanted: &str, names: &[&str]) -> bool {
        let names = names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let mut params = CertificateParams::new(names).unwrap();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, wanted);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        let leaf = params.signed_by(&KeyPair::generate().unwrap(), &self.issuer).unwrap();
        self.is_accepted(wanted, leaf.der(), std::slice::from_ref(&self.intermediate))
    }

    fn is_accepted(&self, wanted: &str, leaf: &CertificateDer<'_>, sent: &[CertificateDer<'_>]) -> bool {
        let provider = Arc::new(default_provider());
        let verifier =
            WebPkiServerVerifier::builder_with_provider(Arc::clone(&self.roots), provider).build().unwrap();
        let name = ServerName::try_from(wanted.to_owned()).unwrap();
        let now = UnixTime::since_unix_epoch(SystemTime::now().duration_since(UNIX_EPOCH).unwrap());
        verifier.verify_server_cert(leaf, sent, &name, &[], now).is_ok()
    }
}

#[test]
fn a_stolen_intermediate_passes_for_its_own_hosts_and_for_no_other() {
    let thief = Thief::of(&["api.example.com", "*.one.test"]);
    for own in ["api.example.com", "a.one.test"] {
        assert!(thief.passes_for(own, &[own]), "{own}");
    }
    for (wanted, names) in [
        ("evil.test", &["evil.test"][..]),
        ("example.com", &["example.com"]),
        ("one.test", &["one.test"]),
        ("api.example.com", &["api.example.com", "evil.test"]),
        ("192.0.2.1", &["192.0.2.1"]),
        ("2001:db8::1", &["2001:db8::1"]),
        ("api.example.com", &["api.example.com", "192.0.2.1"]),
    ] {
        assert!(!thief.passes_for(wanted, names), "{wanted} by {names:?}");
    }
}

#[test]
fn a_stolen_intermediate_for_an_address_passes_for_no_other_address() {
    let thief = Thief::of(&["192.0.2.1"]);
    assert!(thief.passes_for("192.0.2.1", &["192.0.2.1"]));
    for other in ["192.0.2.2", "2001:db8::1", "a.test"] {
        assert!(!thief.passes_for(other, &[other]), "{other}");
    }
}

#[test]
fn a_stolen_unconstrained_intermediate_passes_for_no_address() {
    let thief = Thief::of(&["**"]);
    assert!(thief.passes_for("anything.test", &["anything.test"]));
    assert!(!thief.passes_for("192.0.2.1", &["192.0.2.1"]));
}

#[test]
fn a_stolen_intermediate_makes_no_further_ca() {
    let thief = Thief::of(&["api.example.com"]);
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, "Further");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    params.use_authority_key_identifier_extension = true;
    let key = KeyPair::generate().unwrap();
    let further = params.signed_by(&key, &thief.issuer).unwrap();
    let issuer = Issuer::from_params(&params, &key);
    let leaf = CertificateParams::new(["api.example.com".to_owned()]).unwrap();
    let leaf = leaf.signed_by(&KeyPair::generate().unwrap(), &issuer).unwrap();
    let sent = [further.der().clone(), thief.intermediate.clone()];
    assert!(!thief.is_accepted("api.example.com", leaf.der(), &sent));
}

fn refused(data: &Data) -> IssuingError {
    RootCa::load(data, SystemTime::now()).unwrap_err()
}

#[test]
fn a_secret_that_is_no_root_is_refused_with_what_to_do_and_without_its_key() {
    let now = SystemTime::now();
    let (good, other) = (RootCa::generate(now).unwrap(), RootCa::generate(now).unwrap());
    let with = |key: &str, value: &[u8]| {
        let mut data = good.clone();
        data.insert(key.to_owned(), value.to_vec());
        data
    };
    let issued = root(now).issue("a", &CaConstraints::of(&[]), None, now).unwrap();
    let table = [
        (Data::new(), "has no `tls.crt`"),
        (with("tls.key", b""), "has no `tls.key`"),
        (with("tls.crt", &[0xff]), "is not text"),
        (with("tls.crt", b"text"), "holds no certificate"),
        (with("tls.key", &other["tls.key"]), "does not belong to the certificate"),
        (
            with("tls.key", b"-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----\n"),
            "cannot sign",
        ),
        (with("previous.crt", b"text"), "`previous.crt`"),
        (with("previous.crt", &issued["ca-cert.pem"][..600]), "`previous.crt`"),
        (with("next.crt", b"text"), "`next.crt`"),
        (with("distrusted.crt", &good["tls.crt"]), "listed in `distrusted.crt`"),
        (with("distrusted.crt", b"text"), "`distrusted.crt`"),
    ];
    let key = text(&good, "tls.key").lines().nth(1).unwrap();
    for (data, expected) in table {
        let said = refused(&data);
        assert!(said.to_string().contains(expected), "{said}");
        assert!(
            !format!("{said} {said:?}").contains(key) && !format!("{said:?}").contains("c2VjcmV0"),
            "{said}"
        );
    }
    let mut mismatched = with("next.crt", &other["tls.crt"]);
    mismatched.insert("next.key".to_owned(), good["tls.key"].clone());
    assert!(refused(&mismatched).to_string().contains("`next.crt` and `next.key`"));
    assert!(!format!("{:?}", RootCa::load(&good, now).unwrap()).contains(key));
}

#[test]
fn a_root_that_may_issue_leaves_alone_is_refused() {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, "Narrow");
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    let key = KeyPair::generate().unwrap();
    let certificate = params.self_signed(&key).unwrap();
    let error = refused(&given(&certificate.pem(), &key));
    assert!(error.to_string().contains("a path length of at least 1"), "{error}");
}

fn given(chain: &str, key: &KeyPair) -> Data {
    let key = key.serialize_pem().into_bytes();
    Data::from([("tls.crt".to_owned(), chain.as_bytes().to_vec()), ("tls.key".to_owned(), key)])
}

#[test]
fn a_given_root_may_stand_below_a_corporate_one_which_agents_then_trust() {
    let now = SystemTime::now();
    let ca = |name: &str| {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        params.use_authority_key_identifier_extension = true;
        params
    };
    let (corporate, corporate_key) = (ca("Corporate"), KeyPair::generate().unwrap());
    let top = corporate.self_signed(&corporate_key).unwrap();
    let key = KeyPair::generate().unwrap();
    let middle = ca("Platform").signed_by(&key, &Issuer::from_params(&corporate, &corporate_key)).unwrap();

    let whole = given(&(middle.pem() + &top.pem()), &key);
    let mut apart = given(&middle.pem(), &key);
    apart.insert("ca.crt".to_owned(), top.pem().into_bytes());
    for data in [whole, apart] {
        let data = RootCa::load(&data, now).unwrap();
        let issued = data.issue("team-a", &CaConstraints::of(&inspecting(&["a.test"])), None, now).unwrap();
        let chain = Certificate::all(text(&issued, "ca-cert.pem")).unwrap();
        assert_eq!(chain.len(), 3);
        assert_eq!([&chain[1].der, &chain[2].der], [middle.der(), top.der()]);
        let roots = Certificate::all(text(&issued, "roots.pem")).unwrap();
        assert_eq!(roots.iter().map(|root| &root.der).collect::<Vec<_>>(), [top.der()]);
    }
    let alone = refused(&given(&middle.pem(), &key));
    assert!(alone.to_string().contains("leads to no root"), "{alone}");
}

#[test]
fn a_root_that_somebody_announces_without_its_key_is_trusted_beside() {
    let now = SystemTime::now();
    let mut data = RootCa::generate(now).unwrap();
    data.insert("next.crt".to_owned(), RootCa::generate(now).unwrap()["tls.crt"].clone());
    let root = RootCa::load(&data, now).unwrap();
    assert_eq!(root.anchors().len(), 2);
    assert_eq!(root.advanced(true, now).unwrap(), None);
}
