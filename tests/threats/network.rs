//! Ways out of the pod other than the one that policy gives: addresses without names, resolvers, relays, metadata.

use std::net::{IpAddr, TcpListener, UdpSocket};
use std::sync::Arc;

use serde_json::json;

use super::denials;
use crate::gateway::{inspected, inspected_with};
use crate::support::upstream::RawUpstream;
use crate::support::{Answer, Connection, Ending, Gateway, Pki, Setup, Upstream};

/// Every spelling of cloud metadata and link-local that a broad rule would cover.
const RESERVED: [&str; 15] = [
    "169.254.169.254",
    "168.63.129.16",
    "100.100.100.200",
    "0.0.0.0",
    "100.96.0.96",
    "100.80.80.80",
    "[fd00:ec2::254]",
    "[fd00:c1::a9fe:a9fe]",
    "[fd00:a9fe:a9fe::1]",
    "[fd00:100::100:200]",
    "[fd20:ce::254]",
    "[fec0::1]",
    "[fe80::1]",
    "[::ffff:169.254.169.254]",
    "[64:ff9b::a9fe:a9fe]",
];

/// A2: a ClientHello without a name, to an address, satisfies no rule about hosts.
#[test]
fn a_client_hello_that_names_nobody_reaches_nobody() {
    let test = inspected();
    let agent = test.gateway.agent();

    assert!(agent.dial("192.0.2.7").open().is_err());

    assert_eq!(
        denials(&test.gateway, 1),
        [("192.0.2.7".to_owned(), "postern/builtin/default-deny".to_owned())]
    );
    assert!(test.upstream.links().is_empty());
    // The twin: CONNECT named the host, so the missing name in TLS takes nothing away.
    let mut config = (*agent.dial("api.example.com").config()).clone();
    config.enable_sni = false;
    let tunnel = agent.connect("api.example.com:443").unwrap();
    let mut named = tunnel.start_tls("api.example.com", Arc::new(config)).unwrap();
    named.send("GET /echo HTTP/1.1\r\nHost: api.example.com\r\n\r\n");
    assert_eq!((named.read_answer().status, named.issuer().as_str()), (200, "Postern Test CA"));
    assert_eq!(test.upstream.links()[0].sni.as_deref(), Some("api.example.com"));
}

/// A2: an address is inspected where a rule holds exactly that address, and nowhere else.
#[test]
fn an_address_is_reached_only_by_its_own_literal() {
    let upstreams = Pki::new("Upstream Test CA");
    let upstream = Upstream::tls(&upstreams, &["127.0.0.1"]);
    let port = upstream.address().port();
    let rule = format!("{{name: literal, hosts: [127.0.0.1], ports: [{port}], action: Inspect}}");
    let gateway = Setup::new(&upstreams).destinations(&[&rule]).start();
    let agent = gateway.agent();

    assert_eq!(refused(&gateway, &format!("127.0.0.2:{port}")), "postern/builtin/default-deny");
    assert!(upstream.links().is_empty());

    let mut connection = agent.dial("127.0.0.1").port(port).open().unwrap();
    connection.send(format!("GET /echo HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n"));
    assert_eq!((connection.read_answer().status, connection.issuer().as_str()), (200, "Postern Test CA"));
    assert_eq!(upstream.requests().len(), 1);
}

/// A16: the transparent listener stands for no destination: a connection made to it, and not redirected, would lead
/// to itself for ever.
#[test]
fn a_connection_to_the_transparent_listener_itself_leads_nowhere() {
    let upstreams = Pki::new("Upstream Test CA");
    let gateway = Setup::new(&upstreams)
        .set("/listeners/transparent", json!({"port": 0}))
        .destinations(&["{name: all, hosts: [\"**\"], action: Inspect}"])
        .start();
    let listener = gateway.address("transparent");

    let mut connection = Connection::open(listener);
    // The twin: the same port by name through the explicit way in is a destination, and a forbidden one.
    let answer = gateway.agent().get(&format!("http://{listener}/"));

    assert_eq!(connection.ending(), Ending::Cut(Vec::new()));
    answer.assert_refused(403, "postern/builtin/default-deny");
    let event = gateway.wait_for("Connection", "Deny");
    assert_eq!(event["decision"]["rule"], "postern/builtin/denied-address");
    assert_eq!(event["destination"]["port"], listener.port());
}

/// A7: resolvers over HTTPS and TLS are hosts and ports like any other: no rule, no way, not even under `**`.
#[test]
fn a_resolver_over_tls_or_https_is_not_reached() {
    let test = inspected();
    for resolver in
        ["dns.google:443", "cloudflare-dns.com:443", "dns.google:853", "1.1.1.1:853", "9.9.9.9:53"]
    {
        assert_eq!(refused(&test.gateway, resolver), "postern/builtin/default-deny", "{resolver}");
    }
    let wide = inspected_with(|setup| setup.destinations(&["{name: all, hosts: ['**'], action: Inspect}"]));
    for resolver in ["dns.google:853", "dns.google:53"] {
        assert_eq!(refused(&wide.gateway, resolver), "postern/builtin/default-deny", "{resolver}");
    }
    assert_eq!(wide.gateway.agent().get("https://api.example.com/echo").status, 200);
    assert_eq!(wide.upstream.requests().len(), 1);
}

/// A7: DNS over HTTPS through a host that is allowed ends at its endpoints.
#[test]
fn dns_over_an_allowed_host_ends_at_its_endpoints() {
    let test = inspected_with(|setup| {
        setup.destinations(&["{name: api, hosts: [api.example.com], action: Inspect, \
                              endpoints: [{methods: [GET, POST], path: '/echo'}]}"])
    });
    let query = [("Content-Type", "application/dns-message"), ("Accept", "application/dns-message")];
    let send = |method: &str, path: &str, body: &[u8]| -> Answer {
        test.gateway.agent().request(method, &format!("https://api.example.com{path}"), &query, body)
    };

    send("POST", "/dns-query", b"\0\0\x01\0").assert_refused(403, "postern/builtin/endpoint");
    send("GET", "/dns-query?dns=AAABAAAB", b"").assert_refused(403, "postern/builtin/endpoint");
    assert!(test.upstream.requests().is_empty());

    assert_eq!(send("POST", "/echo", b"an ordinary call").status, 200);
    assert_eq!(test.upstream.requests().len(), 1);
}

/// A8: the gateway resolves an allowed name itself and judges the address that it would really dial.
#[test]
fn a_name_that_resolves_to_the_loopback_is_not_dialled() {
    let upstreams = Pki::new("Upstream Test CA");
    let upstream = Upstream::tls(&upstreams, &["localhost"]);
    let port = upstream.address().port();
    let rule = format!("{{name: local, hosts: [localhost], ports: [{port}], action: Inspect}}");
    let start = |allowed: &[&str]| {
        Setup::new(&upstreams).set("/upstream/allowAddresses", json!(allowed)).destinations(&[&rule]).start()
    };
    let url = format!("https://localhost:{port}/echo");

    let guarded = start(&[]);
    guarded.agent().get(&url).assert_refused(403, "postern/builtin/denied-address");
    assert!(upstream.links().is_empty(), "nothing is dialled");
    let event = guarded.wait_for("Request", "Deny");
    assert_eq!(event["decision"]["rule"], "postern/builtin/denied-address");

    let opened = start(&["127.0.0.0/8", "::1/128"]);
    assert_eq!(opened.agent().get(&url).status, 200);
    assert_eq!(upstream.links()[0].sni.as_deref(), Some("localhost"));
}

/// A8: a cluster's own ranges are closed to every name, whichever action its rule has.
#[test]
fn a_name_that_leads_into_a_denied_range_is_not_dialled() {
    for action in ["Inspect", "Tunnel"] {
        let rule = format!("{{name: api, hosts: [api.example.com], action: {action}}}");
        let test = inspected_with(|setup| {
            setup
                .set("/upstream/allowAddresses", json!([]))
                .destinations(&[&rule])
                .set("/upstream/denyAddresses", json!(["10.96.0.0/16"]))
                .set("/upstream/hosts/api.example.com", "10.96.0.1")
        });
        let agent = test.gateway.agent();
        if action == "Inspect" {
            agent.get("https://api.example.com/").assert_refused(403, "postern/builtin/denied-address");
        } else {
            assert!(agent.dial("api.example.com").open().is_err());
        }
        let event = test.gateway.wait_for_event("the denial", |event| event["decision"]["verdict"] == "Deny");
        assert_eq!(event["decision"]["rule"], "postern/builtin/denied-address", "{action}");
    }
}

/// A17: an allowed host is no relay: CONNECT inside its connection, and an absolute form for another, go nowhere.
#[test]
fn an_allowed_host_relays_to_nobody() {
    let test = inspected();
    let ask = |head: &str| {
        let mut connection = test.gateway.agent().tls("api.example.com");
        connection.send(format!("{head} HTTP/1.1\r\nHost: api.example.com\r\n\r\n"));
        connection.read_answer()
    };

    for head in ["CONNECT evil.example.com:443", "CONNECT api.example.com:443"] {
        let answer = ask(head);
        assert!((400..500).contains(&answer.status), "{head}: {answer:?}");
        assert!(answer.header("x-postern-rule").is_some(), "{head}: {answer:?}");
    }
    ask("GET https://evil.example.com/echo").assert_refused(421, "postern/builtin/name-mismatch");
    ask("GET http://10.0.0.1/echo").assert_refused(421, "postern/builtin/name-mismatch");
    assert!(test.upstream.requests().is_empty());

    let answer = ask("GET https://api.example.com/echo?x=1");
    assert_eq!(answer.json()["target"], "/echo?x=1", "it goes on in origin form");
    assert_eq!(test.upstream.requests().len(), 1);
}

/// A28: a broad rule about addresses opens neither metadata nor link-local, in whichever form of IPv6 they hide.
#[test]
fn a_broad_address_rule_opens_no_metadata() {
    let gateway = broad(80, &[]);

    for address in RESERVED {
        assert_eq!(
            refused(&gateway, &format!("{address}:80")),
            "postern/builtin/denied-address",
            "{address}"
        );
    }
}

/// A28: a broad rule about addresses does not open the loopback; one that is as narrow does.
#[test]
fn only_a_rule_as_narrow_as_the_reserved_range_lifts_it() {
    let echo = || {
        RawUpstream::start(None, |connection, heard| {
            heard.push(connection.read_until(b"\n"));
            connection.send("heard\n");
        })
    };
    let (guarded, opened) = (echo(), echo());
    let port = guarded.address().port();
    let gateway = broad(port, &[]);
    for form in ["127.0.0.1", "[::ffff:127.0.0.1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]", "[::127.0.0.1]"] {
        assert_eq!(refused(&gateway, &format!("{form}:{port}")), "postern/builtin/denied-address", "{form}");
    }
    assert_eq!(guarded.accepted(), 0);

    let port = opened.address().port();
    let narrow = format!("{{name: narrow, cidrs: [127.0.0.0/8], ports: [{port}], action: Tunnel}}");
    let gateway = broad(port, &[&narrow]);
    let mut connection = gateway.agent().connect(&format!("127.0.0.1:{port}")).unwrap();
    connection.send("hello\n");
    assert_eq!(connection.read_until(b"\n"), b"heard\n");
    assert_eq!(opened.heard().entries(), [b"hello\n"]);
}

/// A28: the API server and the pod's node are known from the environment, and reached by no rule or setting for a wider
/// range.
#[test]
fn the_api_server_and_the_node_are_denied_whatever_the_settings_say() {
    let server = RawUpstream::start(None, |connection, heard| {
        heard.push(connection.read_until(b"\n"));
        connection.send("heard\n");
    });
    let port = server.address().port();
    let start = |rules: &[&str]| {
        let wide =
            format!("{{name: wide, cidrs: [127.0.0.0/8, 192.0.2.0/24], ports: [{port}], action: Tunnel}}");
        let wide6 = format!("{{name: wide-6, cidrs: ['2001:db8:7::/48'], ports: [{port}], action: Tunnel}}");
        let rules: Vec<&str> = rules.iter().copied().chain([wide.as_str(), wide6.as_str()]).collect();
        Setup::new(&Pki::new("Upstream Test CA"))
            .variable("KUBERNETES_SERVICE_HOST", "127.0.0.1")
            .variable("POSTERN_NODE_ADDRESSES", "192.0.2.77,2001:db8:7::7")
            .set("/upstream/allowAddresses", json!(["127.0.0.0/8", "192.0.2.0/24"]))
            .destinations(&rules)
            .start()
    };

    let guarded = start(&[]);
    for address in ["127.0.0.1", "[::ffff:127.0.0.1]", "192.0.2.77", "[2001:db8:7::7]"] {
        assert_eq!(
            refused(&guarded, &format!("{address}:{port}")),
            "postern/builtin/denied-address",
            "{address}"
        );
    }
    assert_eq!(server.accepted(), 0);

    let opened = start(&[&format!("{{name: api, cidrs: [127.0.0.1/32], ports: [{port}], action: Tunnel}}")]);
    let mut connection = opened.agent().connect(&format!("127.0.0.1:{port}")).unwrap();
    connection.send("hello\n");
    assert_eq!(connection.read_until(b"\n"), b"heard\n");
}

/// A28: the pod's own addresses are reached by no rule, however narrow.
#[test]
fn the_pods_own_addresses_are_never_dialled() {
    let listener = TcpListener::bind("0.0.0.0:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    // A machine that has no address but loopback has nothing to protect here.
    if let Some(own) = own_address() {
        let exact = format!("{{name: own, cidrs: [{own}/32], ports: [{port}], action: Tunnel}}");
        let gateway = broad(port, &[&exact]);
        assert_eq!(refused(&gateway, &format!("{own}:{port}")), "postern/builtin/denied-address");
        assert!(listener.accept().is_err(), "nothing is dialled");
    }
}

/// A gateway under which every address on this port may be tunnelled to, as far as rules can say that.
fn broad(port: u16, more: &[&str]) -> Gateway {
    let rules = [
        format!("{{name: wide, cidrs: [0.0.0.0/0], ports: [{port}], action: Tunnel}}"),
        format!("{{name: wide-6, cidrs: ['::/0'], ports: [{port}], action: Tunnel}}"),
    ];
    let rules: Vec<&str> = rules.iter().map(String::as_str).chain(more.iter().copied()).collect();
    let upstreams = Pki::new("Upstream Test CA");
    Setup::new(&upstreams).set("/upstream/allowAddresses", json!([])).destinations(&rules).start()
}

/// The rule that refuses a destination: said in the answer to CONNECT, or before the reset by the last event.
#[track_caller]
fn refused(gateway: &Gateway, authority: &str) -> String {
    let before = denials(gateway, 0).len();
    match gateway.agent().connect(authority) {
        Err(answer) => {
            assert_eq!(answer.status, 403, "{answer:?}");
            denials(gateway, before + 1);
            answer.header("x-postern-rule").unwrap().to_owned()
        }
        Ok(mut connection) => {
            // Where the first bytes decide, these are no protocol.
            let _ = connection.try_send("\0\0\0\0");
            let (Ending::Closed(said) | Ending::Cut(said)) = connection.ending();
            assert!(said.is_empty(), "{authority}: {}", String::from_utf8_lossy(&said));
            denials(gateway, before + 1).swap_remove(before).1
        }
    }
}

/// An address of this machine that is not loopback, as the kernel would choose it.
fn own_address() -> Option<IpAddr> {
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    socket.connect("192.0.2.254:9").ok()?;
    let own = socket.local_addr().unwrap().ip();
    (!own.is_loopback() && !own.is_unspecified()).then_some(own)
}
