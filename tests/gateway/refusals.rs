//! What is refused, in which words, and that nothing went out.

use serde_json::json;

use super::{INSPECT_API, inspected, inspected_with};
use crate::support::upstream::RawUpstream;
use crate::support::{Ending, Pki, Setup, Upstream};

#[test]
fn connect_to_a_name_that_no_rule_names_is_refused() {
    let test = inspected();

    let answer = test.gateway.agent().connect("evil.example.com:443").err().unwrap();

    answer.assert_refused(403, "postern/builtin/default-deny");
    assert!(answer.text().contains("Destination: evil.example.com:443"), "{}", answer.text());
    let event = test.gateway.wait_for("Connection", "Deny");
    assert_eq!(event["destination"]["host"], "evil.example.com");
    assert_eq!(event["id"], answer.header("x-postern-event").unwrap());
}

#[test]
fn a_plain_request_to_a_name_that_no_rule_names_is_refused() {
    let test = inspected();

    let answer = test.gateway.agent().get("http://evil.example.com/steal?data=1");

    answer.assert_refused(403, "postern/builtin/default-deny");
    assert!(!answer.text().contains("data=1"), "{}", answer.text());
}

#[test]
fn a_host_that_a_deny_rule_names_shows_the_reason_inside_tls() {
    let test = inspected_with(|setup| {
        setup.destinations(&["{name: no-api, hosts: [api.example.com], action: Deny}"])
    });
    let mut connection = test.gateway.agent().tls("api.example.com");

    connection.send("GET /echo HTTP/1.1\r\nHost: api.example.com\r\n\r\n");

    connection.read_answer().assert_refused(403, "agents/test/no-api");
    assert_eq!(connection.issuer(), "Postern Test CA");
    assert!(test.upstream.links().is_empty(), "nothing is dialled");
}

#[test]
fn a_host_under_a_wildcard_deny_rule_is_refused_at_connect() {
    let test =
        inspected_with(|setup| setup.destinations(&["{name: none, hosts: ['*.example.com'], action: Deny}"]));

    let answer = test.gateway.agent().connect("api.example.com:443").err().unwrap();

    answer.assert_refused(403, "agents/test/none");
}

#[test]
fn a_deny_rule_wins_over_a_more_specific_allow() {
    let test = inspected_with(|setup| {
        setup.destinations(&[INSPECT_API, "{name: none, hosts: ['**.example.com'], action: Deny}"])
    });

    let answer = test.gateway.agent().connect("api.example.com:443").err().unwrap();

    answer.assert_refused(403, "agents/test/none");
}

#[test]
fn a_port_that_the_rule_does_not_have_is_refused() {
    let test = inspected();

    let answer = test.gateway.agent().connect("api.example.com:8443").err().unwrap();

    answer.assert_refused(403, "postern/builtin/default-deny");
}

#[test]
fn an_endpoint_that_is_not_listed_is_refused_and_the_connection_goes_on() {
    let test = inspected_with(|setup| {
        setup.destinations(&["{name: api, hosts: [api.example.com], action: Inspect, \
                              endpoints: [{methods: [GET], path: '/echo/**'}]}"])
    });
    let mut connection = test.gateway.agent().tls("api.example.com");

    for refused in
        ["POST /echo/x", "GET /bytes/1", "GET /echo/../bytes/1", "GET /echo//x", "GET /echo/%2e%2e/x"]
    {
        connection.send(format!("{refused} HTTP/1.1\r\nHost: api.example.com\r\n\r\n"));
        connection.read_answer().assert_refused(403, "postern/builtin/endpoint");
    }
    connection.send("HEAD /echo/x HTTP/1.1\r\nHost: api.example.com\r\n\r\n");

    assert_eq!(connection.read_head().status, 200);
    assert_eq!(test.upstream.requests().len(), 1);
}

#[test]
fn a_host_header_for_another_name_is_misdirected() {
    let test = inspected_with(|setup| {
        setup.destinations(&["{name: all, hosts: ['**.example.com'], action: Inspect}"])
    });
    for host in ["other.example.com", "api.example.com.", "api.example.com:444", "127.0.0.1"] {
        let mut connection = test.gateway.agent().tls("api.example.com");
        connection.send(format!("GET /echo HTTP/1.1\r\nHost: {host}\r\n\r\n"));
        let answer = connection.read_answer();
        if host == "api.example.com." {
            assert_eq!(answer.status, 200, "a trailing dot is the same name: {answer:?}");
        } else {
            answer.assert_refused(421, "postern/builtin/name-mismatch");
        }
    }
    assert_eq!(test.upstream.requests().len(), 1);
}

#[test]
fn an_authority_for_another_name_is_misdirected_on_its_stream_alone() {
    let test = inspected();
    let agent = test.gateway.agent();
    let connection = agent.h2("api.example.com");

    connection.get("https://other.example.com/echo").assert_refused(421, "postern/builtin/name-mismatch");

    assert_eq!(connection.get("https://api.example.com/echo").status, 200);
    assert_eq!(test.upstream.requests().len(), 1);
}

#[test]
fn a_server_name_other_than_connects_reaches_nobody() {
    let test = inspected_with(|setup| {
        setup.destinations(&["{name: all, hosts: ['**.example.com'], action: Inspect}"])
    });
    let dial = test.gateway.agent().dial("api.example.com").authority("other.example.com:443");

    if let Ok(mut connection) = dial.open() {
        connection.send("GET /echo HTTP/1.1\r\nHost: api.example.com\r\n\r\n");
        connection.read_answer().assert_refused(421, "postern/builtin/name-mismatch");
    }

    let event = test.gateway.wait_for_event("the denial", |event| event["decision"]["verdict"] == "Deny");
    assert_eq!(event["decision"]["rule"], "postern/builtin/name-mismatch");
    assert!(test.upstream.requests().is_empty());
}

#[test]
fn bytes_that_are_neither_tls_nor_http_are_reset_after_the_event() {
    let test = inspected();
    let mut connection = test.gateway.agent().connect("api.example.com:443").unwrap();

    connection.send("SSH-2.0-OpenSSH_9.2\r\n\0\0\x01\x14");

    assert_eq!(connection.ending(), Ending::Cut(Vec::new()));
    assert_eq!(
        test.gateway.wait_for("Connection", "Deny")["decision"]["rule"],
        "postern/builtin/default-deny"
    );
    assert!(test.upstream.requests().is_empty());
}

#[test]
fn a_loopback_address_behind_an_allowed_name_is_refused() {
    let test = inspected_with(|setup| setup.set("/upstream/allowAddresses", json!([])));

    let answer = test.gateway.agent().get("https://api.example.com/echo");

    answer.assert_refused(403, "postern/builtin/denied-address");
    assert!(test.upstream.links().is_empty());
}

#[test]
fn an_upstream_that_is_not_there_is_a_bad_gateway() {
    let upstreams = Pki::new("Upstream Test CA");
    let gone = Upstream::tls(&upstreams, &["api.example.com"]).address();
    let gateway = Setup::new(&upstreams).host("api.example.com", gone).destinations(&[INSPECT_API]).start();

    let answer = gateway.agent().get("https://api.example.com/echo");

    assert_eq!(answer.status, 502, "{answer:?}");
    assert!(answer.text().contains("Destination: api.example.com:443"), "{}", answer.text());
    assert!(answer.header("x-postern-event").is_some());
    assert_eq!(answer.header("x-postern-decision"), None, "it is a failure and no denial");
}

#[test]
fn an_upstream_that_never_answers_is_a_gateway_timeout() {
    let upstreams = Pki::new("Upstream Test CA");
    let mute = RawUpstream::start(Some(&upstreams.leaf(&["api.example.com"])), |connection, heard| {
        heard.push(connection.read_until(b"\r\n\r\n"));
        let _ = connection.ending();
    });
    let gateway = Setup::new(&upstreams)
        .host("api.example.com", mute.address())
        .set("/timeouts/upstreamHead", "300ms")
        .destinations(&[INSPECT_API])
        .start();

    let answer = gateway.agent().get("https://api.example.com/echo");

    assert_eq!(answer.status, 504, "{answer:?}");
    assert_eq!(mute.heard().entries().len(), 1, "a request that was sent is not sent again");
}

#[test]
fn an_answer_that_two_parsers_could_read_differently_is_a_bad_gateway() {
    let both = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
    let twice = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nabc";
    for answer in [both, twice, "not HTTP at all\r\n\r\n"] {
        let upstreams = Pki::new("Upstream Test CA");
        let identity = upstreams.leaf(&["api.example.com"]);
        let upstream = RawUpstream::answering(Some(&identity), vec![answer.into()]);
        let gateway = Setup::new(&upstreams)
            .host("api.example.com", upstream.address())
            .destinations(&[INSPECT_API])
            .start();
        assert_eq!(gateway.agent().get("https://api.example.com/").status, 502, "{answer:?}");
    }
}

#[test]
fn where_no_policy_selects_the_pod_everything_is_denied() {
    let other = "apiVersion: postern.dev/v1alpha1\nkind: EgressPolicy\nmetadata: {name: test, namespace: agents}\n\
                 spec:\n  podSelector: {matchLabels: {app: other}}\n  destinations:\n    - {name: api, hosts: ['**'], action: Inspect}\n";
    let test = inspected_with(|setup| setup.policy(other));

    let answer = test.gateway.agent().connect("api.example.com:443").err().unwrap();

    answer.assert_refused(403, "postern/builtin/no-policy");
}

#[test]
fn ambiguous_framing_is_refused_and_ends_the_connection() {
    let test = inspected();
    let host = "Host: api.example.com\r\n";
    for request in [
        format!("POST / HTTP/1.1\r\n{host}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
        format!("POST / HTTP/1.1\r\n{host}Content-Length: 4\r\nContent-Length: 5\r\n\r\nabcde"),
        format!("POST / HTTP/1.1\r\n{host}Content-Length: +4\r\n\r\nabcd"),
        format!("POST / HTTP/1.1\r\n{host}Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n"),
        format!("POST / HTTP/1.1\r\n{host}Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n"),
        format!("GET / HTTP/1.1\r\n{host}X-Folded: a\r\n b\r\n\r\n"),
        format!("GET / HTTP/1.1\n{host}\r\n"),
        format!("GET / HTTP/1.1\r\n{host}{host}\r\n"),
        "GET / HTTP/1.1\r\nX-No: host\r\n\r\n".to_owned(),
        format!("GET /a b HTTP/1.1\r\n{host}\r\n"),
        format!("GET / HTTP/1.1\r\n{host}Connection: authorization\r\n\r\n"),
    ] {
        let mut connection = test.gateway.agent().tls("api.example.com");
        connection.send(&request);
        connection.read_answer().assert_refused(400, "postern/builtin/framing");
        assert!(matches!(connection.ending(), Ending::Closed(rest) | Ending::Cut(rest) if rest.is_empty()));
    }
    assert!(test.upstream.requests().is_empty());
}

#[test]
fn a_second_request_behind_a_refused_one_is_judged_by_itself() {
    let test = inspected_with(|setup| {
        setup.destinations(&["{name: api, hosts: [api.example.com], action: Inspect, \
                              endpoints: [{methods: [GET], path: /echo}]}"])
    });
    let mut connection = test.gateway.agent().tls("api.example.com");
    let host = "Host: api.example.com\r\n\r\n";

    connection.send(format!(
        "GET /bytes/1 HTTP/1.1\r\n{host}GET /bytes/2 HTTP/1.1\r\n{host}GET /echo HTTP/1.1\r\n{host}"
    ));

    connection.read_answer().assert_refused(403, "postern/builtin/endpoint");
    connection.read_answer().assert_refused(403, "postern/builtin/endpoint");
    assert_eq!(connection.read_answer().status, 200);
    assert_eq!(test.upstream.requests().len(), 1);
}

#[test]
fn a_refusal_of_head_over_h2_is_a_head_alone() {
    let endpoints =
        "{name: api, hosts: [api.example.com], action: Inspect, endpoints: [{methods: [POST], path: /echo}]}";
    let test = inspected_with(|setup| setup.destinations(&[endpoints]));
    let agent = test.gateway.agent();
    let connection = agent.h2("api.example.com");

    let answer = connection.request("HEAD", "https://api.example.com/echo", &[], b"").unwrap();

    assert_eq!((answer.status, answer.complete), (403, true), "{answer:?}");
    assert!(answer.body.is_empty(), "{}", answer.text());
    assert_eq!(answer.header("x-postern-rule"), Some("postern/builtin/endpoint"));
}

#[test]
fn a_connection_that_was_ended_for_a_502_is_closed_after_it() {
    let upstreams = Pki::new("Upstream Test CA");
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let gateway = Setup::new(&upstreams).host("api.example.com", gone).destinations(&[INSPECT_API]).start();
    let mut connection = gateway.agent().tls("api.example.com");

    connection.send("GET / HTTP/1.1\r\nHost: api.example.com\r\n\r\n");

    assert_eq!(connection.read_answer().status, 502);
    assert_eq!(connection.ending(), Ending::Closed(Vec::new()), "the next connection may find it there");
}
