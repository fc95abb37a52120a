//! Bytes that hide a name from the gateway, and show it to a server that reads leniently.

use super::denials;
use crate::support::setup::policy;
use crate::support::upstream::RawUpstream;
use crate::support::{Gateway, Pki, Setup};

/// What Go's TLS, old OpenSSL, or a lenient HTTP server takes for the beginning of a handshake or a request.
const UNCLEAR: &[&[u8]] = &[
    // A TLS alert record, warning close_notify, before a ClientHello.
    b"\x15\x03\x01\x00\x02\x01\x00\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    // A handshake record of a version that is none.
    b"\x16\x02\x00\x02\x00\x01\x00\x01\xfc\x03\x03",
    // An SSLv2 hello for TLS 1.0 (RFC 5246, appendix E.2).
    b"\x80\x2e\x01\x03\x01\x00\x15\x00\x00\x00\x10",
    b"\r\n\r\nGET / HTTP/1.1\r\nHost: evil.example.com\r\n\r\n",
    b" GET / HTTP/1.1\r\nHost: evil.example.com\r\n\r\n",
    b"M-SEARCH * HTTP/1.1\r\nHost: evil.example.com\r\n\r\n",
    b"get / HTTP/1.1\r\nHost: evil.example.com\r\n\r\n",
    b"G3T / HTTP/1.1\r\nHost: evil.example.com\r\n\r\n",
    b"GET\t/ HTTP/1.1\r\nHost: evil.example.com\r\n\r\n",
    b"GET /\r\n",
    b"pri * http/2.0\r\n\r\nsm\r\n\r\n",
    // The preface of HTTP/2: the name is in frames behind it.
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00",
    b"PROXY TCP4 192.0.2.1 192.0.2.2 50000 443\r\n\x16\x03\x01",
    // A Host that servers read differently, and a target that is not the Host's.
    b"GET / HTTP/1.1\r\nHost: evil.example.com:80:80\r\n\r\n",
    b"GET http://evil.example.com/ HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
];

/// What is plainly another protocol: SSH, PostgreSQL that asks for TLS, Redis.
const OPAQUE: &[&[u8]] =
    &[b"SSH-2.0-OpenSSH_9.9\r\n", b"\x00\x00\x00\x08\x04\xd2\x16\x2f", b"*1\r\n$4\r\nPING\r\n"];

fn server() -> RawUpstream {
    RawUpstream::start(None, |connection, heard| {
        let first = connection.read_exactly(1);
        heard.push(first);
        connection.send("heard");
    })
}

/// Sends the bytes to an address, and answers whether they were refused by an event of this rule.
#[track_caller]
fn assert_refused(gateway: &Gateway, port: u16, bytes: &[u8], rule: &str) {
    let before = denials(gateway, 0).len();
    let mut connection = gateway.agent().connect(&format!("127.0.0.1:{port}")).unwrap();
    connection.send(bytes);
    let _ = connection.ending();
    let refused = denials(gateway, before + 1).swap_remove(before);
    assert_eq!(refused, ("127.0.0.1".to_owned(), rule.to_owned()), "{:?}", String::from_utf8_lossy(bytes));
}

#[track_caller]
fn assert_heard(gateway: &Gateway, port: u16, bytes: &[u8]) {
    let mut connection = gateway.agent().connect(&format!("127.0.0.1:{port}")).unwrap();
    connection.send(bytes);
    assert_eq!(connection.read_exactly(5), b"heard", "{:?}", String::from_utf8_lossy(bytes));
}

/// B7: what a lenient server could take for TLS or HTTP is not opaque where a rule needs a name; what is plainly another
/// protocol passes.
#[test]
fn unclear_bytes_are_no_way_past_a_rule_about_names() {
    let (named, free) = (server(), server());
    let (port, other) = (named.address().port(), free.address().port());
    let gateway = Setup::new(&Pki::new("Upstream Test CA"))
        .destinations(&[
            &format!("{{name: net, cidrs: [127.0.0.0/8], ports: [{port}, {other}], action: Tunnel}}"),
            &format!("{{name: no, hosts: [evil.example.com], ports: [{port}], action: Deny}}"),
        ])
        .start();

    for bytes in UNCLEAR {
        assert_refused(&gateway, port, bytes, "postern/builtin/unparseable");
    }
    assert_eq!(named.accepted(), 0);

    for bytes in OPAQUE {
        assert_heard(&gateway, port, bytes);
    }
    // No rule needs a name on the other port, so that all of it is opaque there.
    for bytes in UNCLEAR.iter().chain(OPAQUE) {
        assert_heard(&gateway, other, bytes);
    }
}

/// B7: half of something is said to be refused: it could still become what a rule about names decides.
#[test]
fn bytes_that_never_become_clear_are_refused_with_an_event() {
    let server = server();
    let port = server.address().port();
    let gateway = Setup::new(&Pki::new("Upstream Test CA"))
        .set("/timeouts/sniff", "300ms")
        .destinations(&[
            &format!("{{name: net, cidrs: [127.0.0.0/8], ports: [{port}], action: Tunnel}}"),
            &format!("{{name: no, hosts: [evil.example.com], ports: [{port}], action: Deny}}"),
        ])
        .start();

    for half in [&b""[..], b"\x16", b"GET /echo", b"SSH-2", b"PRI * HTTP"] {
        assert_refused(&gateway, port, half, "postern/builtin/unparseable");
    }
    assert_eq!(server.accepted(), 0);
    assert_heard(&gateway, port, b"SSH-2.0-OpenSSH_9.9\r\n");
}

/// B7: a request line without end is refused at the bound of a head, not read until the time is over.
#[test]
fn a_request_line_without_end_is_bounded() {
    let server = server();
    let port = server.address().port();
    let gateway = Setup::new(&Pki::new("Upstream Test CA"))
        .set("/limits/headerBytes", 8192)
        .destinations(&[
            &format!("{{name: net, cidrs: [127.0.0.0/8], ports: [{port}], action: Tunnel}}"),
            &format!("{{name: no, hosts: [evil.example.com], ports: [{port}], action: Deny}}"),
        ])
        .start();
    let endless = [&b"GET /"[..], &[b'a'; 9000]].concat();

    assert_refused(&gateway, port, &endless, "postern/builtin/framing");

    assert_eq!(server.accepted(), 0);
    assert_heard(&gateway, port, b"SSH-2.0-OpenSSH_9.9\r\n");
}

/// A2: where the cluster inspects names, what shows none is served by the cluster's own rules alone.
#[test]
fn a_flow_without_a_name_satisfies_no_floor_of_the_cluster() {
    let (closed, opened) = (server(), server());
    let (port, other) = (closed.address().port(), opened.address().port());
    let floor = format!(
        "---\napiVersion: postern.dev/v1alpha1\nkind: ClusterEgressPolicy\nmetadata: {{name: floor}}\nspec:\n  \
         destinations:\n    - {{name: look, hosts: ['**'], ports: [{port}, {other}], action: Inspect}}\n    \
         - {{name: net, cidrs: [127.0.0.0/8], ports: [{other}], action: Tunnel}}\n"
    );
    let own =
        policy(&[&format!("{{name: net, cidrs: [127.0.0.0/8], ports: [{port}, {other}], action: Tunnel}}")]);
    let gateway = Setup::new(&Pki::new("Upstream Test CA")).policy(&(own + &floor)).start();

    for bytes in OPAQUE.iter().chain([&&b"GET / HTTP/1.0\r\n\r\n"[..]]) {
        assert_refused(&gateway, port, bytes, "postern/builtin/default-deny");
    }
    let nameless = gateway.agent().dial("127.0.0.1").port(port).open();
    assert!(nameless.is_err(), "TLS that names nobody");
    denials(&gateway, OPAQUE.len() + 2);
    assert_eq!(closed.accepted(), 0);

    for bytes in OPAQUE {
        assert_heard(&gateway, other, bytes);
    }
    assert_refused(&gateway, other, UNCLEAR[0], "postern/builtin/unparseable");
}
