//! The CA that vouches for inspected hosts: loaded with every check, then it mints leaves.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rcgen::string::Ia5String;
use rcgen::{
    CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair, KeyUsagePurpose,
    SanType, SerialNumber,
};
use rustls::RootCertStore;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::sign::{CertifiedKey, SigningKey};
use time::OffsetDateTime;

use super::chain::Chain;
pub use super::defect::{AuthorityError, MintError};
use super::sign::Signer;
use super::{PROVIDER, certificate_pem, fingerprint, key};
use crate::name::host::Host;

/// Clients' clocks may be this much behind.
const BACKDATED: Duration = Duration::from_secs(5 * 60);
/// A leaf lives 24 hours in all; both of its ends are inclusive.
const LIFETIME: Duration = Duration::from_secs(24 * 60 * 60 - 1);
/// The longest common name (RFC 5280, `ub-common-name`).
const COMMON_NAME: usize = 64;

/// A CA that was found fit to issue: its key, its chain, and one leaf key.
///
/// All leaves of one `Authority` share a P-256 key that is drawn when it is loaded and never leaves memory: whoever
/// could read one leaf key there could read them all, and the CA's beside them. A key for each would more than double
/// the cost of a leaf.
pub struct Authority {
    chain: Chain,
    fingerprint: String,
    signer: Signer,
    leaf_key: KeyPair,
    /// The same key as rustls signs with it.
    leaf_signing_key: Arc<dyn SigningKey>,
}

/// A certificate for one host, ready to be presented.
#[derive(Debug, Clone)]
pub struct Leaf {
    /// The leaf and the intermediates after it, never the root; and the leaf's key.
    pub certified: Arc<CertifiedKey>,
    pub not_before: SystemTime,
    pub not_after: SystemTime,
}

impl Authority {
    /// Loads a CA from PEM texts: the issuing certificate followed by its chain up to the root, and its key. Every
    /// certificate is checked, the key must be the issuing one's, and a leaf is minted and verified against the root
    /// as a client would.
    pub fn load(certificate_pem: &str, key_pem: &str, now: SystemTime) -> Result<Self, AuthorityError> {
        let chain = Chain::read(certificate_pem, now.into())?;
        let key = key::read(key_pem)?;
        chain.is_of_key(key.public_key_raw())?;
        let signer = Signer::new(chain.name.clone(), chain.identifier.as_deref(), key);
        let failed = |cause| AuthorityError::NotMinting { subject: chain.subject.clone(), cause };
        let leaf_key = KeyPair::generate().map_err(|error| failed(MintError::Signing(error)))?;
        let leaf_signing_key = PROVIDER
            .key_provider
            .load_private_key(PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(
                leaf_key.serialized_der().to_vec(),
            )))
            .map_err(|error| failed(MintError::Configuration(error)))?;
        let fingerprint = chain.certificates.first().map(|der| fingerprint(der)).unwrap_or_default();
        let authority = Self { chain, fingerprint, signer, leaf_key, leaf_signing_key };
        authority.check_itself(now)?;
        Ok(authority)
    }

    /// Names the issuing certificate: `sha256:` and 64 hex digits of its DER.
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    /// The issuing certificate's subject, for people.
    pub fn subject(&self) -> &str {
        &self.chain.subject
    }

    /// The issuing certificate, its issuer and so on, the root last.
    pub fn certificates(&self) -> &[CertificateDer<'static>] {
        &self.chain.certificates
    }

    /// PEM of the root: what agents are to trust.
    pub fn root_pem(&self) -> String {
        let der = self.chain.certificates.last().map(|root| root.as_ref()).unwrap_or_default();
        certificate_pem(der)
    }

    /// When the first certificate of the chain becomes, and the first of it ceases to be, valid.
    pub fn validity(&self) -> (SystemTime, SystemTime) {
        (self.chain.not_before.into(), self.chain.not_after.into())
    }

    /// Whether X.509 name constraints limit what it may vouch for.
    pub fn is_constrained(&self) -> bool {
        !self.chain.constraints.is_empty()
    }

    /// What works, but will be refused by some clients, for people.
    pub fn caveats(&self) -> &[String] {
        &self.chain.caveats
    }

    /// Whether the name constraints of every certificate of the chain permit a leaf for `host`.
    pub fn permits(&self, host: &Host) -> bool {
        self.chain.constraints.iter().all(|constraints| constraints.permit(host))
    }

    /// Mints a leaf for one host: ECDSA P-256, at most 24 hours, backdated by five minutes, within the validity of the
    /// whole chain; never a wildcard.
    pub fn mint(&self, host: &Host, now: SystemTime) -> Result<Leaf, MintError> {
        let (not_before, not_after) = self.may_mint(host, now)?;
        let params = leaf_params(host, not_before, not_after).map_err(MintError::Signing)?;
        let leaf = self.signer.sign(&params, &self.leaf_key).map_err(MintError::Signing)?;
        let (_root, sent) = self.chain.certificates.split_last().unwrap_or((&leaf, &[]));
        let presented = std::iter::once(leaf.clone()).chain(sent.iter().cloned()).collect();
        Ok(Leaf {
            certified: Arc::new(CertifiedKey::new(presented, Arc::clone(&self.leaf_signing_key))),
            not_before: not_before.into(),
            not_after: not_after.into(),
        })
    }

    /// Whether a leaf for `host` could be minted now.
    ///
    /// # Errors
    /// Why not.
    pub fn vouches(&self, host: &Host, now: SystemTime) -> Result<(), MintError> {
        self.may_mint(host, now).map(|_validity| ())
    }

    fn may_mint(&self, host: &Host, now: SystemTime) -> Result<(OffsetDateTime, OffsetDateTime), MintError> {
        if !self.permits(host) {
            return Err(MintError::NotPermitted(host.clone()));
        }
        self.leaf_validity(now.into())
    }

    /// Issues a certificate as `params` describe it for the holder of `subject_key`: what is to be a CA below this one.
    /// Its serial number and its authority key identifier are set here; whether clients accept it is for
    /// [`Authority::load`] to say.
    pub fn certify(
        &self,
        mut params: CertificateParams,
        subject_key: &KeyPair,
    ) -> Result<CertificateDer<'static>, MintError> {
        params.serial_number = Some(serial_number().map_err(MintError::Signing)?);
        params.use_authority_key_identifier_extension = true;
        self.signer.sign(&params, subject_key).map_err(MintError::Signing)
    }

    fn leaf_validity(&self, now: OffsetDateTime) -> Result<(OffsetDateTime, OffsetDateTime), MintError> {
        let Chain { not_before, not_after, .. } = self.chain;
        if now < not_before {
            return Err(MintError::NotYetValid(not_before));
        }
        if now > not_after {
            return Err(MintError::Expired(not_after));
        }
        let from = now - BACKDATED;
        Ok((from.max(not_before), (from + LIFETIME).min(not_after)))
    }

    /// Mints a leaf for a host that the constraints permit and verifies it as rustls's clients do.
    fn check_itself(&self, now: SystemTime) -> Result<(), AuthorityError> {
        let subject = || self.chain.subject.clone();
        let host =
            self.permitted_host().ok_or_else(|| AuthorityError::PermitsNothing { subject: subject() })?;
        let leaf = self
            .mint(&host, now)
            .map_err(|cause| AuthorityError::NotMinting { subject: subject(), cause })?;
        self.verify(&host, &leaf, now).map_err(|cause| AuthorityError::NotAccepted {
            subject: subject(),
            host,
            cause,
        })
    }

    fn permitted_host(&self) -> Option<Host> {
        let unconstrained = Host::parse("postern-self-check.invalid").ok();
        let examples = self.chain.constraints.iter().flat_map(|constraints| constraints.examples());
        examples.chain(unconstrained).find(|host| self.permits(host))
    }

    fn verify(&self, host: &Host, leaf: &Leaf, now: SystemTime) -> Result<(), rustls::Error> {
        let mut roots = RootCertStore::empty();
        if let Some(root) = self.chain.certificates.last() {
            roots.add(root.clone())?;
        }
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&PROVIDER))
            .build()
            .map_err(|error| rustls::Error::General(error.to_string()))?;
        let name = ServerName::try_from(host.to_string())
            .map_err(|error| rustls::Error::General(error.to_string()))?;
        let at = UnixTime::since_unix_epoch(now.duration_since(UNIX_EPOCH).unwrap_or_default());
        let [end_entity, intermediates @ ..] = leaf.certified.cert.as_slice() else {
            return Err(rustls::Error::NoCertificatesPresented);
        };
        verifier.verify_server_cert(end_entity, intermediates, &name, &[], at).map(|_verified| ())
    }
}

impl fmt::Debug for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { chain, fingerprint, .. } = self;
        f.debug_struct("Authority")
            .field("subject", &chain.subject)
            .field("fingerprint", fingerprint)
            .finish()
    }
}

/// What a leaf says (RFC 5280 section 4.2). The name stands in the alternative names; the common name repeats it where
/// it fits, but never an address: OpenSSL would hold it against the CA's DNS constraints.
fn leaf_params(
    host: &Host,
    not_before: OffsetDateTime,
    not_after: OffsetDateTime,
) -> Result<CertificateParams, rcgen::Error> {
    let mut params = CertificateParams::default();
    params.not_before = not_before;
    params.not_after = not_after;
    params.serial_number = Some(serial_number()?);
    params.distinguished_name = DistinguishedName::new();
    match host {
        Host::Name(name) => {
            params.subject_alt_names = vec![SanType::DnsName(Ia5String::try_from(name.as_str())?)];
            match name.as_str().len() <= COMMON_NAME {
                true => params.distinguished_name.push(DnType::CommonName, name.as_str()),
                false => params.distinguished_name.push(DnType::OrganizationName, "Postern"),
            }
        }
        Host::Ip(ip) => {
            params.subject_alt_names = vec![SanType::IpAddress(*ip)];
            params.distinguished_name.push(DnType::OrganizationName, "Postern");
        }
    }
    // Not "no CA" alone: this one also writes the subject key identifier.
    params.is_ca = IsCa::ExplicitNoCa;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    Ok(params)
}

/// 128 random bits but the two first, which make it positive and always 16 octets long.
pub(super) fn serial_number() -> Result<SerialNumber, rcgen::Error> {
    let mut octets = [0; 16];
    aws_lc_rs::rand::fill(&mut octets).map_err(|_| rcgen::Error::RingUnspecified)?;
    octets[0] = octets[0] & 0x3f | 0x40;
    Ok(SerialNumber::from_slice(&octets))
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use rcgen::{CidrSubnet, GeneralSubtree, NameConstraints, RsaKeySize};
    use x509_parser::prelude::*;

    use super::*;
    use crate::tls::testing::TestCa;

    fn host(text: &str) -> Host {
        Host::parse(text).unwrap()
    }

    fn load(ca: &TestCa) -> Authority {
        Authority::load(&ca.chain_pem(), &ca.key_pem(), SystemTime::now()).unwrap()
    }

    fn constrained(permitted: Vec<GeneralSubtree>) -> Authority {
        let excluded = vec![GeneralSubtree::DnsName("secret.example.com".to_owned())];
        let constraints = NameConstraints { permitted_subtrees: permitted, excluded_subtrees: excluded };
        let root = TestCa::root("Root");
        load(&root.intermediate("Issuing", |params| params.name_constraints = Some(constraints)))
    }

    /// The leaf passes the check that rustls's clients make.
    fn is_accepted(authority: &Authority, name: &str) -> bool {
        let leaf = authority.mint(&host(name), SystemTime::now()).unwrap();
        authority.verify(&host(name), &leaf, SystemTime::now()).is_ok()
    }

    #[test]
    fn a_leaf_says_what_clients_look_for() {
        let ca = TestCa::root("Root").intermediate("Issuing", |_| {});
        let authority = load(&ca);
        let leaf = authority.mint(&host("api.example.com"), SystemTime::now()).unwrap();
        let (_, issuing) = X509Certificate::from_der(&authority.certificates()[0]).unwrap();
        let (rest, x509) = X509Certificate::from_der(&leaf.certified.cert[0]).unwrap();
        assert!(rest.is_empty());
        assert_eq!(x509.version(), X509Version::V3);
        assert_eq!(x509.subject().to_string(), "CN=api.example.com");
        assert_eq!(x509.issuer().as_raw(), issuing.subject().as_raw());
        assert_eq!(x509.raw_serial().len(), 16);
        assert!(x509.raw_serial()[0] & 0x80 == 0);
        let names = x509.subject_alternative_name().unwrap().unwrap();
        assert_eq!(names.value.general_names, [GeneralName::DNSName("api.example.com")]);
        let usage = x509.key_usage().unwrap().unwrap();
        assert!(usage.critical && usage.value.flags == 1, "digitalSignature alone");
        let extended = x509.extended_key_usage().unwrap().unwrap().value;
        assert!(extended.server_auth && !extended.any && !extended.client_auth);
        let basic = x509.basic_constraints().unwrap().unwrap();
        assert!(basic.critical && !basic.value.ca);
        assert_eq!(x509.public_key().parsed().unwrap().key_size(), 256);
        let identifier = |x509: &X509Certificate<'_>| {
            x509.iter_extensions().find_map(|extension| {
                let ParsedExtension::SubjectKeyIdentifier(id) = extension.parsed_extension() else {
                    return None;
                };
                Some(id.0.to_vec())
            })
        };
        let authority_identifier = x509.iter_extensions().find_map(|extension| {
            let ParsedExtension::AuthorityKeyIdentifier(of) = extension.parsed_extension() else {
                return None;
            };
            of.key_identifier.as_ref().map(|id| id.0.to_vec())
        });
        assert_eq!(authority_identifier, identifier(&issuing));
        assert_eq!(identifier(&x509).unwrap().len(), 20);
        assert_ne!(identifier(&x509), identifier(&issuing));
    }

    #[test]
    fn a_leaf_lives_a_day_backdated_and_within_its_ca() {
        let now = SystemTime::now();
        let authority = load(&TestCa::root("Root"));
        let leaf = authority.mint(&host("a.test"), now).unwrap();
        assert_eq!(leaf.not_before, now - Duration::from_secs(300));
        assert!(leaf.not_after.duration_since(leaf.not_before).unwrap() <= Duration::from_secs(24 * 60 * 60));

        let (minute, hour) = (Duration::from_secs(60), Duration::from_secs(60 * 60));
        let young = TestCa::root_with("Young", KeyPair::generate().unwrap(), |params| {
            params.not_before = (now - minute).into();
            params.not_after = (now + hour).into();
        });
        let authority = load(&young);
        let leaf = authority.mint(&host("a.test"), now).unwrap();
        assert_eq!((leaf.not_before, leaf.not_after), authority.validity());
        assert!(matches!(authority.mint(&host("a.test"), now + hour + minute), Err(MintError::Expired(_))));
        assert!(matches!(authority.mint(&host("a.test"), now - hour), Err(MintError::NotYetValid(_))));
    }

    #[test]
    fn an_address_stands_among_the_alternative_names_alone() {
        let authority = load(&TestCa::root("Root"));
        for (text, octets) in [
            ("192.0.2.1", [192, 0, 2, 1].as_slice()),
            ("2001:db8::1", &[0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]),
        ] {
            let leaf = authority.mint(&host(text), SystemTime::now()).unwrap();
            let (_, x509) = X509Certificate::from_der(&leaf.certified.cert[0]).unwrap();
            let names = x509.subject_alternative_name().unwrap().unwrap();
            assert_eq!(names.value.general_names, [GeneralName::IPAddress(octets)]);
            assert_eq!(x509.subject().to_string(), "O=Postern");
            assert!(is_accepted(&authority, text));
        }
    }

    #[test]
    fn a_name_longer_than_a_common_name_stands_among_the_alternative_names_alone() {
        let authority = load(&TestCa::root("Root"));
        let (fits, long) = (format!("{}.test", "a".repeat(59)), format!("{}.test", "a".repeat(60)));
        for (name, subject) in [(&fits, format!("CN={fits}")), (&long, "O=Postern".to_owned())] {
            let leaf = authority.mint(&host(name), SystemTime::now()).unwrap();
            let (_, x509) = X509Certificate::from_der(&leaf.certified.cert[0]).unwrap();
            assert_eq!(x509.subject().to_string(), subject);
            assert!(is_accepted(&authority, name));
        }
    }

    #[test]
    fn intermediates_are_sent_and_the_root_never() {
        let root = TestCa::root("Root");
        let middle = root.intermediate("Middle", |_| {});
        let issuing = middle.intermediate("Issuing", |_| {});
        let leaf = load(&issuing).mint(&host("a.test"), SystemTime::now()).unwrap();
        assert_eq!(leaf.certified.cert[1..], [issuing.der(), middle.der()]);
        let leaf = load(&root).mint(&host("a.test"), SystemTime::now()).unwrap();
        assert_eq!(leaf.certified.cert.len(), 1);
        assert_eq!(load(&issuing).root_pem(), root.pem());
    }

    #[test]
    fn no_leaf_is_minted_that_name_constraints_do_not_permit() {
        let authority = constrained(vec![
            GeneralSubtree::DnsName("example.com".to_owned()),
            GeneralSubtree::DnsName(".below.test".to_owned()),
            GeneralSubtree::IpAddress(CidrSubnet::V4([192, 0, 2, 1], [255; 4])),
        ]);
        assert!(authority.caveats().iter().any(|caveat| caveat.contains("permits addresses")));
        for permitted in ["example.com", "a.example.com", "x.below.test", "192.0.2.1"] {
            assert!(authority.permits(&host(permitted)), "{permitted}");
            assert!(is_accepted(&authority, permitted), "{permitted}");
        }
        for refused in ["other.test", "secret.example.com", "below.test", "192.0.2.2", "2001:db8::1"] {
            let minted = authority.mint(&host(refused), SystemTime::now());
            assert!(matches!(minted, Err(MintError::NotPermitted(_))), "{refused}");
        }
    }

    #[test]
    fn name_constraints_of_the_root_hold_too() {
        let constraints = NameConstraints {
            permitted_subtrees: vec![GeneralSubtree::DnsName("example.com".to_owned())],
            excluded_subtrees: vec![],
        };
        let root = TestCa::root_with("Root", KeyPair::generate().unwrap(), |params| {
            params.name_constraints = Some(constraints);
        });
        let authority = load(&root.intermediate("Issuing", |_| {}));
        assert!(authority.permits(&host("a.example.com")));
        assert!(!authority.permits(&host("a.test")));
    }

    #[test]
    fn a_name_with_several_values_of_one_kind_is_spelt_as_it_is() {
        let second_unit = DnType::CustomDnType(vec![2, 5, 4, 11]);
        let component = DnType::CustomDnType(vec![0, 9, 2342, 19_200_300, 100, 1, 25]);
        let authority = load(&TestCa::root_with("Corp", KeyPair::generate().unwrap(), |params| {
            params.distinguished_name.push(DnType::OrganizationalUnitName, "One");
            params.distinguished_name.push(second_unit, "Two");
            params.distinguished_name.push(component, rcgen::DnValue::Ia5String("corp".try_into().unwrap()));
        }));
        assert!(authority.subject().contains("OU=One, OU=Two"), "{}", authority.subject());
        assert!(is_accepted(&authority, "a.test"));
    }

    #[test]
    fn every_kind_and_encoding_of_key_signs() {
        let p256 = KeyPair::generate().unwrap();
        let rsa = KeyPair::generate_rsa_for(&rcgen::PKCS_RSA_SHA256, RsaKeySize::_2048).unwrap();
        for (key, label) in [(p256, "EC PRIVATE KEY"), (rsa, "RSA PRIVATE KEY")] {
            let inner = pem(label, &inside_pkcs8(key.serialized_der()));
            let ca = TestCa::root_with("Root", key, |_| {});
            // What `openssl ecparam -genkey` writes before the key.
            let parameters = pem("EC PARAMETERS", &[6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7]);
            for text in [ca.key_pem(), inner.clone(), parameters + &inner] {
                assert!(Authority::load(&ca.pem(), &text, SystemTime::now()).is_ok(), "{label}");
            }
        }
        for algorithm in
            [&rcgen::PKCS_ECDSA_P384_SHA384, &rcgen::PKCS_ECDSA_P521_SHA512, &rcgen::PKCS_ED25519]
        {
            let authority =
                load(&TestCa::root_with("Root", KeyPair::generate_for(algorithm).unwrap(), |_| {}));
            assert!(is_accepted(&authority, "a.test"));
        }
    }

    #[test]
    fn what_strict_clients_refuse_is_told() {
        assert!(load(&TestCa::root("Root")).caveats().is_empty());
        // CA:TRUE, not critical, and no key identifier.
        let basic = rcgen::CustomExtension::from_oid_content(&[2, 5, 29, 19], vec![0x30, 3, 1, 1, 0xff]);
        let bare = load(&TestCa::root_with("Bare", KeyPair::generate().unwrap(), |params| {
            params.is_ca = IsCa::NoCa;
            params.custom_extensions = vec![basic];
        }));
        let [identifier, critical] = bare.caveats() else { panic!("{:?}", bare.caveats()) };
        assert!(identifier.contains("`CN=Bare` has no subjectKeyIdentifier"), "{identifier}");
        assert!(critical.contains("not critical"), "{critical}");
    }

    #[test]
    fn its_debug_text_holds_no_key() {
        let ca = TestCa::root("Root");
        let text = format!("{:?}", load(&ca));
        assert!(text.starts_with("Authority { subject: \"CN=Root\", fingerprint: \"sha256:"), "{text}");
        assert!(text.len() < 140, "{text}");
    }

    fn pem(label: &str, der: &[u8]) -> String {
        let text = STANDARD.encode(der);
        format!("-----BEGIN {label}-----\n{text}\n-----END {label}-----\n")
    }

    /// The SEC1 or PKCS#1 key that a PKCS#8 key wraps (RFC 5958 section 2: version, algorithm, key).
    fn inside_pkcs8(der: &[u8]) -> Vec<u8> {
        let (_, whole) = asn1_rs::Any::from_der(der).unwrap();
        let (rest, _version) = asn1_rs::Any::from_der(whole.data).unwrap();
        let (rest, _algorithm) = asn1_rs::Any::from_der(rest).unwrap();
        asn1_rs::Any::from_der(rest).unwrap().1.data.to_vec()
    }
}
