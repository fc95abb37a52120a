//! What would drive an operator to switch the control off, if it broke: trust, upgrades, proxies, streams, sizes.

use std::sync::Arc;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::json;

use crate::gateway::{INSPECT_API, behind, inspected, inspected_with};
use crate::support::upstream::{Gate, RawUpstream, Reply, Step, accept_key, pattern};
use crate::support::{Pki, Setup, Upstream};

const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";

/// K1: one bundle, the system's roots and Postern's, serves inspected and tunnelled hosts; either alone serves one.
#[test]
fn one_bundle_of_roots_serves_both_kinds_of_hosts() {
    let upstreams = Pki::new("Upstream Test CA");
    let (inspected, tunnelled) =
        (Upstream::tls(&upstreams, &["api.example.com"]), Upstream::tls(&upstreams, &["files.example.com"]));
    let gateway = Setup::new(&upstreams)
        .host("api.example.com", inspected.address())
        .host("files.example.com", tunnelled.address())
        .destinations(&[INSPECT_API, "{name: files, hosts: [files.example.com], action: Tunnel}"])
        .start();
    let mut bundle = (*upstreams.roots()).clone();
    bundle.roots.extend(gateway.authority().roots().roots.iter().cloned());
    let (ours, theirs) = (gateway.agent(), gateway.agent().trusting(upstreams.roots()));
    let both = gateway.agent().trusting(Arc::new(bundle));

    assert!(theirs.dial("api.example.com").open().is_err());
    assert!(ours.dial("files.example.com").open().is_err());

    assert_eq!(both.tls("api.example.com").issuer(), "Postern Test CA");
    assert_eq!(both.tls("files.example.com").issuer(), "Upstream Test CA");
    assert_eq!(both.get("https://api.example.com/echo").status, 200);
    assert_eq!(both.get("https://files.example.com/echo").status, 200);
}

/// K1: what is sent beside the leaf lets a client that holds the root alone build the chain.
#[test]
fn the_chain_ends_at_the_root_that_the_agent_holds() {
    let test = inspected();
    let connection = test.gateway.agent().tls("api.example.com");

    let chain = connection.peer_certificates();

    let (_, leaf) = x509_parser::parse_x509_certificate(&chain[0]).unwrap();
    let last = chain.last().unwrap();
    let (_, last) = x509_parser::parse_x509_certificate(last).unwrap();
    assert_ne!(leaf.subject(), leaf.issuer(), "the leaf signs nothing, itself least of all");
    let issuer = last.issuer().iter_common_name().next().unwrap();
    assert_eq!(issuer.as_str().unwrap(), "Postern Test CA");
}

/// K4: a 101 comes in one piece, and what the upstream says right behind it comes through.
#[test]
fn a_101_comes_in_one_piece() {
    let answer = format!(
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Accept: {}\r\nSec-WebSocket-Protocol: chat\r\n\r\n\u{1}hello",
        accept_key(KEY)
    );
    let upstream = RawUpstream::start(None, move |connection, heard| {
        heard.push(connection.read_until(b"\r\n\r\n"));
        connection.send_byte_by_byte(&answer);
        heard.push(connection.read_until(b"bye"));
    });
    let gateway = Setup::new(&Pki::new("Upstream Test CA"))
        .host("ws.example.com", upstream.address())
        .destinations(&["{name: ws, hosts: [ws.example.com], action: Inspect, upgrade: Allow}"])
        .start();
    let mut connection = gateway.agent().connect("ws.example.com:80").unwrap();

    connection.send(format!(
        "GET /chat HTTP/1.1\r\nHost: ws.example.com\r\nConnection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\n\
         Sec-WebSocket-Key: {KEY}\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: chat\r\n\r\n"
    ));
    let first = connection.try_read().unwrap();

    let head = String::from_utf8_lossy(&first).to_ascii_lowercase();
    assert!(
        head.starts_with("http/1.1 101 ") && head.contains("\r\n\r\n"),
        "the first read has it whole: {head}"
    );
    assert!(head.contains("sec-websocket-protocol: chat\r\n"), "{head}");
    if !head.ends_with("hello") {
        connection.read_until(b"hello");
    }
    connection.send("bye");
    upstream.heard().wait_for("what the agent said", |heard| heard == b"bye");
}

/// K7: a corporate proxy is asked with its credentials for everything but its exceptions, inspected or tunnelled.
#[test]
fn a_corporate_proxy_is_asked_for_everything_but_its_exceptions() {
    let upstreams = Pki::new("Upstream Test CA");
    let far = Upstream::tls(&upstreams, &["api.example.com", "files.example.com"]);
    let near = Upstream::tls(&upstreams, &["localhost"]);
    let (target, port) = (far.address(), near.address().port());
    let corporate = RawUpstream::start(None, move |connection, heard| {
        heard.push(connection.read_until(b"\r\n\r\n"));
        connection.send("HTTP/1.1 200 Connection established\r\nVia: corp\r\n\r\n");
        connection.relay_to(target);
    });
    let setup = Setup::new(&upstreams);
    std::fs::write(setup.path().join("proxy-credentials"), "postern:let us out\n").unwrap();
    let gateway = setup
        .set(
            "/upstream/proxy",
            json!({
                "url": format!("http://{}", corporate.address()),
                "credentialsFile": "proxy-credentials",
                "except": ["localhost", "**.corp.example"],
            }),
        )
        .destinations(&[
            INSPECT_API,
            "{name: files, hosts: [files.example.com], action: Tunnel}",
            &format!("{{name: near, hosts: [localhost], ports: [{port}], action: Inspect}}"),
        ])
        .start();
    let agent = gateway.agent();

    assert_eq!(agent.get("https://api.example.com/echo").status, 200);
    let mut files = agent.clone().trusting(upstreams.roots()).tls("files.example.com");
    files.send("GET /echo HTTP/1.1\r\nHost: files.example.com\r\n\r\n");
    assert_eq!((files.read_answer().status, files.issuer().as_str()), (200, "Upstream Test CA"));
    assert_eq!(agent.get(&format!("https://localhost:{port}/echo")).status, 200);

    let asked: Vec<String> =
        corporate.heard().entries().into_iter().map(|head| String::from_utf8(head).unwrap()).collect();
    assert_eq!(asked.len(), 2, "{asked:?}");
    for (head, name) in asked.iter().zip(["api.example.com", "files.example.com"]) {
        assert!(head.starts_with(&format!("CONNECT {name}:443 HTTP/1.1\r\n")), "{head}");
        let credentials = format!("Basic {}", BASE64_STANDARD.encode("postern:let us out"));
        assert!(head.contains(&format!("\r\nProxy-Authorization: {credentials}\r\n")), "{head}");
    }
    assert_eq!(near.requests().len(), 1);
    assert!(far.requests().iter().all(|seen| seen.header("proxy-authorization").is_none()));
}

/// K7: a corporate proxy that refuses, or speaks something else, is a bad gateway in words, without its details.
#[test]
fn a_corporate_proxy_that_refuses_is_a_bad_gateway() {
    for answer in ["HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", "SSH-2.0-nonsense\r\n\r\n", ""] {
        let corporate = RawUpstream::start(None, move |connection, heard| {
            heard.push(connection.read_until(b"\r\n\r\n"));
            connection.send(answer);
        });
        let test = inspected_with(|setup| {
            setup
                .set("/upstream/proxy", format!("http://{}", corporate.address()))
                .set("/upstream/hosts", json!({}))
        });
        let answer = test.gateway.agent().get("https://api.example.com/echo");
        assert_eq!(answer.status, 502, "{answer:?}");
        assert!(answer.text().contains("proxy"), "{}", answer.text());
        assert!(test.upstream.links().is_empty());
        assert!(test.gateway.metric("postern_upstream_errors_total", &[("class", "proxy")]) >= 1.0);
    }
}

/// K9: the first byte is not waited with, also where answers are searched for a key: over h1, h2, and chunk by chunk.
#[test]
fn the_first_byte_is_not_held_back() {
    let credential = "\x20 credentials:\n    - {name: api, hosts: [api.example.com], fromFile: key, placeholder: p-api-0000}\n";
    let gate = Gate::new();
    let opened = gate.clone();
    let script = move |_: &crate::support::upstream::Seen| {
        let event = |n: u32| Step::Data(format!("data: {{\"n\":{n}}}\n\n").into());
        let steps = vec![event(1), event(2), Step::Wait(opened.clone()), event(3)];
        Some(Reply::streaming(steps).header("content-type", "text/event-stream"))
    };
    let test = behind(Upstream::build().script(script), |setup| {
        std::fs::write(setup.path().join("key"), "sk-real-key-0123456789").unwrap();
        let rules = crate::support::setup::policy(&[INSPECT_API]);
        setup.policy(&format!("{rules}{credential}"))
    });
    let agent = test.gateway.agent();
    let mut h1 = agent.tls("api.example.com");
    h1.send("GET / HTTP/1.1\r\nHost: api.example.com\r\n\r\n");
    let connection = agent.h2("api.example.com");
    let (writer, pending) = connection.upload("https://api.example.com/");
    drop(writer);
    let mut h2 = pending.head().unwrap();

    // The upstream says nothing more before the gate is open: what comes now was not held back.
    h1.read_until(b"{\"n\":2}\n\n");
    let mut said = Vec::new();
    while !said.ends_with(b"{\"n\":2}\n\n") {
        said.extend_from_slice(&h2.chunk().unwrap());
    }
    gate.open();

    h1.read_until(b"{\"n\":3}\n\n");
    assert!(h2.rest().body.ends_with(b"{\"n\":3}\n\n"));
}

/// K12: an answer may be silent far longer than every other bound, as long as it is not for `streamIdle`.
#[test]
fn a_stream_may_be_silent_longer_than_every_other_bound() {
    let pause = Step::Pause(std::time::Duration::from_millis(1_500));
    let script = move |_: &crate::support::upstream::Seen| {
        let steps = vec![Step::Data("data: 1\n\n".into()), pause.clone(), Step::Data("data: 2\n\n".into())];
        Some(Reply::streaming(steps).header("content-type", "text/event-stream"))
    };
    let test = behind(Upstream::build().script(script), |setup| {
        let bounds = ["sniff", "agentHead", "connect", "upstreamHead", "keepAlive"];
        bounds.iter().fold(setup, |setup, name| setup.set(&format!("/timeouts/{name}"), "700ms"))
    });

    let agent = test.gateway.agent();
    let over_h1 = agent.get("https://api.example.com/");
    let over_h2 = agent.h2("api.example.com").get("https://api.example.com/");

    for answer in [over_h1, over_h2] {
        assert!(answer.complete && answer.text() == "data: 1\n\ndata: 2\n\n", "{answer:?}");
    }
}

/// K12: an upload may take longer than the answer to it may: that bound counts from the request's last byte.
#[test]
fn an_upload_may_take_longer_than_its_answer() {
    let test = inspected_with(|setup| setup.set("/timeouts/upstreamHead", "300ms"));
    let agent = test.gateway.agent();
    let mut upload = agent.tls("api.example.com");
    upload.send("POST /echo HTTP/1.1\r\nHost: api.example.com\r\nContent-Length: 10\r\n\r\nfirst");
    test.upstream.wait_for_request("the first half", |seen| seen.body == b"first");

    // An answer in two parts is the clock: it takes longer than the bound.
    assert!(agent.get("https://api.example.com/sse?events=2&interval=300").complete);
    upload.send("-half");

    assert_eq!(upload.read_answer().json()["body"], "first-half");
}

/// K13: 32 MiB pass in either direction, over both versions, and are not held.
#[test]
fn a_large_body_streams_and_is_not_held() {
    const SIZE: usize = 32 << 20;
    let test = inspected();
    let agent = test.gateway.agent();
    let h2 = agent.h2("api.example.com");
    let body = pattern(SIZE);
    assert_eq!(agent.get("https://api.example.com/bytes/100000").body.len(), 100_000);
    assert_eq!(h2.get("https://api.example.com/bytes/100000").body.len(), 100_000);
    let before = test.gateway.peak_memory();

    let up = agent.request("POST", "https://api.example.com/status/204", &[], &body);
    let up_h2 = h2.request("POST", "https://api.example.com/status/204", &[], &body).unwrap();
    let down = agent.get(&format!("https://api.example.com/bytes/{SIZE}"));
    let down_h2 = h2.get(&format!("https://api.example.com/bytes/{SIZE}"));

    assert_eq!((up.status, up_h2.status), (204, 204));
    assert!(
        down.body == body && down_h2.body == body,
        "{} and {} bytes came",
        down.body.len(),
        down_h2.body.len()
    );
    let sent = test.upstream.requests().into_iter().filter(|seen| seen.body == body).count();
    assert_eq!(sent, 2);
    let grown = test.gateway.peak_memory() - before;
    assert!(grown < 24 << 20, "{grown} bytes more at the peak for bodies of {SIZE}, of which none is held");
}
