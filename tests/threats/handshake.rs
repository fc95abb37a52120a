//! TLS on both sides: hidden names, broken handshakes, laundered certificates, leaves, resumption, identities.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustls::ClientConfig;
use rustls::client::{
    ClientSessionStore, EchGreaseConfig, EchMode, Resumption, Tls12ClientSessionValue,
    Tls13ClientSessionValue,
};
use rustls::crypto::aws_lc_rs::hpke::ALL_SUPPORTED_SUITES;
use rustls::pki_types::ServerName;
use x509_parser::prelude::{GeneralName, ParsedExtension, X509Certificate};

use super::denials;
use crate::gateway::{INSPECT_API, inspected, inspected_with};
use crate::support::journal::poll;
use crate::support::upstream::RawUpstream;
use crate::support::{Connection, Ending, Gateway, Pki, Setup, Upstream};

const GET: &str = "GET /echo HTTP/1.1\r\nHost: api.example.com\r\n\r\n";
const TUNNEL_API: &str = "{name: api, hosts: [api.example.com], action: Tunnel}";

/// B5: a tunnelled ClientHello that may hide another name passes only where its rule says `allowEch`.
#[test]
fn a_client_hello_with_ech_is_tunnelled_only_by_leave() {
    let start = |more: &str| {
        inspected_with(|setup| {
            setup.destinations(&[&format!("{{name: api, hosts: [api.example.com], action: Tunnel{more}}}")])
        })
    };

    let strict = start("");
    let trusting = strict.gateway.agent().trusting(strict.upstreams.roots());
    let tunnel = trusting.connect("api.example.com:443").unwrap();
    assert!(tunnel.start_tls("api.example.com", with_grease(&strict.upstreams)).is_err());
    assert_eq!(
        denials(&strict.gateway, 1),
        [("api.example.com".to_owned(), "postern/builtin/ech".to_owned())]
    );
    assert!(strict.upstream.links().is_empty());
    assert_eq!(trusting.get("https://api.example.com/echo").status, 200, "without ECH it passes");

    let lenient = start(", allowEch: true");
    let tunnel = lenient.gateway.agent().connect("api.example.com:443").unwrap();
    let mut connection = tunnel.start_tls("api.example.com", with_grease(&lenient.upstreams)).unwrap();
    connection.send(GET);
    assert_eq!((connection.read_answer().status, connection.issuer().as_str()), (200, "Upstream Test CA"));
}

/// B5: clients that send a meaningless ECH extension, as browsers do, are inspected by the name they show.
#[test]
fn a_client_with_grease_is_inspected() {
    let test = inspected();
    let tunnel = test.gateway.agent().connect("api.example.com:443").unwrap();

    let mut connection = tunnel.start_tls("api.example.com", with_grease(test.gateway.authority())).unwrap();
    connection.send(GET);

    assert_eq!((connection.read_answer().status, connection.issuer().as_str()), (200, "Postern Test CA"));
    assert_eq!(test.upstream.links()[0].sni.as_deref(), Some("api.example.com"));
}

/// B6: a ClientHello in single bytes, or spread over many records, names its host as one in a piece does.
#[test]
fn a_client_hello_in_pieces_is_put_together() {
    let test = inspected_with(|setup| {
        setup.destinations(&[INSPECT_API, "{name: no, hosts: [evil.example.com], action: Deny}"])
    });
    let agent = test.gateway.agent();
    let in_records = |name: &str| {
        let mut config = (*agent.dial(name).config()).clone();
        config.max_fragment_size = Some(32);
        agent.connect("192.0.2.7:443").unwrap().start_tls(name, Arc::new(config)).unwrap()
    };
    let in_bytes = |name| agent.dial(name).authority("192.0.2.7:443").byte_by_byte().unwrap();

    for mut denied in [in_records("evil.example.com"), in_bytes("evil.example.com")] {
        denied.send("GET / HTTP/1.1\r\nHost: evil.example.com\r\n\r\n");
        denied.read_answer().assert_refused(403, "agents/test/no");
    }
    for mut allowed in [in_records("api.example.com"), in_bytes("api.example.com")] {
        allowed.send(GET);
        assert_eq!((allowed.read_answer().status, allowed.issuer().as_str()), (200, "Postern Test CA"));
    }
    assert_eq!(test.upstream.requests().len(), 2);
}

/// B6: a ClientHello that does not end within its bound names nobody, and is reset with its event.
#[test]
fn a_client_hello_without_end_is_refused() {
    let test = inspected_with(|setup| setup.set("/limits/clientHelloBytes", 4096));
    let mut connection = test.gateway.agent().connect("api.example.com:443").unwrap();
    let mut record = b"\x16\x03\x01\x08\x00\x01\x00\xff\xff\x03\x03".to_vec();
    record.resize(5 + 0x800, 0);

    connection.send([record.as_slice(), b"\x16\x03\x01\x08\x00", &[0; 0x800]].concat());

    assert_eq!(connection.ending(), Ending::Cut(Vec::new()));
    assert_eq!(
        denials(&test.gateway, 1),
        [("api.example.com".to_owned(), "postern/builtin/bound".to_owned())]
    );
    assert!(test.upstream.links().is_empty());
    assert_eq!(test.gateway.agent().get("https://api.example.com/echo").status, 200);
}

/// B8: an agent that rejects our leaf, again and again, is counted and refused; it is never tunnelled instead.
#[test]
fn rejecting_the_leaf_buys_no_tunnel() {
    let test = inspected();
    let pinned = test.gateway.agent().trusting(test.upstreams.roots());

    for _ in 0..3 {
        assert!(pinned.dial("api.example.com").open().is_err(), "the upstream's own certificate was shown");
    }

    test.gateway.wait_for_metric("postern_leaf_rejected_total", &[], 3.0);
    assert_eq!(test.gateway.metric("postern_connections_total", &[("action", "Tunnel")]), 0.0);
    assert!(test.upstream.requests().is_empty());
    let mut trusting = test.gateway.agent().tls("api.example.com");
    trusting.send(GET);
    assert_eq!((trusting.read_answer().status, trusting.issuer().as_str()), (200, "Postern Test CA"));
}

/// B12: a certificate that is untrusted, expired, early or for another name is not laundered by ours.
#[test]
fn a_bad_certificate_upstream_becomes_a_502_and_nothing_is_sent() {
    let (upstreams, stranger) = (Pki::new("Upstream Test CA"), Pki::new("Somebody Else's CA"));
    let days = |from: i64, to: i64| {
        upstreams.leaf_with(&["api.example.com"], move |leaf| {
            leaf.not_before = time::OffsetDateTime::now_utc() + time::Duration::days(from);
            leaf.not_after = time::OffsetDateTime::now_utc() + time::Duration::days(to);
        })
    };
    let client_only = upstreams.leaf_with(&["api.example.com"], |leaf| {
        leaf.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ClientAuth];
    });
    let bad = [
        stranger.leaf(&["api.example.com"]),
        upstreams.leaf(&["evil.example.com"]),
        upstreams.leaf(&["*.com"]),
        days(-9, -1),
        days(1, 9),
        client_only,
    ];
    for identity in bad {
        let upstream = Upstream::build().identity(identity).start();
        let gateway = inspecting(&upstreams, &upstream);
        let mut connection = gateway.agent().tls("api.example.com");
        connection.send("POST /echo HTTP/1.1\r\nHost: api.example.com\r\nContent-Length: 6\r\n\r\nsecret");
        let answer = connection.read_answer();
        assert_eq!((answer.status, connection.issuer().as_str()), (502, "Postern Test CA"), "{answer:?}");
        assert!(answer.text().contains("certificate"), "{}", answer.text());
        assert!(upstream.requests().is_empty());
        poll("the handshake's failure", || upstream.links()[0].handshake_error.clone());
        assert!(gateway.metric("postern_upstream_errors_total", &[("class", "tls")]) >= 1.0);
    }

    let upstream = Upstream::tls(&upstreams, &["api.example.com"]);
    assert_eq!(inspecting(&upstreams, &upstream).agent().get("https://api.example.com/echo").status, 200);
}

/// B13: the agent is offered what its upstream speaks; a protocol that nobody here reads is not agreed on.
#[test]
fn an_unknown_application_protocol_is_not_agreed_on() {
    let test = inspected();
    let dial = |protocols: &[&str]| test.gateway.agent().dial("api.example.com").protocols(protocols).open();

    for hidden in ["http/1.0", "h3", "ssh", "xmpp-client"] {
        assert!(dial(&[hidden]).is_err(), "{hidden} was agreed on");
    }
    assert!(test.upstream.requests().is_empty());

    assert_eq!(dial(&["ssh", "http/1.1"]).unwrap().alpn().as_deref(), Some("http/1.1"));
    assert_eq!(dial(&["h2", "http/1.1"]).unwrap().alpn().as_deref(), Some("h2"));
}

/// B13: an agent is never made to speak h2 to an upstream that does not, nor bytes of the other version.
#[test]
fn an_upstream_without_h2_gets_no_h2() {
    let upstreams = Pki::new("Upstream Test CA");
    let upstream =
        Upstream::build().identity(upstreams.leaf(&["api.example.com"])).protocols(&["http/1.1"]).start();
    let gateway = inspecting(&upstreams, &upstream);
    let agent = gateway.agent();

    assert!(agent.dial("api.example.com").protocols(&["h2"]).open().is_err());
    let mut preface = agent.tls("api.example.com");
    preface.send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0");
    let (Ending::Closed(said) | Ending::Cut(said)) = preface.ending();
    assert!(said.starts_with(b"HTTP/1.1 505"), "{}", String::from_utf8_lossy(&said));
    assert!(upstream.requests().is_empty());

    let mut connection = agent.dial("api.example.com").protocols(&["h2", "http/1.1"]).open().unwrap();
    connection.send(GET);
    assert_eq!(connection.read_answer().json()["version"], "HTTP/1.1");
    assert_eq!(upstream.links()[0].alpn.as_deref(), Some("http/1.1"));
}

/// B14: the handshake that is made anew upstream is an ordinary one: the name, the agent's protocols, current suites.
/// K8: what a front end looks at before it lets a client in is there.
#[test]
fn the_handshake_upstream_is_an_ordinary_one() {
    let upstreams = Pki::new("Upstream Test CA");
    let front = RawUpstream::start(None, |connection, heard| {
        let head = connection.read_exactly(5);
        let length = usize::from(u16::from_be_bytes([head[3], head[4]]));
        heard.push([head, connection.read_exactly(length)].concat());
    });
    let gateway =
        Setup::new(&upstreams).host("api.example.com", front.address()).destinations(&[INSPECT_API]).start();

    let refused = gateway.agent().dial("api.example.com").protocols(&["h2", "http/1.1"]).open();

    let hello = front.heard().wait_for("a ClientHello", |_| true);
    let mut acceptor = rustls::server::Acceptor::default();
    acceptor.read_tls(&mut hello.as_slice()).unwrap();
    let accepted = acceptor.accept().unwrap().unwrap();
    let said = accepted.client_hello();
    assert_eq!(said.server_name(), Some("api.example.com"));
    assert_eq!(said.alpn().unwrap().collect::<Vec<_>>(), [&b"h2"[..], b"http/1.1"]);
    assert!(said.cipher_suites().contains(&rustls::CipherSuite::TLS13_AES_128_GCM_SHA256));
    assert!(said.named_groups().unwrap().contains(&rustls::NamedGroup::X25519));
    // A front end that resets it is not asked again, nor differently: the agent reads why.
    let mut inside = refused.unwrap();
    inside.send(GET);
    assert_eq!(inside.read_answer().status, 502);
    assert_eq!((inside.issuer().as_str(), front.accepted()), ("Postern Test CA", 1));
}

/// B15: an agent that pins its server's certificate is refused where a rule inspects, and passes where one tunnels.
#[test]
fn a_client_that_pins_its_server_passes_a_tunnel_alone() {
    let inspecting = inspected();
    let pinned = inspecting.gateway.agent().trusting(inspecting.upstreams.roots());
    assert!(pinned.dial("api.example.com").open().is_err());
    assert!(inspecting.upstream.requests().is_empty());

    let tunnelling = inspected_with(|setup| setup.destinations(&[TUNNEL_API]));
    let mut pinned = tunnelling.gateway.agent().trusting(tunnelling.upstreams.roots()).tls("api.example.com");
    pinned.send(GET);
    assert_eq!((pinned.read_answer().status, pinned.issuer().as_str()), (200, "Upstream Test CA"));
}

/// B15: a client certificate of the agent's own vouches for nobody behind an inspected connection.
#[test]
fn an_agents_own_certificate_ends_at_the_gateway() {
    let upstreams = Pki::new("Upstream Test CA");
    let upstream = Upstream::build()
        .identity(upstreams.leaf(&["api.example.com"]))
        .client_certificates(&upstreams)
        .start();
    let gateway = inspecting(&upstreams, &upstream);
    let dial = gateway.agent().dial("api.example.com").identity(upstreams.leaf(&["agent"]));

    if let Ok(mut connection) = dial.open() {
        connection.send(GET);
        assert_eq!(connection.read_answer().status, 502);
    }
    assert!(upstream.requests().is_empty());

    let tunnelling = Setup::new(&upstreams)
        .host("api.example.com", upstream.address())
        .destinations(&[TUNNEL_API])
        .start();
    let agent = tunnelling.agent().trusting(upstreams.roots());
    let mut connection = agent.dial("api.example.com").identity(upstreams.leaf(&["agent"])).open().unwrap();
    connection.send(GET);
    assert_eq!(connection.read_answer().status, 200);
    assert!(upstream.links().iter().any(|link| link.client_certificate.is_some()));
}

/// B17: a leaf has what strict verifiers ask for: one name, a day at most, identifiers, usages, a serial of its own.
#[test]
fn a_leaf_has_nothing_that_a_strict_verifier_refuses() {
    let long = format!("{}.example.com", "a".repeat(63));
    let upstreams = Pki::new("Upstream Test CA");
    let upstream = Upstream::tls(&upstreams, &["api.example.com", &long, "127.0.0.1"]);
    let port = upstream.address().port();
    let gateway = Setup::new(&upstreams)
        .host("api.example.com", upstream.address())
        .host(&long, upstream.address())
        .destinations(&[
            "{name: names, hosts: ['*.example.com'], action: Inspect}",
            &format!("{{name: address, hosts: [127.0.0.1], ports: [{port}], action: Inspect}}"),
        ])
        .start();
    let agent = gateway.agent();
    let address = agent.dial("127.0.0.1").port(port).open().unwrap();
    let mut serials = Vec::new();

    for (connection, name) in [
        (agent.tls("api.example.com"), GeneralName::DNSName("api.example.com")),
        (agent.tls(&long), GeneralName::DNSName(&long)),
        (address, GeneralName::IPAddress(&[127, 0, 0, 1])),
    ] {
        inspect_leaf(&connection, |leaf| {
            let names = leaf.subject_alternative_name().unwrap().unwrap();
            assert_eq!(names.value.general_names, [name]);
            let validity = leaf.validity();
            let seconds = validity.not_after.timestamp() - validity.not_before.timestamp();
            assert!((3600..=24 * 3600 + 300).contains(&seconds), "{seconds}");
            assert!(leaf.extended_key_usage().unwrap().unwrap().value.server_auth);
            assert!(leaf.key_usage().unwrap().unwrap().value.digital_signature());
            assert!(!leaf.is_ca());
            assert!(has(leaf, |extension| matches!(extension, ParsedExtension::SubjectKeyIdentifier(_))));
            assert!(has(
                leaf,
                |extension| matches!(extension, ParsedExtension::AuthorityKeyIdentifier(id) if id.key_identifier.is_some())
            ));
            let common = leaf.subject().iter_common_name().next();
            assert!(common.is_none_or(|name| name.as_str().unwrap().len() <= 64), "{:?}", leaf.subject());
            assert!(leaf.raw_serial().len() >= 8);
            serials.push(leaf.raw_serial().to_vec());
        });
    }
    serials.sort();
    serials.dedup();
    assert_eq!(serials.len(), 3);
}

/// B18: no session is kept for later: no ticket, no session id, no early data, so that policy meets every connection.
#[test]
fn nothing_is_offered_by_which_a_session_could_be_resumed() {
    let test = inspected();
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        let kept = Arc::new(Kept::default());
        let dial = test.gateway.agent().dial("api.example.com").versions(&[version]);
        let mut config = (*dial.config()).clone();
        config.resumption = Resumption::store(Arc::<Kept>::clone(&kept));
        config.enable_early_data = true;
        twice(&test.gateway, &Arc::new(config));
        assert_eq!(kept.0.load(Ordering::Relaxed), 0, "{version:?}");
    }

    // The twin, which also shows that the store works: an upstream's tickets pass through a tunnel.
    let test = inspected_with(|setup| setup.destinations(&[TUNNEL_API]));
    let kept = Arc::new(Kept::default());
    let agent = test.gateway.agent().trusting(test.upstreams.roots());
    let mut config = (*agent.dial("api.example.com").config()).clone();
    config.resumption = Resumption::store(Arc::<Kept>::clone(&kept));
    twice(&test.gateway, &Arc::new(config));
    assert!(kept.0.load(Ordering::Relaxed) > 0);
}

fn inspecting(upstreams: &Pki, upstream: &Upstream) -> Gateway {
    Setup::new(upstreams).host("api.example.com", upstream.address()).destinations(&[INSPECT_API]).start()
}

/// A client that trusts this authority and sends a GREASE ECH extension (RFC 9849, section 6.2).
fn with_grease(authority: &Pki) -> Arc<ClientConfig> {
    let suite = ALL_SUPPORTED_SUITES[0];
    let (key, _) = suite.generate_key_pair().unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_ech(EchMode::Grease(EchGreaseConfig::new(suite, key)))
        .unwrap()
        .with_root_certificates(authority.roots())
        .with_no_client_auth();
    Arc::new(config)
}

/// Two connections with one request each: both handshakes are full, and no early data is taken.
fn twice(gateway: &Gateway, config: &Arc<ClientConfig>) {
    for _ in 0..2 {
        let tunnel = gateway.agent().connect("api.example.com:443").unwrap();
        let mut connection = tunnel.start_tls("api.example.com", Arc::clone(config)).unwrap();
        connection.send(GET);
        assert_eq!(connection.read_answer().status, 200);
        assert_eq!(connection.handshake(), Some(rustls::HandshakeKind::Full));
    }
}

fn inspect_leaf(connection: &Connection, look: impl FnOnce(&X509Certificate<'_>)) {
    let leaf = connection.peer_certificates().remove(0);
    look(&x509_parser::parse_x509_certificate(&leaf).unwrap().1);
}

fn has(leaf: &X509Certificate<'_>, wanted: impl Fn(&ParsedExtension<'_>) -> bool) -> bool {
    leaf.extensions().iter().any(|extension| wanted(extension.parsed_extension()))
}

/// Counts what a server gives a client for resumption, and gives none of it back.
#[derive(Debug, Default)]
struct Kept(AtomicUsize);

impl ClientSessionStore for Kept {
    fn set_kx_hint(&self, _: ServerName<'static>, _: rustls::NamedGroup) {}

    fn kx_hint(&self, _: &ServerName<'_>) -> Option<rustls::NamedGroup> {
        None
    }

    fn set_tls12_session(&self, _: ServerName<'static>, _: Tls12ClientSessionValue) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn tls12_session(&self, _: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        None
    }

    fn remove_tls12_session(&self, _: &ServerName<'static>) {}

    fn insert_tls13_ticket(&self, _: ServerName<'static>, _: Tls13ClientSessionValue) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn take_tls13_ticket(&self, _: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        None
    }
}
