//! The reverse way in: a local port that stands for one upstream.

use super::{INSPECT_API, inspected_with};
use crate::support::setup::policy;

const UPSTREAM: &str = "https://api.example.com";

#[test]
fn a_reverse_listener_speaks_for_its_upstream() {
    let test = inspected_with(|setup| setup.reverse(UPSTREAM));
    let mut connection = test.gateway.reverse();

    connection.send("POST /echo?x=1 HTTP/1.1\r\nHost: localhost:1234\r\nContent-Length: 2\r\n\r\nhi");

    let answer = connection.read_answer();
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(answer.json()["authority"], "api.example.com");
    let seen = &test.upstream.requests()[0];
    assert_eq!((seen.target.as_str(), seen.body.as_slice()), ("/echo?x=1", &b"hi"[..]));
    assert_eq!(test.upstream.links()[0].sni.as_deref(), Some("api.example.com"));
}

#[test]
fn a_reverse_listener_is_held_to_the_policy() {
    let test = inspected_with(|setup| {
        let destination = "{name: api, hosts: [api.example.com], action: Inspect, \
                           endpoints: [{methods: [GET], path: /echo}]}";
        setup.reverse(UPSTREAM).destinations(&[destination])
    });
    let mut connection = test.gateway.reverse();

    connection.send("GET /echo HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert_eq!(connection.read_answer().status, 200);
    connection.send("GET /bytes/1 HTTP/1.1\r\nHost: localhost\r\n\r\n");

    connection.read_answer().assert_refused(403, "postern/builtin/endpoint");
    assert_eq!(test.upstream.requests().len(), 1);
}

#[test]
fn what_no_rule_names_is_refused_there_too() {
    let test = inspected_with(|setup| setup.reverse(UPSTREAM).destinations(&[]));
    let mut connection = test.gateway.reverse();

    connection.send("GET /echo HTTP/1.1\r\nHost: localhost\r\n\r\n");

    connection.read_answer().assert_refused(403, "postern/builtin/default-deny");
    assert!(test.upstream.links().is_empty());
}

#[test]
fn a_tunnel_rule_means_inspect_there() {
    let test = inspected_with(|setup| {
        let destination = "{name: api, hosts: [api.example.com], action: Tunnel}";
        setup.reverse(UPSTREAM).destinations(&[destination])
    });
    let mut connection = test.gateway.reverse();

    connection.send("GET /echo HTTP/1.1\r\nHost: localhost\r\n\r\n");

    assert_eq!(connection.read_answer().status, 200);
    assert_eq!(test.gateway.wait_for("Request", "Allow")["destination"]["intercepted"], true);
}

#[test]
fn both_ways_in_can_be_open_at_once() {
    let test = inspected_with(|setup| setup.reverse(UPSTREAM).destinations(&[INSPECT_API]));
    let mut connection = test.gateway.reverse();

    connection.send("GET /echo HTTP/1.1\r\nHost: localhost\r\n\r\n");

    assert_eq!(connection.read_answer().status, 200);
    assert_eq!(test.gateway.agent().get("https://api.example.com/echo").status, 200);
}

#[test]
fn a_tunnel_rule_allows_no_upgrade_there() {
    let test = inspected_with(|setup| {
        let destination = "{name: api, hosts: [api.example.com], action: Tunnel}";
        setup.reverse(UPSTREAM).destinations(&[destination])
    });
    let mut connection = test.gateway.reverse();

    connection.send(
        "GET /ws HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n",
    );

    connection.read_answer().assert_refused(426, "postern/builtin/upgrade");
    assert!(test.upstream.requests().is_empty());
}

#[test]
fn what_an_audit_policy_would_deny_is_said_there_too() {
    let trial = policy(&["{name: none, hosts: [api.example.com], action: Deny}"])
        .replace("name: test", "name: trial")
        .replace("podSelector", "enforcement: Audit\n  podSelector");
    let test = inspected_with(|setup| {
        setup.reverse(UPSTREAM).policy(&format!("{}---\n{trial}", policy(&[INSPECT_API])))
    });
    let mut connection = test.gateway.reverse();

    connection.send("GET /echo HTTP/1.1\r\nHost: localhost\r\n\r\n");

    assert_eq!(connection.read_answer().status, 200);
    assert_eq!(test.gateway.wait_for("Policy", "WouldDeny")["decision"]["rule"], "agents/trial/none");
}
