//! Everything an agent sends, or does not send, is bounded.

use super::{INSPECT_API, behind, inspected, inspected_with};
use crate::support::coding::zstd_bomb;
use crate::support::setup::policy;
use crate::support::upstream::{RawUpstream, Reply};
use crate::support::{Connection, Ending, Upstream};

#[test]
fn an_agent_that_says_nothing_is_closed() {
    let test =
        inspected_with(|setup| setup.set("/timeouts/agentHead", "300ms").set("/timeouts/sniff", "300ms"));

    let (Ending::Closed(said) | Ending::Cut(said)) = test.gateway.agent().open().ending();

    assert!(said.is_empty() || said.starts_with(b"HTTP/1.1 408"), "{}", String::from_utf8_lossy(&said));
}

#[test]
fn an_agent_that_says_nothing_after_connect_is_closed() {
    let test = inspected_with(|setup| setup.set("/timeouts/sniff", "300ms"));
    let mut connection = test.gateway.agent().connect("api.example.com:443").unwrap();

    assert!(matches!(connection.ending(), Ending::Closed(said) | Ending::Cut(said) if said.is_empty()));
    assert!(test.upstream.requests().is_empty());
}

#[test]
fn half_a_client_hello_is_closed() {
    let test = inspected_with(|setup| setup.set("/timeouts/sniff", "300ms"));
    let mut connection = test.gateway.agent().connect("api.example.com:443").unwrap();

    connection.send(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03");

    assert!(matches!(connection.ending(), Ending::Closed(said) | Ending::Cut(said) if said.is_empty()));
}

#[test]
fn a_client_hello_over_its_bound_is_closed() {
    let test = inspected();
    let mut connection = test.gateway.agent().connect("api.example.com:443").unwrap();
    let mut record = b"\x16\x03\x01\x40\x00".to_vec();
    record.extend(b"\x01\x0f\xff\xff\x03\x03");
    record.resize(5 + 0x4000, 0);

    for _ in 0..5 {
        if connection.try_send(&record).is_err() {
            break;
        }
    }

    assert!(matches!(connection.ending(), Ending::Closed(said) | Ending::Cut(said) if said.len() < 16));
}

#[test]
fn half_a_request_is_closed() {
    let test = inspected_with(|setup| setup.set("/timeouts/agentHead", "300ms"));
    let mut connection = test.gateway.agent().tls("api.example.com");

    connection.send("GET /echo HTTP/1.1\r\nHost: api.exa");

    let (Ending::Closed(said) | Ending::Cut(said)) = connection.ending();
    assert!(said.is_empty() || said.starts_with(b"HTTP/1.1 408"), "{}", String::from_utf8_lossy(&said));
    assert!(test.upstream.requests().is_empty());
}

#[test]
fn a_head_over_its_bounds_is_refused() {
    let test = inspected_with(|setup| setup.set("/limits/headerBytes", 8192).set("/limits/headerCount", 20));
    let many: String = (0..21).map(|n| format!("X-{n}: y\r\n")).collect();
    let long = format!("X-Long: {}\r\n", "y".repeat(9000));

    for fields in [many, long] {
        let mut connection = test.gateway.agent().tls("api.example.com");
        connection.send(format!("GET /echo HTTP/1.1\r\nHost: api.example.com\r\n{fields}\r\n"));
        let answer = connection.read_answer();
        assert!(matches!(answer.status, 400 | 431), "{answer:?}");
        assert!(matches!(connection.ending(), Ending::Closed(_) | Ending::Cut(_)));
    }

    let fits = "X-Long: ".to_owned() + &"y".repeat(7000);
    let mut connection = test.gateway.agent().tls("api.example.com");
    connection.send(format!("GET /echo HTTP/1.1\r\nHost: api.example.com\r\n{fits}\r\n\r\n"));
    assert_eq!(connection.read_answer().status, 200);
    assert_eq!(test.upstream.requests().len(), 1);
}

#[test]
fn an_idle_connection_is_closed_after_keep_alive() {
    let test = inspected_with(|setup| setup.set("/timeouts/keepAlive", "300ms"));
    let mut connection = test.gateway.agent().tls("api.example.com");
    connection.send("GET /echo HTTP/1.1\r\nHost: api.example.com\r\n\r\n");
    assert_eq!(connection.read_answer().status, 200);

    assert_eq!(connection.ending(), Ending::Closed(Vec::new()));
}

#[test]
fn connections_over_their_number_are_refused_until_one_ends() {
    let test = inspected_with(|setup| setup.set("/limits/connections", 2));
    let agent = test.gateway.agent();
    let (first, _second) = (agent.tls("api.example.com"), agent.tls("api.example.com"));

    assert!(matches!(agent.open().ending(), Ending::Closed(_) | Ending::Cut(_)));
    drop(first);

    crate::support::journal::poll("a free place", || {
        let mut connection = agent.open();
        connection
            .try_send("CONNECT api.example.com:443 HTTP/1.1\r\nHost: api.example.com:443\r\n\r\n")
            .ok()?;
        connection.try_read().filter(|said| said.starts_with(b"HTTP/1.1 200"))
    });
}

#[test]
fn an_h2_head_over_its_bound_is_refused_on_its_stream_alone() {
    let test = inspected_with(|setup| setup.set("/limits/headerBytes", 8192));
    let agent = test.gateway.agent();
    let connection = agent.h2("api.example.com");
    let long = "y".repeat(9000);

    let refused = connection.request("GET", "https://api.example.com/echo", &[("x-long", &long)], b"");

    assert!(refused.is_err_and(|error| !error.is_user()) || test.upstream.requests().is_empty());
    assert_eq!(agent.get("https://api.example.com/echo").status, 200);
}

#[test]
fn a_body_of_32_mib_passes() {
    let test = inspected();
    let body = vec![b'x'; 32 << 20];

    let answer = test.gateway.agent().request("POST", "https://api.example.com/status/204", &[], &body);

    assert_eq!(answer.status, 204, "{answer:?}");
    assert_eq!(test.upstream.requests()[0].body.len(), body.len());
}

#[test]
fn an_upstream_that_never_shakes_hands_is_a_gateway_timeout() {
    let mute = RawUpstream::start(None, |connection, _| {
        let _ = connection.ending();
    });
    let proxy = format!("http://{}", mute.address());
    let directly = inspected_with(|setup| {
        setup.host("api.example.com", mute.address()).set("/timeouts/connect", "300ms")
    });
    let through_a_proxy = inspected_with(|setup| {
        let setup = setup.set("/upstream/hosts", serde_json::json!({})).set("/upstream/proxy", proxy);
        setup.set("/timeouts/connect", "300ms")
    });

    for test in [directly, through_a_proxy] {
        let answer = test.gateway.agent().get("https://api.example.com/echo");
        assert_eq!(answer.status, 504, "{answer:?}");
        test.gateway.wait_for_metric("postern_upstream_errors_total", &[("class", "connect_timeout")], 1.0);
    }
}

#[test]
fn what_ends_a_connection_is_counted() {
    let test = inspected_with(|setup| {
        setup
            .set("/timeouts/agentHead", "300ms")
            .set("/timeouts/sniff", "300ms")
            .set("/limits/headerCount", 8)
    });
    let agent = test.gateway.agent();
    let tunnel = || agent.connect("api.example.com:443").unwrap();
    let say = |mut connection: Connection, text: &str| {
        connection.send(text);
        let _ = connection.ending();
    };

    drop(agent.open());
    say(agent.open(), "CONNECT api.exa");
    say(tunnel(), "");
    say(tunnel(), "\x16\x03\x01\0\x05\x02\0\0\x01\0");
    say(tunnel(), "SSH-2.0-OpenSSH_9.2\r\n");
    say(agent.tls("api.example.com"), "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n");
    say(agent.tls("api.example.com"), &format!("GET / HTTP/1.1\r\n{}\r\n", "X: y\r\n".repeat(9)));
    say(agent.tls("api.example.com"), "GET / HTTP/1.1\r\nHo");

    for (reason, count) in [
        ("silent", 1.0),
        ("head_timeout", 2.0),
        ("sniff_timeout", 1.0),
        ("garbage", 1.0),
        ("denied", 1.0),
        ("framing", 1.0),
        ("limit", 1.0),
    ] {
        test.gateway.wait_for_metric("postern_connections_closed_total", &[("reason", reason)], count);
    }
    assert!(test.upstream.requests().is_empty());
}

#[test]
fn an_answer_that_decodes_to_far_more_is_never_held_whole() {
    let test = behind(
        Upstream::build().script(|_| Some(Reply::of(200, zstd_bomb()).header("content-encoding", "zstd"))),
        |setup| {
            let credential = "  credentials:\n    - {name: api, hosts: [api.example.com], \
                              secretKeyRef: {name: keys, key: api}}\n";
            setup
                .policy(&(policy(&[INSPECT_API]) + credential))
                .credential("api", "sk-canary-0123456789abcdef")
        },
    );
    let mut connection = test.gateway.agent().tls("api.example.com");

    connection.send("GET / HTTP/1.1\r\nHost: api.example.com\r\n\r\n");
    assert_eq!(connection.read_head().status, 200);
    assert!(connection.read_chunk().iter().all(|byte| *byte == b'x'));

    let peak = test.gateway.peak_memory() >> 20;
    assert!(peak < 128, "{peak} MiB for an answer of 8 KiB");
}

#[test]
fn an_h2_connection_upstream_that_nobody_uses_is_closed() {
    let test = inspected_with(|setup| setup.set("/timeouts/keepAlive", "1s"));
    let agent = test.gateway.agent();
    assert_eq!(agent.h2("api.example.com").get("https://api.example.com/echo").status, 200);
    assert_eq!(test.upstream.links()[0].alpn.as_deref(), Some("h2"));

    crate::support::journal::poll("the end of the idle connection", || {
        test.upstream.links().iter().all(|link| link.ended).then_some(())
    });
}
