//! WebSocket passes where a rule says so, after everything else was decided; every other upgrade is refused at once.

use super::{INSPECT_API, Inspected, inspected, inspected_with};
use crate::support::setup::policy;
use crate::support::upstream::{RawUpstream, accept_key};
use crate::support::{Connection, Ending, Gateway, Pki, Setup};

const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";
const ALLOWED: &str = "{name: api, hosts: [api.example.com], action: Inspect, upgrade: Allow}";

fn with_upgrade() -> Inspected {
    inspected_with(|setup| setup.destinations(&[ALLOWED]))
}

fn ask(connection: &mut Connection, path: &str, protocol: &str) {
    connection.send(format!(
        "GET {path} HTTP/1.1\r\nHost: api.example.com\r\nConnection: Upgrade\r\nUpgrade: {protocol}\r\n\
         Sec-WebSocket-Key: {KEY}\r\nSec-WebSocket-Version: 13\r\n\r\n"
    ));
}

#[test]
fn a_websocket_passes_where_the_rule_allows_it() {
    let test = with_upgrade();
    let mut connection = test.gateway.agent().tls("api.example.com");

    ask(&mut connection, "/ws", "websocket");
    let answer = connection.read_head();
    connection.send([0x81, 0x82, 1, 2, 3, 4, b'h' ^ 1, b'i' ^ 2]);

    assert_eq!(answer.status, 101, "{answer:?}");
    assert_eq!(answer.header("sec-websocket-accept"), Some(accept_key(KEY).as_str()));
    assert_eq!(connection.read_exactly(4), b"\x81\x02hi");
}

#[test]
fn a_websocket_without_such_a_rule_is_refused_at_once() {
    let test = inspected();
    let mut connection = test.gateway.agent().tls("api.example.com");

    ask(&mut connection, "/ws", "websocket");

    connection.read_answer().assert_refused(426, "postern/builtin/upgrade");
    assert!(test.upstream.requests().is_empty());
}

#[test]
fn a_body_that_stalls_is_the_agents_failure_with_an_upgrade_too() {
    let upstreams = Pki::new("Upstream Test CA");
    let identity = upstreams.leaf(&["api.example.com"]);
    let upstream =
        RawUpstream::start(Some(&identity), |connection, _| while connection.try_read().is_some() {});
    let setup = Setup::new(&upstreams).host("api.example.com", upstream.address());
    let gateway = setup.set("/timeouts/streamIdle", "300ms").destinations(&[ALLOWED]).start();
    for upgrade in ["Connection: Upgrade\r\nUpgrade: websocket\r\n", ""] {
        let mut connection = gateway.agent().tls("api.example.com");
        connection.send(format!(
            "GET /ws HTTP/1.1\r\nHost: api.example.com\r\n{upgrade}Sec-WebSocket-Key: {KEY}\r\n\
             Sec-WebSocket-Version: 13\r\nContent-Length: 10\r\n\r\nhalf"
        ));
        let answer = connection.read_answer();
        assert_eq!(answer.status, 400, "{upgrade}: {}", answer.text());
        assert!(answer.text().contains("the request's body stalled"), "{}", answer.text());
    }
}

#[test]
fn an_upgrade_to_anything_else_is_refused() {
    let test = with_upgrade();

    for protocol in ["TLS/1.2", "connect-udp", "websocket, h2c"] {
        let mut connection = test.gateway.agent().tls("api.example.com");
        ask(&mut connection, "/ws", protocol);
        let answer = connection.read_answer();
        assert_eq!((protocol, answer.status), (protocol, 403), "{}", answer.text());
        answer.assert_refused(403, "postern/builtin/upgrade");
    }
    assert!(test.upstream.requests().is_empty());
}

#[test]
fn an_upgrade_to_h2c_is_answered_without_being_made() {
    let test = with_upgrade();
    let mut connection = test.gateway.agent().tls("api.example.com");

    ask(&mut connection, "/echo", "h2c");

    assert_eq!(connection.read_answer().status, 200);
    let seen = &test.upstream.requests()[0];
    assert_eq!((seen.header("upgrade"), seen.header("connection")), (None, None));
}

#[test]
fn an_upgrade_to_h2c_is_passed_over_as_servers_do() {
    let test = with_upgrade();
    let mut connection = test.gateway.agent().tls("api.example.com");

    ask(&mut connection, "/echo", "h2c");

    assert_eq!(connection.read_answer().status, 200);
    let requests = test.upstream.requests();
    assert!(requests.iter().all(|request| request.header("upgrade").is_none()), "{requests:?}");
}

#[test]
fn an_upgrade_that_the_upstream_declines_is_an_ordinary_answer() {
    let test = with_upgrade();
    let mut connection = test.gateway.agent().tls("api.example.com");

    ask(&mut connection, "/status/426", "websocket");
    assert_eq!(connection.read_answer().status, 426);
    connection.send("GET /echo HTTP/1.1\r\nHost: api.example.com\r\n\r\n");

    assert_eq!(connection.read_answer().status, 200);
}

#[test]
fn connect_inside_a_connection_is_refused() {
    let test = with_upgrade();
    let mut connection = test.gateway.agent().tls("api.example.com");

    connection.send("CONNECT evil.example.com:443 HTTP/1.1\r\nHost: api.example.com\r\n\r\n");

    let answer = connection.read_answer();
    assert!((400..500).contains(&answer.status), "{answer:?}");
    assert!(test.upstream.requests().is_empty());
}

/// An upstream that takes the WebSocket and waits for its end.
fn patient() -> (RawUpstream, Gateway) {
    let upstreams = Pki::new("Upstream Test CA");
    let identity = upstreams.leaf(&["api.example.com"]);
    let upstream = RawUpstream::start(Some(&identity), |connection, heard| {
        connection.read_until(b"\r\n\r\n");
        let accept = accept_key(KEY);
        connection.send(format!(
            "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Accept: {accept}\r\n\r\n"
        ));
        while connection.try_read().is_some() {}
        heard.push(b"the end".to_vec());
    });
    let setup = Setup::new(&upstreams).host("api.example.com", upstream.address());
    let gateway = setup.set("/timeouts/streamIdle", "2s").destinations(&[ALLOWED]).start();
    (upstream, gateway)
}

#[test]
fn an_agent_that_breaks_off_a_websocket_ends_it_upstream() {
    let (upstream, gateway) = patient();
    let mut connection = gateway.agent().tls("api.example.com");
    ask(&mut connection, "/ws", "websocket");
    assert_eq!(connection.read_head().status, 101);

    // Without the closing alert of TLS: the process was killed.
    drop(connection);

    upstream.heard().wait_for("the end upstream", |said| said == b"the end");
    assert!(gateway.wait_for("Response", "Allow")["destination"]["reason"].is_string());
}

#[test]
fn a_websocket_in_silence_is_ended_after_its_bound() {
    let (upstream, gateway) = patient();
    let mut connection = gateway.agent().tls("api.example.com");
    ask(&mut connection, "/ws", "websocket");
    assert_eq!(connection.read_head().status, 101);

    assert!(matches!(connection.ending(), Ending::Closed(said) | Ending::Cut(said) if said.is_empty()));
    upstream.heard().wait_for("the end upstream", |said| said == b"the end");
}

#[test]
fn what_audit_alone_denies_of_an_upgrade_goes_through_and_is_said() {
    let test = inspected_with(|setup| {
        let inspected = policy(&[INSPECT_API]).replace("podSelector", "enforcement: Audit\n  podSelector");
        setup.policy(&inspected)
    });
    let mut connection = test.gateway.agent().tls("api.example.com");

    ask(&mut connection, "/ws", "websocket");

    assert_eq!(connection.read_head().status, 101);
    assert_eq!(test.gateway.wait_for("Request", "WouldDeny")["decision"]["rule"], "postern/builtin/upgrade");
}
