//! The CA of a namespace: issued below the root, and checked for when it is due again.

use std::time::{Duration, SystemTime};

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose,
};
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer as _;
use zeroize::Zeroizing;

use super::certificate::{self, Certificate};
use super::extension::Extension;
use super::root::{BACKDATED, RootCa};
use super::{CaConstraints, Data, Due, IssuingError};
use crate::pod::{CA_CERTIFICATE_KEY, CA_KEY_KEY, ROOTS_KEY};
use crate::tls::authority::{Authority, MintError};
use crate::tls::certificate_pem;

/// How long an intermediate lives. It is replaced halfway, so that both are valid for days.
const LIFETIME: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// The longest common name (RFC 5280, `ub-common-name`).
const COMMON_NAME: usize = 64;
/// How many roots stay trusted that are no longer in the root's Secret.
const KEPT: usize = 8;

/// A namespace's CA as its Secret holds it.
struct IssuedCa {
    authority: Authority,
    roots: Vec<Certificate>,
}

impl RootCa {
    /// Why the CA of a namespace is due to be issued, by the data of its Secret; none while it is good.
    pub fn due(&self, issued: Option<&Data>, wanted: &CaConstraints, now: SystemTime) -> Option<Due> {
        let Some(issued) = issued.and_then(|data| IssuedCa::read(data, now)) else {
            return Some(Due::Missing);
        };
        if !self.issued(&issued) {
            return Some(Due::Root);
        }
        if issued.extension() != Some(Extension::of(wanted)) {
            return Some(Due::Constraints);
        }
        self.has_aged(&issued, now).then_some(Due::Age)
    }

    /// Issues the CA of a namespace, and returns the data of `postern-ca`. Roots in `issued` that are still valid and
    /// not distrusted stay trusted. The result was loaded as gateways load it.
    pub fn issue(
        &self,
        namespace: &str,
        wanted: &CaConstraints,
        issued: Option<&Data>,
        now: SystemTime,
    ) -> Result<Data, IssuingError> {
        let failed = |cause| IssuingError::Unissuable { namespace: namespace.to_owned(), cause };
        let key = KeyPair::generate().map_err(|error| failed(MintError::Signing(error)))?;
        let params = self.params(namespace, wanted, now);
        let certificate = self.authority.certify(params, &key).map_err(failed)?;
        let chain: String = std::iter::once(&certificate)
            .chain(self.authority.certificates())
            .map(|der| certificate_pem(der))
            .collect();
        let key = Zeroizing::new(key.serialize_pem());
        Authority::load(&chain, &key, now).map_err(|cause| IssuingError::Useless {
            namespace: namespace.to_owned(),
            cause: Box::new(cause),
        })?;
        Ok(Data::from([
            (CA_CERTIFICATE_KEY.to_owned(), chain.into_bytes()),
            (CA_KEY_KEY.to_owned(), key.as_bytes().to_vec()),
            (ROOTS_KEY.to_owned(), certificate::pem(&self.trusted(issued, now)).into_bytes()),
        ]))
    }

    fn params(&self, namespace: &str, wanted: &CaConstraints, now: SystemTime) -> CertificateParams {
        let (not_before, not_after) = self.authority.validity();
        let mut params = CertificateParams::default();
        params.not_before = (now - BACKDATED).max(not_before).into();
        params.not_after = (now + LIFETIME).min(not_after).into();
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        // Name constraints bound no other use, so the CA may only vouch for servers.
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.name_constraints = Some(Extension::of(wanted).to_params());
        params.distinguished_name = DistinguishedName::new();
        let name = format!("Postern {namespace}").chars().take(COMMON_NAME).collect::<String>();
        params.distinguished_name.push(DnType::CommonName, name);
        params
    }

    /// The roots that a namespace's agents shall trust: the root Secret's, and those that they have trusted so far.
    fn trusted(&self, issued: Option<&Data>, now: SystemTime) -> Vec<Certificate> {
        let mut roots = self.anchors();
        let known = roots.len();
        for kept in issued.and_then(roots_of).unwrap_or_default() {
            let is_good = kept.is_root && now <= kept.not_after && !self.distrusts(&kept.der);
            if is_good && roots.len() < known + KEPT && !roots.contains(&kept) {
                roots.push(kept);
            }
        }
        roots
    }

    /// Whether a namespace's CA was issued by this root, and its agents get the roots that they shall trust.
    fn issued(&self, issued: &IssuedCa) -> bool {
        let above = issued.authority.certificates().get(1..);
        above == Some(self.authority.certificates())
            && self.anchors().iter().all(|root| issued.roots.contains(root))
            && !issued.roots.iter().any(|root| self.distrusts(&root.der))
    }

    /// Whether half of its life has passed and a new one would expire later: near the root's own end it would not.
    fn has_aged(&self, issued: &IssuedCa, now: SystemTime) -> bool {
        let (not_before, not_after) = issued.authority.validity();
        let life = not_after.duration_since(not_before).unwrap_or_default();
        now >= not_before + life / 2 && not_after < self.authority.validity().1
    }
}

impl IssuedCa {
    /// Reads the Secret as a gateway does; none if a gateway could not.
    fn read(data: &Data, now: SystemTime) -> Option<Self> {
        let text = |key: &str| str::from_utf8(data.get(key)?).ok();
        let authority = Authority::load(text(CA_CERTIFICATE_KEY)?, text(CA_KEY_KEY)?, now).ok()?;
        Some(Self { authority, roots: roots_of(data)? })
    }

    fn extension(&self) -> Option<Extension> {
        let der = self.authority.certificates().first()?;
        let (_, x509) = X509Certificate::from_der(der).ok()?;
        Extension::read(&x509)
    }
}

fn roots_of(data: &Data) -> Option<Vec<Certificate>> {
    let text = str::from_utf8(data.get(ROOTS_KEY)?).ok()?;
    Certificate::all(text).ok()
}

#[cfg(test)]
mod tests {
    use x509_parser::prelude::*;

    use super::super::testing::{DAY, host, inspecting, root, text};
    use super::*;

    fn wanted(hosts: &[&str]) -> CaConstraints {
        CaConstraints::of(&inspecting(hosts))
    }

    fn issued(root: &RootCa, hosts: &[&str], now: SystemTime) -> Data {
        root.issue("team-a", &wanted(hosts), None, now).unwrap()
    }

    #[test]
    fn an_intermediate_says_what_clients_look_for() {
        let now = SystemTime::now();
        let root = root(now);
        let data = issued(&root, &["api.example.com"], now);
        assert_eq!(data.keys().collect::<Vec<_>>(), ["ca-cert.pem", "ca-key.pem", "roots.pem"]);
        assert!(text(&data, "ca-key.pem").starts_with("-----BEGIN PRIVATE KEY-----"));
        let certificates = Certificate::all(text(&data, "ca-cert.pem")).unwrap();
        assert_eq!(certificates.len(), 2);
        let (_, x509) = X509Certificate::from_der(&certificates[0].der).unwrap();
        let (_, above) = X509Certificate::from_der(&certificates[1].der).unwrap();
        assert_eq!(x509.subject().to_string(), "CN=Postern team-a");
        assert_eq!(x509.issuer().as_raw(), above.subject().as_raw());
        let basic = x509.basic_constraints().unwrap().unwrap();
        assert!(basic.critical && basic.value.ca && basic.value.path_len_constraint == Some(0));
        let usage = x509.key_usage().unwrap().unwrap();
        assert!(usage.critical && usage.value.key_cert_sign() && usage.value.crl_sign());
        assert!(x509.name_constraints().unwrap().unwrap().critical);
        let extended = x509.extended_key_usage().unwrap().unwrap().value;
        assert!(extended.server_auth && !extended.client_auth && !extended.code_signing);
        let life = certificates[0].not_after.duration_since(certificates[0].not_before).unwrap();
        assert_eq!(life, LIFETIME + BACKDATED);
        assert_eq!(x509.raw_serial().len(), 16);
        assert!(is_issued_by(&x509, &above));
    }

    /// The authority key identifier is the subject key identifier of the one above.
    fn is_issued_by(x509: &X509Certificate<'_>, above: &X509Certificate<'_>) -> bool {
        let own = above.iter_extensions().find_map(|extension| {
            let ParsedExtension::SubjectKeyIdentifier(id) = extension.parsed_extension() else { return None };
            Some(id.0)
        });
        let of = x509.iter_extensions().find_map(|extension| {
            let ParsedExtension::AuthorityKeyIdentifier(id) = extension.parsed_extension() else {
                return None;
            };
            id.key_identifier.as_ref().map(|id| id.0)
        });
        own.is_some() && own == of
    }

    #[test]
    fn a_long_namespace_is_cut_to_what_a_common_name_holds() {
        let now = SystemTime::now();
        let data = root(now).issue(&"n".repeat(63), &wanted(&[]), None, now).unwrap();
        let certificate = Certificate::all(text(&data, "ca-cert.pem")).unwrap().remove(0);
        let (_, x509) = X509Certificate::from_der(&certificate.der).unwrap();
        assert_eq!(x509.subject().to_string(), format!("CN=Postern {}", "n".repeat(56)));
    }

    #[test]
    fn gateways_mint_for_what_the_constraints_permit_and_for_nothing_else() {
        let now = SystemTime::now();
        let root = root(now);
        let table: [(&[&str], &[&str], &[&str]); 5] = [
            (
                &["api.example.com", "*.one.test"],
                &["api.example.com", "below.api.example.com", "a.one.test", "a.b.one.test"],
                &["example.com", "one.test", "evilone.test", "192.0.2.1", "2001:db8::1", "postern.invalid"],
            ),
            (&["192.0.2.1"], &["192.0.2.1"], &["192.0.2.2", "2001:db8::1", "a.test"]),
            (&["2001:db8::1", "a.test"], &["2001:db8::1", "a.test"], &["2001:db8::2", "192.0.2.1", "b.test"]),
            (&["**"], &["a.test", "anything.example"], &["192.0.2.1", "2001:db8::1"]),
            (&[], &["postern.invalid"], &["a.test", "192.0.2.1", "2001:db8::1"]),
        ];
        for (hosts, permitted, refused) in table {
            let data = issued(&root, hosts, now);
            let authority =
                Authority::load(text(&data, "ca-cert.pem"), text(&data, "ca-key.pem"), now).unwrap();
            assert!(authority.is_constrained());
            for (names, expected) in [(permitted, true), (refused, false)] {
                for name in names {
                    assert_eq!(authority.permits(&host(name)), expected, "{name} under {hosts:?}");
                }
            }
        }
    }

    #[test]
    fn a_ca_is_due_for_each_reason_and_for_none_while_it_is_good() {
        let now = SystemTime::now();
        let root = root(now);
        let hosts = ["a.test", "*.b.test", "192.0.2.1"];
        let data = issued(&root, &hosts, now);
        let due = |data: &Data, hosts: &[&str], at| root.due(Some(data), &wanted(hosts), at);
        assert_eq!(due(&data, &hosts, now), None);
        assert_eq!(due(&data, &hosts, now + DAY * 3), None);
        assert_eq!(due(&data, &hosts, now + DAY * 4), Some(Due::Age));
        assert_eq!(due(&data, &hosts, now + DAY * 8), Some(Due::Missing));
        assert_eq!(root.due(None, &wanted(&hosts), now), Some(Due::Missing));
        for key in ["ca-cert.pem", "ca-key.pem", "roots.pem"] {
            let mut broken = data.clone();
            broken.remove(key);
            assert_eq!(due(&broken, &hosts, now), Some(Due::Missing), "without {key}");
            broken.insert(
                key.to_owned(),
                b"-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n".to_vec(),
            );
            assert_eq!(due(&broken, &hosts, now), Some(Due::Missing), "with a broken {key}");
        }
        for other in
            [&["a.test", "*.b.test"][..], &["a.test", "*.b.test", "192.0.2.1", "c.test"], &["**"], &[]]
        {
            assert_eq!(due(&data, other, now), Some(Due::Constraints), "{other:?}");
        }
        let mut forgotten = data;
        forgotten.insert("roots.pem".to_owned(), Vec::new());
        assert_eq!(due(&forgotten, &hosts, now), Some(Due::Root));
    }

    #[test]
    fn a_key_of_another_ca_is_no_good_one() {
        let now = SystemTime::now();
        let root = root(now);
        let (mut data, other) = (issued(&root, &["a.test"], now), issued(&root, &["a.test"], now));
        assert_ne!(data["ca-key.pem"], other["ca-key.pem"]);
        data.insert("ca-key.pem".to_owned(), other["ca-key.pem"].clone());
        assert_eq!(root.due(Some(&data), &wanted(&["a.test"]), now), Some(Due::Missing));
    }

    #[test]
    fn an_intermediate_ends_with_its_root_and_is_not_issued_over_and_over_then() {
        let made = SystemTime::now();
        let root = root(made);
        let end = root.authority.validity().1;
        let now = end - DAY;
        let data = issued(&root, &["a.test"], now);
        assert_eq!(Certificate::all(text(&data, "ca-cert.pem")).unwrap()[0].not_after, end);
        assert_eq!(root.due(Some(&data), &wanted(&["a.test"]), end - DAY / 4), None);
    }

    #[test]
    fn while_the_root_rotates_agents_are_given_both_and_after_it_the_old_one_too() {
        let now = SystemTime::now();
        let (hosts, first) = (wanted(&["a.test"]), root(now));
        let data = first.issue("team-a", &hosts, None, now).unwrap();
        let both = RootCa::load(&first.advanced(true, now).unwrap().unwrap(), now).unwrap();
        assert_eq!(both.due(Some(&data), &hosts, now), Some(Due::Root));
        let rotating = both.issue("team-a", &hosts, Some(&data), now).unwrap();
        assert_eq!(Certificate::all(text(&rotating, "roots.pem")).unwrap().len(), 2);
        assert_eq!(both.due(Some(&rotating), &hosts, now), None);

        let later = now + DAY * 7;
        let second = RootCa::load(&both.advanced(false, later).unwrap().unwrap(), later).unwrap();
        let rotating = both.issue("team-a", &hosts, Some(&rotating), later).unwrap();
        assert_eq!(second.due(Some(&rotating), &hosts, later), Some(Due::Root));
        let after = second.issue("team-a", &hosts, Some(&rotating), later).unwrap();
        assert_eq!(second.due(Some(&after), &hosts, later), None);
        let roots = Certificate::all(text(&after, "roots.pem")).unwrap();
        assert_eq!(roots.len(), 2);
        assert_eq!(roots[0].der, second.authority.certificates()[0]);
    }

    #[test]
    fn a_root_that_somebody_else_replaced_stays_trusted_until_it_ends_or_is_distrusted() {
        let now = SystemTime::now();
        let (hosts, old) = (wanted(&["a.test"]), root(now));
        let before = old.issue("team-a", &hosts, None, now).unwrap();
        let mut given = RootCa::generate(now).unwrap();
        let new = RootCa::load(&given, now).unwrap();
        assert_eq!(new.due(Some(&before), &hosts, now), Some(Due::Root));
        let after = new.issue("team-a", &hosts, Some(&before), now).unwrap();
        assert_eq!(Certificate::all(text(&after, "roots.pem")).unwrap().len(), 2);
        assert_eq!(new.due(Some(&after), &hosts, now), None);

        given.insert("distrusted.crt".to_owned(), old.authority.root_pem().into_bytes());
        let strict = RootCa::load(&given, now).unwrap();
        assert_eq!(strict.due(Some(&after), &hosts, now), Some(Due::Root));
        let without = strict.issue("team-a", &hosts, Some(&after), now).unwrap();
        assert_eq!(text(&without, "roots.pem"), strict.authority.root_pem());
        assert_eq!(strict.due(Some(&without), &hosts, now), None);

        let ended = now + DAY * 3_651 + DAY / 2;
        let next = root(ended);
        let late = next.issue("team-a", &hosts, Some(&after), ended + DAY).unwrap();
        assert_eq!(Certificate::all(text(&late, "roots.pem")).unwrap().len(), 1);
    }
}
