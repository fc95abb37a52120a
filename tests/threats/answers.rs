//! What an upstream answers: with two readings, too much, too early, or as another protocol.

use super::framing::{HOST, KEY, inspecting, upgrade};
use crate::gateway::inspected;
use crate::support::upstream::{RawUpstream, accept_key};
use crate::support::{Ending, Gateway, Pki, Setup};

/// C10: an upstream's answer with two readings, or a switch of protocols that nobody asked for, is not passed on.
#[test]
fn an_answer_with_two_readings_is_not_passed_on() {
    for answer in [
        "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n\x02\x02",
        "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\nabcde",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nX-Split: a\0b\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\n folded: a\r\nContent-Length: 0\r\n\r\n",
        "ICY 200 OK\r\n\r\n",
    ] {
        let (upstream, gateway) = answering(answer);
        let got = gateway.agent().get("https://api.example.com/");
        assert_eq!(got.status, 502, "{answer:?}: {got:?}");
        assert_eq!(upstream.accepted(), 1, "{answer:?}: it is not asked twice");
    }

    let hints = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 8\r\n\r\ndata: x\n";
    let (_upstream, gateway) = answering(hints);
    let got = gateway.agent().get("https://api.example.com/");
    assert_eq!((got.status, got.text().as_str(), got.complete), (200, "data: x\n", true));
}

/// C10: an upstream does not speak for the gateway, nor set fields of the agent's hop.
#[test]
fn an_upstream_does_not_speak_for_the_gateway() {
    let (_upstream, gateway) = answering(
        "HTTP/1.1 200 OK\r\nX-Postern-Decision: deny\r\nX-Postern-Rule: forged\r\nProxy-Authenticate: Basic\r\n\
         Keep-Alive: timeout=9\r\nX-Kept: yes\r\nContent-Length: 4\r\n\r\nmine",
    );

    let got = gateway.agent().get("https://api.example.com/");

    assert_eq!((got.status, got.text().as_str(), got.header("x-kept")), (200, "mine", Some("yes")));
    for name in ["x-postern-decision", "x-postern-rule", "proxy-authenticate", "keep-alive"] {
        assert_eq!(got.header(name), None, "{got:?}");
    }
}

/// C11: bytes past an answer, an answer before the request was read, or an abort: the connection is not used again.
#[test]
fn a_connection_that_misbehaved_is_not_used_again() {
    let whole = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nmine";
    let forged = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged";
    for (answer, first) in [
        (format!("{whole}{forged}"), "mine"),
        (format!("HTTP/1.1 204 No Content\r\n\r\n{forged}"), ""),
        (
            format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nmine\r\n0\r\n\r\n{forged}"),
            "mine",
        ),
    ] {
        let (upstream, gateway) = answering(&answer);
        for _ in 0..3 {
            let mut connection = gateway.agent().tls("api.example.com");
            connection.send(format!("GET / HTTP/1.1\r\n{HOST}\r\n"));
            assert_eq!(connection.read_answer().text(), first, "{answer:?}");
        }
        assert_eq!(upstream.heard().entries().len(), 3, "{answer:?}");
        assert!(upstream.accepted() >= 3, "{answer:?}: a poisoned connection was used again");
    }

    let test = inspected();
    for _ in 0..3 {
        assert_eq!(test.gateway.agent().get("https://api.example.com/echo").status, 200);
    }
    assert_eq!(test.upstream.links().len(), 1, "the twin: a clean one is used again");
}

/// C11: an upstream that answers before it has read the request keeps neither the connection nor the next exchange.
#[test]
fn an_early_answer_ends_its_connection() {
    let upstreams = Pki::new("Upstream Test CA");
    let upstream = RawUpstream::start(Some(&upstreams.leaf(&["api.example.com"])), |connection, heard| {
        heard.push(connection.read_until(b"\r\n\r\n"));
        connection.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nearly");
        let (Ending::Closed(rest) | Ending::Cut(rest)) = connection.ending();
        heard.push(rest);
    });
    let gateway = inspecting(&upstreams, &upstream);
    let mut connection = gateway.agent().tls("api.example.com");
    connection.send(format!("POST / HTTP/1.1\r\n{HOST}Content-Length: 40\r\n\r\npart"));
    assert_eq!(connection.read_answer().text(), "early");
    drop(connection);

    let second = gateway.agent().get("https://api.example.com/second");

    assert_eq!(second.text(), "early");
    upstream.heard().wait_for("the second request", |heard| heard.starts_with(b"GET /second "));
    assert!(upstream.accepted() >= 2);
    let heard = upstream.heard().entries();
    assert!(!heard.iter().any(|rest| memchr::memmem::find(rest, b"partGET").is_some()), "{heard:?}");
}

/// C12: bytes are opaque only behind a 101 that answers this very request; another is an answer that has no meaning.
#[test]
fn a_101_that_does_not_answer_the_request_opens_nothing() {
    let accept = accept_key(KEY);
    let upgraded = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n";
    for answer in [
        format!("{upgraded}Upgrade: websocket\r\nSec-WebSocket-Accept: bm90IHRoZSBhbnN3ZXI=\r\n\r\n"),
        format!("{upgraded}Upgrade: h2c\r\nSec-WebSocket-Accept: {accept}\r\n\r\n"),
        format!("{upgraded}Upgrade: websocket\r\n\r\n"),
        format!(
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: {accept}\r\n\r\n"
        ),
    ] {
        let (_upstream, gateway) = answering_with(&answer, ", upgrade: Allow");
        let mut connection = gateway.agent().tls("api.example.com");
        upgrade(&mut connection, "/ws");
        assert_eq!(connection.read_answer().status, 502, "{answer:?}");
    }

    let good = format!("{upgraded}Upgrade: websocket\r\nSec-WebSocket-Accept: {accept}\r\n\r\n\u{1}");
    let (_upstream, gateway) = answering_with(&good, ", upgrade: Allow");
    let mut connection = gateway.agent().tls("api.example.com");
    upgrade(&mut connection, "/ws");
    assert_eq!(connection.read_head().status, 101);
    assert_eq!(connection.read_exactly(1), b"\x01");
}

/// An upstream that answers the first request on each connection with these bytes, and then waits.
fn answering(answer: &str) -> (RawUpstream, Gateway) {
    answering_with(answer, "")
}

fn answering_with(answer: &str, more: &str) -> (RawUpstream, Gateway) {
    let upstreams = Pki::new("Upstream Test CA");
    let answer = answer.to_owned();
    let upstream =
        RawUpstream::start(Some(&upstreams.leaf(&["api.example.com"])), move |connection, heard| {
            heard.push(connection.read_until(b"\r\n\r\n"));
            connection.send(&answer);
            let _ = connection.ending();
        });
    let gateway = Setup::new(&upstreams)
        .host("api.example.com", upstream.address())
        .destinations(&[&format!("{{name: api, hosts: [api.example.com], action: Inspect{more}}}")])
        .start();
    (upstream, gateway)
}
