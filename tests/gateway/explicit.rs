//! The explicit way in: CONNECT and the absolute form, HTTP/1.1 and h2, tunnels and opaque bytes.

use serde_json::json;

use super::{INSPECT_API, inspected, inspected_with};
use crate::support::upstream::{RawUpstream, Reply, pattern};
use crate::support::{Pki, Setup, Upstream};

#[test]
fn an_inspected_request_reaches_the_upstream_and_its_answer_comes_back() {
    let test = inspected();
    let mut connection = test.gateway.agent().tls("api.example.com");
    connection.send("GET /echo?a=b HTTP/1.1\r\nHost: api.example.com\r\nX-Mine: kept\r\n\r\n");

    let answer = connection.read_answer();

    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(connection.issuer(), "Postern Test CA");
    let seen = &test.upstream.requests()[0];
    assert_eq!((seen.method.as_str(), seen.target.as_str()), ("GET", "/echo?a=b"));
    assert_eq!(seen.authority, "api.example.com");
    assert_eq!(seen.header("x-mine"), Some("kept"));
    assert_eq!(test.upstream.links()[0].sni.as_deref(), Some("api.example.com"));
}

#[test]
fn a_plain_request_in_absolute_form_reaches_the_upstream_in_origin_form() {
    let upstream = Upstream::plain();
    let gateway = Setup::new(&Pki::new("Upstream Test CA"))
        .host("plain.example.com", upstream.address())
        .destinations(&["{name: plain, hosts: [plain.example.com], action: Inspect}"])
        .start();

    let answer = gateway.agent().request("POST", "http://plain.example.com/echo?q=1", &[], b"hello");

    assert_eq!(answer.status, 200, "{answer:?}");
    let seen = &upstream.requests()[0];
    assert_eq!((seen.target.as_str(), seen.authority.as_str()), ("/echo?q=1", "plain.example.com"));
    assert_eq!(seen.body, b"hello");
    assert_eq!(seen.header("proxy-connection"), None);
}

#[test]
fn plain_http_inside_connect_is_inspected_too() {
    let upstream = Upstream::plain();
    let gateway = Setup::new(&Pki::new("Upstream Test CA"))
        .host("plain.example.com", upstream.address())
        .destinations(&["{name: plain, hosts: [plain.example.com], action: Inspect}"])
        .start();
    let mut connection = gateway.agent().connect("plain.example.com:80").unwrap();

    connection.send("GET /echo HTTP/1.1\r\nHost: plain.example.com\r\n\r\n");

    assert_eq!(connection.read_answer().status, 200);
    assert_eq!(upstream.requests()[0].target, "/echo");
}

#[test]
fn bodies_pass_byte_for_byte_in_both_directions() {
    let test = inspected();
    let body = pattern(300_000);
    let agent = test.gateway.agent();

    let down = agent.get("https://api.example.com/bytes/1000000");
    agent.request("POST", "https://api.example.com/echo", &[], &body);

    assert!(down.body == pattern(1_000_000), "{} bytes came", down.body.len());
    assert!(test.upstream.requests()[1].body == body);
}

#[test]
fn a_body_in_chunks_arrives_whole() {
    let test = inspected();
    let mut connection = test.gateway.agent().tls("api.example.com");

    connection.send("POST /echo HTTP/1.1\r\nHost: api.example.com\r\nTransfer-Encoding: chunked\r\n\r\n");
    connection.send("5\r\nhello\r\n7;note=ignored\r\n, world\r\n0\r\n\r\n");

    assert_eq!(connection.read_answer().json()["body"], "hello, world");
}

#[test]
fn a_request_may_arrive_byte_by_byte() {
    let test = inspected();
    let mut connection = test.gateway.agent().dial("api.example.com").byte_by_byte().unwrap();

    connection
        .send_byte_by_byte("POST /echo HTTP/1.1\r\nHost: api.example.com\r\nContent-Length: 2\r\n\r\nhi");

    assert_eq!(connection.read_answer().json()["body"], "hi");
}

#[test]
fn one_connection_carries_many_requests_and_upstream_connections_are_pooled() {
    let test = inspected();
    let agent = test.gateway.agent();
    let mut connection = agent.tls("api.example.com");

    for n in 0..3 {
        connection.send(format!("GET /echo?n={n} HTTP/1.1\r\nHost: api.example.com\r\n\r\n"));
        assert_eq!(connection.read_answer().json()["target"], format!("/echo?n={n}"));
    }
    agent.get("https://api.example.com/echo");

    let links: Vec<usize> = test.upstream.requests().iter().map(|seen| seen.link).collect();
    assert_eq!(links, [0; 4]);
}

#[test]
fn a_connection_that_its_upstream_is_about_to_close_gets_no_other_request() {
    for (kept, expected) in [("timeout=60", [0, 0, 0]), ("timeout=1, max=9", [0, 1, 2])] {
        let upstreams = Pki::new("Upstream Test CA");
        let upstream = Upstream::build()
            .identity(upstreams.leaf(&["api.example.com"]))
            .protocols(&["http/1.1"])
            .script(move |_| Some(Reply::of(200, "yes").header("keep-alive", kept)))
            .start();
        let gateway = Setup::new(&upstreams)
            .host("api.example.com", upstream.address())
            .destinations(&["{name: api, hosts: [api.example.com], action: Inspect}"])
            .start();
        for _ in 0..3 {
            assert_eq!(gateway.agent().get("https://api.example.com/").status, 200);
        }
        let links: Vec<usize> = upstream.requests().iter().map(|seen| seen.link).collect();
        assert_eq!(links, expected, "{kept}");
    }
}

#[test]
fn the_agent_is_offered_what_the_upstream_speaks() {
    let upstreams = Pki::new("Upstream Test CA");
    let server = |name, protocols: &[&'static str]| {
        Upstream::build().identity(upstreams.leaf(&[name])).protocols(protocols).start()
    };
    let (both, old) =
        (server("both.example.com", &["h2", "http/1.1"]), server("old.example.com", &["http/1.1"]));
    let silent = server("silent.example.com", &[]);
    let gateway = Setup::new(&upstreams)
        .host("both.example.com", both.address())
        .host("old.example.com", old.address())
        .host("silent.example.com", silent.address())
        .destinations(&["{name: all, hosts: ['*.example.com'], action: Inspect}"])
        .start();
    let agreed =
        |name, offered: &[&str]| gateway.agent().dial(name).protocols(offered).open().unwrap().alpn();

    assert_eq!(agreed("both.example.com", &["h2", "http/1.1"]).as_deref(), Some("h2"));
    assert_eq!(agreed("both.example.com", &["http/1.1"]).as_deref(), Some("http/1.1"));
    assert_eq!(agreed("both.example.com", &[]), None);
    assert_eq!(agreed("old.example.com", &["h2", "http/1.1"]).as_deref(), Some("http/1.1"));
    assert_eq!(agreed("silent.example.com", &["h2", "http/1.1"]).as_deref(), Some("http/1.1"));
}

#[test]
fn h2_carries_several_requests_at_once() {
    let test = inspected();
    let agent = test.gateway.agent();
    let connection = agent.h2("api.example.com");
    let (writer, slow) = connection.upload("https://api.example.com/echo");

    let quick = connection.get("https://api.example.com/bytes/10");
    drop(writer);

    assert_eq!((quick.status, quick.body.len()), (200, 10));
    assert_eq!(slow.answer().unwrap().status, 200);
    let seen = test.upstream.wait_for_request("the quick request", |seen| seen.target == "/bytes/10");
    assert_eq!(seen.authority, "api.example.com");
}

#[test]
fn a_body_that_stalls_over_h2_is_the_agents_failure() {
    let test = inspected_with(|setup| setup.set("/timeouts/streamIdle", "300ms"));
    let agent = test.gateway.agent();
    let connection = agent.h2("api.example.com");
    let (_writer, stalled) = connection.upload("https://api.example.com/echo");
    let answer = stalled.answer().unwrap();
    assert_eq!(answer.status, 400, "{}", answer.text());
    assert!(answer.text().contains("the request's body stalled"), "{}", answer.text());
    assert_eq!(connection.get("https://api.example.com/bytes/10").status, 200);
}

#[test]
fn a_client_without_h2_reaches_an_upstream_that_speaks_nothing_else() {
    let upstreams = Pki::new("Upstream Test CA");
    let upstream =
        Upstream::build().identity(upstreams.leaf(&["api.example.com"])).protocols(&["h2"]).start();
    let gateway = Setup::new(&upstreams)
        .host("api.example.com", upstream.address())
        .destinations(&[INSPECT_API])
        .start();
    let agent = gateway.agent();

    assert_eq!(agent.get("https://api.example.com/echo").status, 200);

    assert_eq!(agent.h2("api.example.com").get("https://api.example.com/echo").status, 200);
}

#[test]
fn head_answers_have_a_length_and_no_body() {
    let test = inspected();
    let mut connection = test.gateway.agent().tls("api.example.com");

    connection.send("HEAD /bytes/1234 HTTP/1.1\r\nHost: api.example.com\r\n\r\n");
    let head = connection.read_head();
    connection.send("GET /bytes/3 HTTP/1.1\r\nHost: api.example.com\r\n\r\n");

    assert_eq!((head.status, head.header("content-length")), (200, Some("1234")));
    assert_eq!(connection.read_answer().body, pattern(3));
}

#[test]
fn a_client_that_waits_for_100_is_told_to_go_on() {
    let test = inspected();
    let mut connection = test.gateway.agent().tls("api.example.com");
    let head =
        "POST /echo HTTP/1.1\r\nHost: api.example.com\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n";

    connection.send(head);
    assert_eq!(connection.read_head().status, 100);
    connection.send("body");

    assert_eq!(connection.read_answer().json()["body"], "body");
}

#[test]
fn trailers_pass_in_both_directions() {
    let test = inspected();
    let mut connection = test.gateway.agent().tls("api.example.com");

    connection.send("POST /echo HTTP/1.1\r\nHost: api.example.com\r\nTE: trailers\r\nTrailer: x-sum\r\n");
    connection.send("Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nX-Sum: 42\r\n\r\n");
    connection.read_answer();
    connection.send("GET /trailers HTTP/1.1\r\nHost: api.example.com\r\nTE: trailers\r\n\r\n");
    let answer = connection.read_answer();

    assert_eq!(test.upstream.requests()[0].trailers, [("x-sum".to_owned(), "42".to_owned())]);
    assert_eq!(answer.trailers, [("x-checksum".to_owned(), "abc123".to_owned())]);
}

#[test]
fn informational_answers_before_the_final_one_pass() {
    let upstreams = Pki::new("Upstream Test CA");
    let hints = "HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n";
    let answer = format!("{hints}HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndone");
    let upstream =
        RawUpstream::answering(Some(&upstreams.leaf(&["api.example.com"])), vec![answer.into_bytes()]);
    let gateway = Setup::new(&upstreams)
        .host("api.example.com", upstream.address())
        .destinations(&[INSPECT_API])
        .start();

    let answer = gateway.agent().get("https://api.example.com/");

    assert_eq!((answer.status, answer.text().as_str()), (200, "done"));
    assert_eq!(upstream.accepted(), 1);
}

#[test]
fn an_encoded_answer_passes_as_it_is() {
    let test = inspected();

    let answer = test.gateway.agent().get("https://api.example.com/gzip");

    assert_eq!(answer.header("content-encoding"), Some("gzip"));
    assert!(answer.body.starts_with(&[0x1f, 0x8b]), "{answer:?}");
}

#[test]
fn redirects_are_the_agents_to_follow() {
    let test = inspected();

    let answer = test.gateway.agent().get("https://api.example.com/redirect?to=https://elsewhere.example/");

    assert_eq!((answer.status, answer.header("location")), (302, Some("https://elsewhere.example/")));
    assert_eq!(test.upstream.requests().len(), 1);
}

#[test]
fn a_tunnelled_host_keeps_its_own_certificate() {
    let test = inspected_with(|setup| {
        setup.destinations(&["{name: api, hosts: [api.example.com], action: Tunnel}"])
    });
    let agent = test.gateway.agent().trusting(test.upstreams.roots());
    let mut connection = agent.dial("api.example.com").protocols(&["http/1.1"]).open().unwrap();

    connection.send("GET /echo HTTP/1.1\r\nHost: fronted.example.com\r\n\r\n");

    assert_eq!(connection.issuer(), "Upstream Test CA");
    assert_eq!(connection.read_answer().json()["authority"], "fronted.example.com");
    let event = test.gateway.wait_for("Connection", "Allow");
    assert_eq!(event["destination"]["action"], "Tunnel");
    assert_eq!(event["destination"]["intercepted"], false);
    assert_eq!(event["decision"]["rule"], "agents/test/api");
}

#[test]
fn a_server_that_speaks_first_is_reached_through_an_opaque_tunnel() {
    let database = RawUpstream::start(None, |connection, heard| {
        connection.send("220 ready\n");
        heard.push(connection.read_until(b"\n"));
        connection.send("221 bye\n");
    });
    let gateway = Setup::new(&Pki::new("Upstream Test CA"))
        .host("db.example.com", database.address())
        .destinations(&[
            "{name: db, hosts: [db.example.com], ports: [5432], action: Tunnel, protocol: Opaque}",
        ])
        .start();
    let mut connection = gateway.agent().connect("db.example.com:5432").unwrap();

    assert_eq!(connection.read_until(b"\n"), b"220 ready\n");
    connection.send("QUIT\n");

    assert_eq!(connection.read_until(b"\n"), b"221 bye\n");
    assert_eq!(database.heard().entries(), [b"QUIT\n"]);
}

#[test]
fn a_half_closed_tunnel_still_carries_the_answer() {
    let server = RawUpstream::start(None, |connection, heard| {
        let crate::support::Ending::Closed(all) = connection.ending() else { return };
        heard.push(all);
        connection.send("received");
    });
    let gateway = Setup::new(&Pki::new("Upstream Test CA"))
        .host("files.example.com", server.address())
        .destinations(&[
            "{name: files, hosts: [files.example.com], ports: [99], action: Tunnel, protocol: Opaque}",
        ])
        .start();
    let mut connection = gateway.agent().connect("files.example.com:99").unwrap();

    connection.send("all of it");
    connection.half_close();

    assert_eq!(connection.read_until(b"received"), b"received");
    assert_eq!(server.heard().entries(), [b"all of it"]);
}

#[test]
fn a_proxy_password_is_asked_for_and_never_passed_on() {
    let test = inspected_with(|setup| {
        std::fs::write(setup.path().join("proxy-password"), "let-me-out\n").unwrap();
        setup.set("/listeners/explicit/passwordFile", "proxy-password")
    });
    let agent = test.gateway.agent();

    assert_eq!(agent.connect("api.example.com:443").err().unwrap().status, 407);
    let wrong = agent.clone().password("let-me-in").connect("api.example.com:443").err().unwrap();
    assert_eq!(wrong.status, 407);
    assert!(wrong.header("proxy-authenticate").is_some_and(|scheme| scheme.starts_with("Basic")));
    let answer = agent.password("let-me-out").get("https://api.example.com/echo");

    assert_eq!(answer.status, 200);
    assert_eq!(test.upstream.requests()[0].header("proxy-authorization"), None);
}

#[test]
fn a_way_in_that_others_reach_without_a_password_is_warned_of() {
    let start = |explicit: &str, reverse: &str, password: bool| {
        let setup = Setup::new(&Pki::new("Upstream Test CA"));
        std::fs::write(setup.path().join("proxy-password"), "let-me-out\n").unwrap();
        let reverse = json!([{"address": reverse, "upstream": "https://api.example.com"}]);
        let setup = setup.set("/listeners/explicit/address", explicit).set("/listeners/reverse", reverse);
        let setup =
            if password { setup.set("/listeners/explicit/passwordFile", "proxy-password") } else { setup };
        let mut gateway = setup.start();
        gateway.terminate();
        let log = gateway.log();
        ["listeners.explicit", "listeners.reverse"].map(|field| log.contains(&format!("{field}\"")))
    };

    assert_eq!(start("127.0.0.1:0", "127.0.0.1:0", false), [false, false]);
    assert_eq!(start("0.0.0.0:0", "[::1]:0", false), [true, false]);
    assert_eq!(start("0.0.0.0:0", "0.0.0.0:0", true), [false, true]);
}

#[test]
fn a_corporate_proxy_is_used_to_reach_upstreams() {
    let upstreams = Pki::new("Upstream Test CA");
    let upstream = Upstream::tls(&upstreams, &["api.example.com"]);
    let target = upstream.address();
    let corporate = RawUpstream::start(None, move |connection, heard| {
        heard.push(connection.read_until(b"\r\n\r\n"));
        connection.send("HTTP/1.1 200 Connection established\r\n\r\n");
        connection.relay_to(target);
    });
    let gateway = Setup::new(&upstreams)
        .set("/upstream/proxy", format!("http://{}", corporate.address()))
        .destinations(&[INSPECT_API])
        .start();

    let answer = gateway.agent().get("https://api.example.com/echo");

    assert_eq!(answer.status, 200, "{answer:?}");
    let asked = String::from_utf8(corporate.heard().entries().remove(0)).unwrap();
    assert!(asked.starts_with("CONNECT api.example.com:443 HTTP/1.1\r\n"), "{asked}");
}

#[test]
fn headers_between_two_hops_stay_there_and_forbidden_ones_are_removed() {
    let test = inspected();
    let headers = [
        ("Connection", "keep-alive"),
        ("Keep-Alive", "timeout=5"),
        ("Proxy-Connection", "keep-alive"),
        ("X-HTTP-Method-Override", "DELETE"),
        ("X_Api_Key", "shadow"),
        ("X-Postern-Rule", "forged"),
        ("X-Api-Version", "kept"),
    ];

    let answer = test.gateway.agent().request("POST", "https://api.example.com/echo", &headers, b"x");

    let seen = &test.upstream.requests()[0];
    let left = |name: &str| seen.header(name).map(str::to_owned);
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(left("x-api-version").as_deref(), Some("kept"));
    for name in ["keep-alive", "proxy-connection", "x-http-method-override", "x_api_key", "x-postern-rule"] {
        assert_eq!(left(name), None, "{name} went on: {:?}", json!(seen.headers));
    }
}
